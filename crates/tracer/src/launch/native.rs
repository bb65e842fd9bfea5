//! The native engine's command line.

use std::ffi::OsString;
use std::path::Path;

use super::target::Target;

/// The arguments that make the native engine run a target, its own name left out:
///
/// ```text
/// DIR COUNT ASSIGNMENT... EXECUTABLE NAME ARGUMENT...
/// ```
///
/// COUNT says how many assignments follow, which the program's environment has beside the engine's.
/// `arguments` are the program's, its name first.
pub fn arguments(
    dir: &Path,
    target: &Target,
    guest_only: &[OsString],
    arguments: &[OsString],
) -> Vec<OsString> {
    let mut all: Vec<OsString> = vec![dir.into(), guest_only.len().to_string().into()];
    all.extend(guest_only.iter().cloned());
    all.push(target.executable.clone().into());
    all.extend(target.arguments(arguments));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_are_counted_and_a_script_runs_as_its_interpreter() {
        let strings = |all: &[&str]| all.iter().map(OsString::from).collect::<Vec<_>>();
        let leading = strings(&["-e", "/x/run"]);
        let target = Target { executable: "/bin/sh".into(), leading, linker: None };
        let call = strings(&["run", "a"]);
        let all = arguments(Path::new("/d"), &target, &strings(&["LD_A=1", "LD_B=2"]), &call);
        let expected = ["/d", "2", "LD_A=1", "LD_B=2", "/bin/sh", "/bin/sh", "-e", "/x/run", "a"];
        assert_eq!(all, strings(&expected));
        let plain = Target { executable: "/x/run".into(), leading: Vec::new(), linker: None };
        let all = arguments(Path::new("/d"), &plain, &[], &call);
        assert_eq!(all, strings(&["/d", "0", "/x/run", "run", "a"]));
    }
}
