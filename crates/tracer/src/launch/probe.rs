//! Finding a QEMU that can load the plugin.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fmt, io};

use super::target;

/// The first QEMU whose plugin interface left the version that we speak.
const TOO_NEW: u32 = 9;

/// A QEMU that can load the plugin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Qemu {
    /// Where it is.
    pub path: PathBuf,
    /// What it calls itself, such as `7.2.22`.
    pub version: String,
}

/// Why there is no QEMU.
#[derive(Debug)]
pub enum QemuError {
    /// It is not installed.
    Missing,
    /// It could not be asked.
    Unusable(PathBuf, io::Error),
    /// It was built without plugins.
    NoPlugins(PathBuf),
    /// Its plugin interface is of another version.
    OtherInterface(PathBuf, String),
}

impl fmt::Display for QemuError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QemuError::Missing => {
                f.write_str("qemu-x86_64 is not installed; on Debian: apt-get install qemu-user")
            }
            QemuError::Unusable(path, why) => {
                write!(f, "{} cannot be run: {why}", path.display())
            }
            QemuError::NoPlugins(path) => {
                let path = path.display();
                write!(f, "{path} was built without plugins; use the dynamically linked qemu-user")
            }
            QemuError::OtherInterface(path, version) => {
                let path = path.display();
                write!(
                    f,
                    "{path} is version {version}, whose plugin interface differs; use 6.0 to 8.2"
                )
            }
        }
    }
}

impl std::error::Error for QemuError {}

/// Finds QEMU by PATH and asks it what it can do.
pub fn probe() -> Result<Qemu, QemuError> {
    let path = target::find(OsStr::new("qemu-x86_64")).map_err(|_| QemuError::Missing)?;
    probe_at(&path)
}

/// Asks the QEMU at a path what it can do.
pub fn probe_at(path: &Path) -> Result<Qemu, QemuError> {
    let ask = |option: &str| {
        let output = Command::new(path).arg(option).stdin(Stdio::null()).output();
        let output = output.map_err(|why| QemuError::Unusable(path.into(), why))?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = version(&ask("--version")?);
    let is_too_new = major(&version).is_some_and(|major| major >= TOO_NEW);
    if !ask("-h")?.lines().any(|line| line.trim_start().starts_with("-plugin")) {
        return Err(QemuError::NoPlugins(path.into()));
    }
    if is_too_new {
        return Err(QemuError::OtherInterface(path.into(), version));
    }
    Ok(Qemu { path: path.into(), version })
}

/// The word after "version".
fn version(text: &str) -> String {
    let after = text.split_whitespace().skip_while(|word| *word != "version").nth(1);
    after.unwrap_or("unknown").to_owned()
}

fn major(version: &str) -> Option<u32> {
    version.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qemu_without_plugins_or_with_newer_ones_is_told_apart() {
        let dir = super::super::scratch::Scratch::new().unwrap();
        let fake = |name: &str, version: &str, help: &str| {
            let path = dir.path().join(name);
            let script = format!(
                "#!/bin/sh\ncase $1 in --version) echo 'qemu-x86_64 version {version} (X)';; *) echo '{help}';; esac\n"
            );
            // Another process writes it: what this one writes may be open in a child that
            // another test is just starting, and then cannot be executed.
            let mut shell = Command::new("sh");
            shell.args(["-c", r#"printf %s "$1" > "$0" && chmod 755 "$0""#]).arg(&path).arg(script);
            assert!(shell.status().unwrap().success());
            probe_at(&path)
        };
        assert_eq!(fake("good", "7.2.22", "-plugin  QEMU_PLUGIN").unwrap().version, "7.2.22");
        assert!(matches!(fake("static", "7.2.22", "-seed"), Err(QemuError::NoPlugins(_))));
        let new = fake("new", "10.0.1", "-plugin  QEMU_PLUGIN").unwrap_err();
        assert!(new.to_string().contains("10.0.1"));
        let none = probe_at(Path::new("/no/such/qemu")).unwrap_err();
        assert!(matches!(none, QemuError::Unusable(..)));
    }
}
