//! `whither shotgun` from end to end.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    let words = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&words).into_owned()
}

fn json(output: &Output) -> Value {
    let words = said(output);
    let line = words.lines().rev().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{words}"))).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("whither-{name}-{}", std::process::id()))
}

/// A recorded trace that travels with the suite.
fn trace() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../suite/traces/art.trace").to_owned()
}

#[test]
fn kept_samples_say_elsewhere_what_they_said_here() {
    let file = scratch("shotgun");
    let kept = file.to_str().unwrap();
    let common = ["shotgun", "--machine", "icost-table6", "--json"];
    let mut here = common.to_vec();
    let trace = trace();
    here.extend(["--window", "5000", "--signature-every", "4000"]);
    here.extend(["--replay", &trace, "--keep", kept]);
    let here = json(&whither(&here));
    let there = whither(&["shotgun", "--json", "-i", kept]);
    std::fs::remove_file(&file).unwrap();
    let there = json(&there);
    assert_eq!(here["fragments"], there["fragments"]);
    assert_eq!(here["costs"], there["costs"]);
    assert_eq!(there["run"]["machine"], "icost-table6", "the file says where it was taken");
    // Everything that a fragment could come to is counted.
    let count = |key: &str| here["fragments"][key].as_u64().unwrap();
    let signatures = count("signatures");
    assert!(signatures > 20, "{signatures}");
    let whole = here["fragments"]["consistent"].as_f64().unwrap() * signatures as f64;
    assert!(
        (whole + (count("mended") + count("discarded")) as f64 - signatures as f64).abs() < 0.5
    );
    assert!(here["fragments"]["inferred"].as_f64().unwrap() < 0.02);
    let breakdown = here["breakdown"].as_array().unwrap();
    let total: f64 = breakdown.iter().map(|part| part["share"].as_f64().unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-6, "{total}");
}

#[test]
fn what_cannot_be_read_is_said_in_a_sentence() {
    let file = scratch("shotgun-bad");
    std::fs::write(&file, b"WHSHOTG\n\x09").unwrap();
    let refused = whither(&["shotgun", "-i", file.to_str().unwrap()]);
    assert!(said(&refused).contains("of version 9, and this program reads 1 to 2"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(1));
    std::fs::write(&file, b"hello").unwrap();
    let refused = whither(&["shotgun", "-i", file.to_str().unwrap()]);
    assert!(said(&refused).contains("holds neither shotgun samples nor a recording"));
    std::fs::remove_file(&file).unwrap();
    for (arguments, words) in [
        (&["shotgun", "-i", "/no/such/file"][..], "cannot read /no/such/file"),
        (&["shotgun", "--machine", "ppc970", "--", "true"], "its instructions travel in groups"),
        (&["shotgun", "--window", "7", "--", "true"], "a window of 7 instructions is of no use"),
        (
            &["shotgun", "--detail-every", "3", "--", "true"],
            "a step between detailed samples of 3 instructions is of no use; give from 21",
        ),
        (
            &["shotgun", "--signature-every", "10", "--", "true"],
            "a step between signatures of 10 instructions is of no use",
        ),
    ] {
        let refused = whither(arguments);
        assert!(said(&refused).contains(words), "{}", said(&refused));
        assert_ne!(refused.status.code(), Some(0));
    }
}

#[test]
fn recordings_without_their_images_or_without_branches_say_so() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures"));
    if !folder.is_dir() {
        eprintln!("skipped: there are no recordings at {}", folder.display());
        return;
    }
    let read = |name: &str| {
        let output = whither(&["shotgun", "-i", folder.join(name).to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        said(&output)
    };
    let stacks = read("autofdo/propeller_sample_1.perfdata1");
    // Of its 3740 samples, those that were taken in the program and carry branches.
    assert!(stacks.contains("none of its 3729 branch stacks can be followed"), "{stacks}");
    assert!(stacks.contains("propeller_sample_1.bin.gen: No such file"), "{stacks}");
    let loads = read("perf-data-converter/perf.data.weight_struct");
    assert!(loads.contains("no sample of a program carries a branch stack"), "{loads}");
}
