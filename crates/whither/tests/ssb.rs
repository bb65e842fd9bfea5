//! `whither ssb` as a user meets it: parts that add up, a log that another follows, the way out.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither")).arg("ssb").args(arguments).output().unwrap()
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(bytes).lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn value(cell: &Value) -> f64 {
    cell.as_f64().or_else(|| cell["value"].as_f64()).unwrap_or_else(|| panic!("{cell}"))
}

fn log_path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("whither-ssb-{}-{name}", std::process::id()))
}

const SPIN: &str = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); done; exit 5";

#[test]
fn causes_and_the_rest_add_up_in_every_interval_and_the_status_is_the_programs() {
    let output = whither(&[
        "--json",
        "--machine",
        "ppc970",
        "-I",
        "0.05",
        "--slice",
        "10000",
        "--",
        "sh",
        "-c",
        SPIN,
    ]);
    assert_eq!(output.status.code(), Some(5));
    let lines = lines(&output.stderr);
    let (report, intervals) = lines.split_last().unwrap();
    assert_eq!(report["schema"], "whither.ssb");
    assert!(intervals.len() > 2, "{}", intervals.len());
    let mut whole = 0;
    for line in intervals {
        assert_eq!(line["interval"]["source"], "modelled");
        // sh, or what it is a link to; never a library.
        assert!(line["interval"]["program"].as_str().unwrap().ends_with("sh"), "{line}");
        let rows = line["causes"].as_array().unwrap();
        // Seven causes, the rest, and what of it nobody claims.
        assert_eq!(rows.len(), 9);
        if rows.iter().any(|row| row["cpi"].get("not_counted").is_some()) {
            continue;
        }
        let parts = rows.iter().filter(|row| row["cause"] != "unclaimed");
        let sum: f64 = parts.map(|row| value(&row["cpi"])).sum();
        assert!((sum - value(&line["interval"]["cpi"])).abs() < 1e-9, "{line}");
        whole += 1;
    }
    assert!(whole > 0);
}

#[test]
fn another_process_follows_the_log_and_sees_the_same() {
    let path = log_path("follow");
    let name = path.to_str().unwrap();
    let first = whither(&[
        "--json",
        "--machine",
        "zen4",
        "-I",
        "0.05",
        "--slice",
        "10000",
        "--log",
        name,
        "--",
        "sh",
        "-c",
        SPIN,
    ]);
    let second = whither(&["--json", "-I", "0.05", "--follow", name]);
    assert_eq!(second.status.code(), Some(0), "{}", String::from_utf8_lossy(&second.stderr));
    let (first, second) = (lines(&first.stderr), lines(&second.stdout));
    assert_eq!(first.len(), second.len());
    for (one, other) in first.iter().zip(&second) {
        assert_eq!(one["interval"], other["interval"]);
        assert_eq!(one["causes"], other["causes"]);
    }
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn a_log_is_followed_while_it_is_written() {
    let path = log_path("live");
    std::fs::write(&path, b"").unwrap();
    let follower = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(["ssb", "--json", "-I", "0.05", "--follow"])
        .arg(&path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let name = path.to_str().unwrap();
    let writer = whither(&[
        "--json",
        "--machine",
        "zen4",
        "-I",
        "0.05",
        "--slice",
        "10000",
        "--log",
        name,
        "--",
        "true",
    ]);
    let followed = follower.wait_with_output().unwrap();
    let (wrote, saw) = (lines(&writer.stderr), lines(&followed.stdout));
    assert!(!saw.is_empty());
    assert_eq!(wrote.len(), saw.len());
    assert_eq!(wrote[0]["interval"]["instructions"], saw[0]["interval"]["instructions"]);
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn without_a_pmu_one_sentence_names_the_modelled_core() {
    let output = whither(&["--plain", "-I", "10", "--", "true"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match output.status.code() {
        // A machine with a PMU and a core that we know.
        Some(0) => assert!(said.contains("CPI"), "{said}"),
        Some(125) => {
            assert!(said.contains("--machine"), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
        other => panic!("{other:?}: {said}"),
    }
}
