//! docs/JSON.md explains every key that is ever printed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                found.insert(key.clone());
                keys(inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, found)),
        _ => {}
    }
}

#[test]
fn every_schema_and_every_key_is_documented() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/JSON.md");
    let page = std::fs::read_to_string(page).unwrap();
    let folder = std::env::temp_dir().join(format!("whither-json-{}", std::process::id()));
    let database = folder.to_str().unwrap();
    let shell = std::fs::canonicalize("/bin/sh").unwrap();
    let shell = shell.to_str().unwrap();
    let commands: &[&[&str]] = &[
        &["doctor"],
        &["calibrate", "--runs", "2", "--machine", "icost-table6"],
        &["list", "events"],
        &["list", "sets"],
        &["list", "machines"],
        &["list", "metrics"],
        &["list", "events", "--machine", "zen4"],
        &["stat", "-e", "task-clock,cycles,page-faults", "--", "true"],
        &["stat", "-I", "50", "-e", "task-clock", "--", "sleep", "0.1"],
        &["stat", "--machine", "zen4", "--set", "ssb", "--", "true"],
        &["ssb", "--machine", "zen4", "--", "true"],
        &["stat", "--counters", "1", "-e", "task-clock,page-faults", "--", "true"],
        &[
            "run",
            "-F",
            "1999",
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
        ],
        &["run", "--", "no-such-program-here"],
        &["model", "--", "true"],
        &["run", "--model", "--", "true"],
        &["icost", "--machine", "zen4", "--", "true"],
        &["shotgun", "--machine", "icost-table6", "--", "true"],
        &["daemon", "status", "--db", "/no/such/database"],
        &[
            "record",
            "-F",
            "1999",
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
        ],
        &[
            "record",
            "-F",
            "1999",
            "--",
            "sh",
            "-c",
            "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
        ],
        &["annotate", "--image", shell],
        &["annotate", "--all", "--image", shell],
        &["calc", "--image", shell, "--machine", "zen4"],
        &["summary", "--image", shell, "--machine", "zen4"],
        &["cfg", "--image", shell, "--machine", "zen4"],
        &["stats"],
        &["diff", "1", "2", "--fail-above", "500%"],
        &["count", "--", "true"],
        &["export", "-o", "/dev/null"],
        &["prof", "by", "image"],
        &["prof", "by", "procedure"],
        &["prof", "by", "process"],
        &["prof", "by", "event"],
        &["prof", "by", "epoch"],
        &["prof", "by", "host"],
        &["import", database],
        &["model", "--record", "/dev/null", "--", "true"],
        &["measure", "--runs", "4", "--vary", "env", "--", "true"],
        &["measure", "--machine", "zen4", "--counters", "2", "-e", "cycles,loads", "--", "true"],
        &["measure", "--runs", "3", "--compare", "true", "true"],
    ];
    for arguments in commands {
        let output = Command::new(env!("CARGO_BIN_EXE_whither"))
            .arg("--json")
            .args(*arguments)
            .env("WHITHER_DB", database)
            .output()
            .unwrap();
        let printed = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
        let text = String::from_utf8_lossy(printed);
        assert!(text.lines().last().unwrap().starts_with('{'), "{arguments:?}: {text}");
        // A run that is announced says so in words first.
        for line in text.lines().filter(|line| line.starts_with('{')) {
            let json: Value = serde_json::from_str(line).unwrap();
            let heading =
                format!("## {}, version {}\n", json["schema"].as_str().unwrap(), json["version"]);
            assert!(page.contains(&heading), "no section '{}'", heading.trim());
            let mut found = BTreeSet::new();
            keys(&json, &mut found);
            for key in found {
                let known = [format!("`{key}`"), format!("\"{key}\"")];
                assert!(known.iter().any(|k| page.contains(k)), "{arguments:?} prints '{key}'");
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
