//! The engine that feeds a modelled core: qemu-user with plugins.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// No qemu-x86_64 on the PATH.
    Missing,
    /// There, but built without `-plugin`.
    WithoutPlugins(String),
    /// There, with plugins; its version.
    Ready(String),
    /// There, but it would not say anything.
    Broken(String),
}

/// Looks on the PATH and asks for the options that it knows.
pub(crate) fn find_engine() -> Engine {
    let Some(path) = on_path("qemu-x86_64") else { return Engine::Missing };
    let ask = |argument: &str| {
        Command::new(&path)
            .arg(argument)
            .stdin(Stdio::null())
            .output()
            .map(|out| String::from_utf8_lossy(&out.stdout).into_owned())
    };
    match (ask("--version"), ask("-help")) {
        (Ok(version), Ok(help)) => judge_engine(&version, &help),
        (Err(error), _) | (_, Err(error)) => Engine::Broken(error.to_string()),
    }
}

fn judge_engine(version: &str, help: &str) -> Engine {
    let first = version.lines().next().unwrap_or_default();
    let version = first.split("version ").nth(1).and_then(|v| v.split([' ', '(']).next());
    match version {
        None => Engine::Broken("it did not tell its version".into()),
        Some(version) if help.contains("-plugin") => Engine::Ready(version.into()),
        Some(version) => Engine::WithoutPlugins(version.into()),
    }
}

/// The first executable file of that name on the PATH.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_without_plugins_is_told_from_one_with() {
        let version = "qemu-x86_64 version 7.2.22 (Debian 1:7.2+dfsg-7)\nCopyright";
        let with = "-plugin              QEMU_PLUGIN       [file=]<file>[,<argname>=<argvalue>]";
        assert_eq!(judge_engine(version, with), Engine::Ready("7.2.22".into()));
        assert_eq!(judge_engine(version, "-cpu model"), Engine::WithoutPlugins("7.2.22".into()));
        assert!(matches!(judge_engine("", ""), Engine::Broken(_)));
    }
}
