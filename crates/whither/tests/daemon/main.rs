//! The daemon, as it is: started, asked, killed, and robbed of its disk.
//!
//! It needs what root has; where that is missing a test says so and asserts nothing. `WHITHER_SOAK`
//! makes the campaigns as long as they should be.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod scene;
mod troubled;
mod vanishing;

use std::fs;
use std::path::Path;
use std::process::Command;

use scene::{Scene, set_mode, whole};
use serde_json::Value;
use store::Database;

#[test]
fn what_the_handlers_counted_is_in_the_database_or_accounted_for() {
    let Some(mut scene) = Scene::new("counted") else { return };
    scene.start(&["--per-process"]);
    for _ in 0..20 {
        Command::new("sh").args(["-c", "ls / > /dev/null"]).status().unwrap();
    }
    let status = scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    assert_eq!(status["samples"]["adds_up"], true, "{status}");
    assert!(scene.ask(&["flush"]).status.success());
    let said = String::from_utf8(scene.stop().stdout).unwrap();
    let taken: u64 = said.split(' ').next().unwrap().parse().unwrap();
    let (tally, gaps, _) = whole(&scene.db());
    assert_eq!((tally.taken().0, tally.entries.unwrap().0), (taken, taken), "{said}");
    assert_eq!(gaps, 0);
    assert!(!scene.ask(&["status"]).status.success());
}

/// docs/JSON.md explains every key.
#[test]
fn every_key_of_the_status_is_documented() {
    let Some(mut scene) = Scene::new("keys") else { return };
    scene.start(&["--config", "mux"]);
    let status = scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/JSON.md");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("## whither.daemon, version 1\n"));
    let mut values = vec![&status];
    while let Some(value) = values.pop() {
        if let Some(object) = value.as_object() {
            for (key, inner) in object {
                assert!(page.contains(&format!("`{key}`")), "'{key}' is not explained");
                values.push(inner);
            }
        }
        values.extend(value.as_array().into_iter().flatten());
    }
    assert_eq!(status["events"].as_array().unwrap().len(), 3, "{status}");
}

#[test]
fn a_second_daemon_is_refused_by_the_name_of_the_first() {
    let Some(mut scene) = Scene::new("second") else { return };
    scene.start(&[]);
    let pid = scene.daemon.as_ref().unwrap().id();
    let refused = scene.ask(&["start"]);
    let sentence = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(sentence.contains(&format!("pid {pid}")), "{sentence}");
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    assert_eq!(scene.status()["daemon"]["pid"], pid);
}

#[test]
fn four_capabilities_are_left_in_every_thread_and_no_file_is_anyone_elses() {
    let Some(mut scene) = Scene::new("rights") else { return };
    scene.start(&[]);
    let pid = scene.daemon.as_ref().unwrap().id();
    let kept = 1 << 2 | 1 << 19 | 1 << 38 | 1_u64 << 39;
    let mut threads = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let status = fs::read_to_string(task.path().join("status")).unwrap();
        let bits = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        for name in ["CapPrm:", "CapEff:", "CapBnd:"] {
            assert_eq!(bits(name) & !kept, 0, "{name} {status}");
        }
        assert_eq!((bits("CapInh:"), bits("CapAmb:"), bits("NoNewPrivs:")), (0, 0, 1));
        threads += 1;
    }
    assert!(threads >= 1);
    assert!(scene.ask(&["flush"]).status.success());
    private(&scene.db());
}

/// 0700 for directories, 0600 for everything else, sockets included.
fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let data = fs::symlink_metadata(path).unwrap();
    let mode = data.permissions().mode() & 0o777;
    assert_eq!(mode, if data.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    if data.is_dir() {
        fs::read_dir(path).unwrap().flatten().for_each(|entry| private(&entry.path()));
    }
}

#[test]
fn an_epoch_keeps_before_and_after_apart() {
    let Some(mut scene) = Scene::new("epoch") else { return };
    scene.start(&[]);
    scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    assert!(scene.ask(&["epoch"]).status.success());
    assert_eq!(scene.status()["database"]["epoch"], 2);
    scene.stop();
    assert_eq!(Database::open(&scene.db()).epochs().unwrap().value.len(), 2);
}

#[test]
fn chains_of_callers_come_through_rings_and_add_up_too() {
    let Some(mut scene) = Scene::new("chains") else { return };
    scene.start(&["-g"]);
    let status = scene.until("a sample", |status| status["samples"]["taken"].as_u64() > Some(0));
    assert_eq!(
        (&status["daemon"]["route"], &status["samples"]["adds_up"]),
        (&"ring".into(), &true.into())
    );
    scene.stop();
    let epochs = Database::open(&scene.db()).epochs().unwrap();
    let stacks: usize =
        epochs.value.iter().map(|epoch| epoch.load().unwrap().value.stacks.len()).sum();
    assert!(stacks > 0);
    whole(&scene.db());
}

/// As another user, by way of `setpriv`: user mode, that user's own processes.
#[test]
fn without_privileges_own_processes_are_followed() {
    let Some(scene) = Scene::new("own") else { return };
    let found = Command::new("setpriv").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no setpriv here");
        return;
    }
    set_mode(&scene.folder, 0o777);
    let script = format!(
        "cd /; sh -c 'while :; do :; done' & busy=$!; \
         {whither} daemon start --db {db} --drain 0.2s --merge 0.4s && sleep 2; \
         {whither} daemon status --json --db {db}; {whither} daemon stop --db {db}; kill $busy",
        whither = env!("CARGO_BIN_EXE_whither"),
        db = scene.db().display(),
    );
    let copy = scene.folder.join("script");
    fs::write(&copy, script).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh"])
        .arg(&copy)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("Permission denied") {
        eprintln!("skipped: another user cannot reach this build: {errors}");
        return;
    }
    let status: Value =
        text.lines().find_map(|line| serde_json::from_str(line).ok()).unwrap_or_default();
    assert_eq!(status["daemon"]["route"], "own", "{text}{errors}");
    assert_eq!(status["samples"]["adds_up"], true, "{text}");
    assert!(status["samples"]["taken"].as_u64() > Some(0), "{text}");
}
