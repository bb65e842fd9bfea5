//! QEMU's command line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::target::Target;
use crate::settings::{Settings, plugin_path};

/// The arguments that make QEMU run a target with the plugin, its own name left out.
///
/// `arguments` are the program's, its name first.
pub fn arguments(
    settings: &Settings,
    dir: &Path,
    target: &Target,
    guest_only: &[OsString],
    arguments: &[OsString],
) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec!["-plugin".into(), plugin_option(dir)];
    if let Some(seed) = settings.seed {
        all.extend(["-seed".into(), seed.to_string().into()]);
    }
    for assignment in guest_only {
        all.extend(["-E".into(), assignment.clone()]);
    }
    let mut call = target.arguments(arguments).into_iter();
    all.extend(["-0".into(), call.next().unwrap_or_default(), target.executable.clone().into()]);
    all.extend(call);
    all
}

/// QEMU splits the option at commas; a doubled one is meant.
fn plugin_option(dir: &Path) -> OsString {
    let escape = |path: &OsStr| {
        path.as_bytes().split(|byte| *byte == b',').collect::<Vec<_>>().join(&b",,"[..])
    };
    let mut option = escape(plugin_path(dir).as_os_str());
    option.extend_from_slice(b",dir=");
    option.extend(escape(dir.as_os_str()));
    OsString::from_vec(option)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Engine, Listener};

    fn strings(all: &[&str]) -> Vec<OsString> {
        all.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_script_runs_as_its_interpreter_with_the_script_before_the_arguments() {
        let engine = Engine::Qemu("/q".into());
        let settings = Settings { engine, seed: Some(1), listener: Listener::Null };
        let target = Target {
            executable: "/bin/sh".into(),
            leading: strings(&["-e", "/x/run"]),
            linker: None,
        };
        let all = arguments(
            &settings,
            Path::new("/d,1"),
            &target,
            &strings(&["LD_A=1"]),
            &strings(&["run", "a"]),
        );
        let expected = [
            "-plugin",
            "/d,,1/plugin.so,dir=/d,,1",
            "-seed",
            "1",
            "-E",
            "LD_A=1",
            "-0",
            "/bin/sh",
            "/bin/sh",
            "-e",
            "/x/run",
            "a",
        ];
        assert_eq!(all, strings(&expected));
    }
}
