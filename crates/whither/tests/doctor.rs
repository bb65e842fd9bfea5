//! `whither doctor` in real circumstances: an ordinary user, a seccomp filter.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

const NOBODY: u32 = 65534;

/// The program where every user can execute it.
fn reachable(name: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = std::env::temp_dir().join(format!("whither-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = folder.join("whither");
    // Another process copies it: what this one has written may still be open in a child that
    // another test is just starting, and then cannot be executed.
    let mut cp = Command::new("cp");
    assert!(cp.arg(env!("CARGO_BIN_EXE_whither")).arg(&copy).status().unwrap().success());
    copy
}

fn ability<'a>(doctor: &'a Value, key: &str) -> &'a Value {
    doctor["abilities"].as_array().unwrap().iter().find(|ability| ability["key"] == key).unwrap()
}

fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions.
    unsafe { libc::geteuid() == 0 }
}

fn doctor(command: &mut Command) -> Value {
    let output = command.args(["doctor", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn every_ability_has_a_state_and_what_fails_has_a_remedy() {
    let doctor = doctor(&mut Command::new(env!("CARGO_BIN_EXE_whither")));
    assert_eq!((&doctor["schema"], &doctor["version"]), (&"whither.doctor".into(), &1.into()));
    for ability in doctor["abilities"].as_array().unwrap() {
        let works = ability["state"] == "works";
        assert_eq!(works, ability["remedy"].is_null(), "{ability}");
        assert!(!ability["why"].as_str().unwrap().is_empty(), "{ability}");
    }
}

#[test]
fn an_ordinary_user_is_told_what_is_not_permitted() {
    if !is_root() {
        eprintln!("skipped: only root can become another user");
        return;
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    if paranoid.trim() != "2" {
        eprintln!("skipped: kernel.perf_event_paranoid is not 2");
        return;
    }
    let copy = reachable("nobody");
    let doctor = doctor(Command::new(&copy).uid(NOBODY).gid(NOBODY));
    assert_eq!(ability(&doctor, "sample_own")["state"], "works", "{doctor}");
    for key in ["sample_kernel", "sample_all"] {
        assert_eq!(ability(&doctor, key)["state"], "not_permitted", "{doctor}");
        assert!(ability(&doctor, key)["why"].as_str().unwrap().contains("paranoid"), "{doctor}");
    }
    let run = Command::new(&copy)
        .args(["run", "--json", "--", "true"])
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let notes = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(notes.contains("is not sampled: not permitted"), "{notes}");
    std::fs::remove_dir_all(copy.parent().unwrap()).unwrap();
}

/// A filter that answers `perf_event_open` with EPERM, as container runtimes install it.
fn forbid_perf_events() -> std::io::Result<()> {
    const LOAD_SYSCALL: libc::sock_filter = libc::sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let jump = libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_perf_event_open as u32 };
    let refuse =
        libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x0005_0000 | libc::EPERM as u32 };
    let allow = libc::sock_filter { code: 0x06, jt: 0, jf: 0, k: 0x7fff_0000 };
    let mut filter = [LOAD_SYSCALL, jump, refuse, allow];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the program points to a live array; both calls affect this process alone.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if installed { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[test]
fn a_seccomp_filter_is_told_from_a_missing_event() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whither"));
    // SAFETY: the child only makes two prctl calls on memory of its own.
    unsafe { command.pre_exec(forbid_perf_events) };
    let doctor = doctor(&mut command);
    let own = ability(&doctor, "sample_own");
    assert_eq!(own["state"], "not_permitted", "{doctor}");
    assert!(own["why"].as_str().unwrap().contains("seccomp"), "{own}");

    let mut command = Command::new(env!("CARGO_BIN_EXE_whither"));
    // SAFETY: as above.
    unsafe { command.pre_exec(forbid_perf_events) };
    let output = command.args(["run", "--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("seccomp") && said.contains("not started"), "{said}");
}
