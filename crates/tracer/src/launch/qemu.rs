//! QEMU's command line, for the launcher and for the plugin that follows an exec.

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
    let name = arguments.first().cloned().unwrap_or_default();
    // A script's interpreter is called by its own name, as the kernel does.
    let name = if target.leading.is_empty() { name } else { target.executable.clone().into() };
    all.extend(["-0".into(), name, target.executable.clone().into()]);
    all.extend(target.leading.iter().cloned());
    all.extend(arguments.iter().skip(1).cloned());
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

/// Splits an environment into what QEMU itself may see and what it sets for the program only.
///
/// QEMU is a program of this machine: the dynamic linker's variables would change QEMU too.
/// Assignments are `NAME=value`. One with a comma cannot be passed by option (QEMU splits there), so
/// it stays with QEMU, which still hands it on.
pub fn split_environment(environment: Vec<OsString>) -> (Vec<OsString>, Vec<OsString>) {
    let is_for_linker = |assignment: &OsString| {
        let bytes = assignment.as_bytes();
        let named = [&b"LD_"[..], b"GLIBC_TUNABLES="].iter().any(|name| bytes.starts_with(name));
        named && !bytes.contains(&b',')
    };
    let (guest_only, host) = environment.into_iter().partition(is_for_linker);
    (host, guest_only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Listener;

    fn strings(all: &[&str]) -> Vec<OsString> {
        all.iter().map(OsString::from).collect()
    }

    #[test]
    fn a_script_runs_as_its_interpreter_with_the_script_before_the_arguments() {
        let settings = Settings { qemu: "/q".into(), seed: Some(1), listener: Listener::Null };
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

    #[test]
    fn the_linker_s_variables_reach_the_program_only() {
        let all = strings(&["A=1", "LD_PRELOAD=/x.so", "LD_AUDIT=a,b", "PATH=/bin"]);
        let (host, guest_only) = split_environment(all);
        assert_eq!(host, strings(&["A=1", "LD_AUDIT=a,b", "PATH=/bin"]));
        assert_eq!(guest_only, strings(&["LD_PRELOAD=/x.so"]));
    }
}
