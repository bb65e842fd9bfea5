//! `whither stat` as a user meets it: perf's columns, statuses, turns, the modelled core.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::process::{Command, Output};

use serde_json::Value;

fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither")).arg("stat").args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// What perf prints with the same arguments; none where there is no perf.
fn perf(arguments: &[&str]) -> Option<String> {
    let output = Command::new("perf").arg("stat").args(arguments).output().ok()?;
    Some(stderr(&output))
}

fn json(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Lines of columns: the heading, unit and event are alike, and the numbers are numbers.
fn assert_alike(theirs: &str, ours: &str, arguments: &[&str]) {
    let (theirs, ours): (Vec<&str>, Vec<&str>) = (theirs.lines().collect(), ours.lines().collect());
    assert_eq!(theirs.len(), ours.len(), "{arguments:?}\n{theirs:?}\n{ours:?}");
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let (theirs, ours): (Vec<&str>, Vec<&str>) =
            (theirs.split(';').collect(), ours.split(';').collect());
        // Ours has two columns more: ± and the estimator.
        assert_eq!(theirs.len() + 2, ours.len(), "{arguments:?}\n{theirs:?}\n{ours:?}");
        for (place, (their, our)) in theirs.iter().zip(&ours).enumerate() {
            let number = |text: &str| text.trim().trim_end_matches('%').parse::<f64>().is_ok();
            // The scale of a rate follows its value.
            let scaled = |text: &str| text.ends_with("/sec");
            let alike =
                their == our || (number(their) && number(our)) || (scaled(their) && scaled(our));
            assert!(alike, "{arguments:?}, column {place}: {their} {our}");
        }
    }
}

#[test]
fn columns_are_perfs_field_by_field() {
    let cases: [&[&str]; 4] = [
        &["-x;", "-e", "task-clock,context-switches,page-faults,cpu-migrations", "true"],
        &["-x;", "-e", "task-clock,minor-faults,major-faults,faults,cs", "true"],
        &["-x;", "-r", "3", "-e", "task-clock,page-faults", "true"],
        &["-x;", "-a", "-e", "context-switches,cpu-clock", "sleep", "0.05"],
    ];
    for arguments in cases {
        let Some(theirs) = perf(arguments) else { return };
        if theirs.contains("not permitted") || theirs.contains("No permission") {
            return;
        }
        let ours = whither(arguments);
        assert_eq!(ours.status.code(), Some(0), "{}", stderr(&ours));
        assert_alike(&theirs, &stderr(&ours), arguments);
    }
}

#[test]
fn json_keys_are_perfs_in_perfs_order() {
    let arguments = ["-j", "-e", "task-clock,page-faults", "true"];
    let Some(theirs) = perf(&arguments) else { return };
    let ours = stderr(&whither(&arguments));
    let (theirs, ours) = (json(&theirs), json(&ours));
    // perf before 6.0 has no -j.
    for (theirs, ours) in theirs.iter().zip(&ours) {
        let keys = |object: &Value| -> Vec<String> {
            object.as_object().unwrap().keys().cloned().collect()
        };
        let (theirs, ours) = (keys(theirs), keys(ours));
        assert_eq!(theirs, ours[..theirs.len()]);
    }
    assert_eq!(ours.len(), 2);
    assert_eq!(ours[0]["estimator"], "exact");
    assert_eq!(ours[0]["uncertainty"], 0.0);
}

#[test]
fn the_programs_streams_and_status_are_its_own() {
    let output = whither(&["-e", "task-clock", "--", "sh", "-c", "echo out; exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out\n");
    assert!(stderr(&output).contains("exit status 7"));
    let killed = whither(&["-e", "task-clock", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.status.code(), Some(128 + 9));
}

#[test]
fn what_cannot_be_counted_names_the_way_out_and_is_never_zero() {
    // A raw code that no PMU can have here, or a PMU that has it: both are answers.
    let output = whither(&["--json", "-e", "cycles,task-clock", "--", "true"]);
    let report = json(&stderr(&output)).pop().unwrap();
    let cycles = &report["counted"][0];
    let count = &cycles["count"];
    if count.is_object() && count.get("not_counted").is_some() {
        let alone = whither(&["-e", "cycles", "--", "true"]);
        assert_eq!(alone.status.code(), Some(125));
        let said = stderr(&alone);
        assert!(said.contains("--machine"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        let default = stderr(&whither(&["--", "true"]));
        assert!(default.contains("task-clock") && default.contains("--machine"), "{default}");
    } else {
        assert!(count.as_u64().unwrap_or(1) > 0, "{count}");
    }
}

#[test]
fn rationed_events_take_turns_and_say_so() {
    let spin = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let output = whither(&[
        "--json",
        "--counters",
        "1",
        "--slice",
        "1ms",
        "-e",
        "task-clock,page-faults,cs",
        "--",
        "sh",
        "-c",
        spin,
    ]);
    let report = json(&stderr(&output)).pop().unwrap();
    let rows = report["counted"].as_array().unwrap();
    let mut shares = 0.0;
    for row in rows.iter().filter(|row| row["count"].get("not_counted").is_none()) {
        let share = row["counted_share"].as_f64().unwrap();
        shares += share;
        assert!(share < 1.0 && row["estimator"] != "exact", "{row}");
        assert!(row["count"].get("low").is_some(), "{row}");
    }
    // One at a time: what was counted of the time adds up to no more than the time.
    assert!(shares <= 1.001, "{shares}");
}

#[test]
fn a_file_is_written_anew_or_added_to() {
    let file = std::env::temp_dir().join(format!("whither-stat-{}", std::process::id()));
    let name = file.to_str().unwrap();
    let run = |append: &[&str]| {
        let mut arguments = vec!["-x,", "-e", "task-clock", "-o", name];
        arguments.extend(append);
        arguments.push("true");
        let output = whither(&arguments);
        assert_eq!(stderr(&output), "");
        std::fs::read_to_string(&file).unwrap().lines().count()
    };
    assert_eq!(run(&[]), 1);
    assert_eq!(run(&["--append"]), 2);
    assert_eq!(run(&[]), 1);
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn the_modelled_core_counts_the_same_twice_and_adds_up() {
    let arguments =
        ["--json", "--machine", "zen4", "-e", "instructions,branches,cycles", "--", "true"];
    let report = |_| json(&stderr(&whither(&arguments))).pop().unwrap();
    let first: Value = report(0);
    assert_eq!(first["run"]["source"], "modelled");
    let instructions = first["counted"][0]["count"].as_u64().unwrap();
    let branches = first["counted"][1]["count"].as_u64().unwrap();
    assert!(instructions > branches && branches > 0);
    let ipc = first["measures"].as_array().unwrap().iter().find(|m| m["measure"] == "ipc");
    let cycles = first["counted"][2]["count"].as_u64().unwrap();
    let expected = instructions as f64 / cycles as f64;
    assert!((ipc.unwrap()["value"].as_f64().unwrap() - expected).abs() < 1e-12);
}
