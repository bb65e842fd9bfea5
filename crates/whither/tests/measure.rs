//! `whither measure` on real scripts: what is counted adds up, failures stay out, statuses tell.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither")).args(arguments).output().unwrap()
}

/// The report as JSON, and the status.
fn measure(arguments: &[&str]) -> (Value, i32) {
    let mut all = vec!["measure", "--json"];
    all.extend(arguments);
    let output = whither(&all);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {said} {}", String::from_utf8_lossy(&output.stdout))
    });
    (json, output.status.code().unwrap())
}

fn can_model() -> bool {
    let doctor: Value = serde_json::from_slice(&whither(&["doctor", "--json"]).stdout).unwrap();
    let engine = doctor["abilities"].as_array().unwrap().iter().find(|a| a["key"] == "engine");
    let works = engine.unwrap()["state"] == "works";
    if !works {
        eprintln!("skipped: there is no engine");
    }
    works
}

fn direct<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["direct"].as_array().unwrap().iter().find(|row| row["measure"] == name).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// A file of this test's own, gone when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("whither-m-{name}-{}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }

    /// A script that adds a line here on every run and then does `what`, `$n` being the lines.
    fn counting(&self, what: &str) -> String {
        let count = "n=0; while read -r line; do n=$((n+1)); done";
        format!("echo >> {0}; {count} < {0}; {what}", self.path())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_fixed_number_of_runs_is_made_and_not_widened() {
    let (report, status) = measure(&["--runs", "4", "--", "true"]);
    // Time on a busy machine may well differ between the halves.
    assert!(status == 0 || status == 3, "{status}");
    assert_eq!(report["schema"], "whither.measure");
    assert_eq!(number(&report["run"]["executions"]), 4);
    assert_eq!(report["run"]["ended"], "fixed");
    let wall = direct(&report, "wall-clock");
    assert_eq!(number(&wall["readings"]), 4);
    assert_eq!(wall["degrees_of_freedom"], 3.0);
    // Student's 97.5 % point at three degrees of freedom.
    let half =
        (wall["mean"]["high"].as_f64().unwrap() - wall["mean"]["low"].as_f64().unwrap()) / 2.0;
    let u = wall["standard_uncertainty"].as_f64().unwrap();
    assert!((half / u - 3.182_446).abs() < 1e-4, "{half} {u}");
    assert!(!report["notes"].to_string().contains("multiplied by"));
}

#[test]
fn runs_that_fail_are_counted_and_never_averaged_in() {
    let lines = Scratch::new("flaky", "");
    let script = lines.counting("[ $((n % 3)) -ne 0 ]");
    let (report, status) =
        measure(&["-u", "50%", "--max-runs", "12", "--warmup", "0", "--", "sh", "-c", &script]);
    assert!(status == 0 || status == 3, "{status}");
    let run = &report["run"];
    let (made, failed) = (number(&run["executions"]), number(&run["failed"]));
    assert_eq!(failed, made / 3, "every third run fails");
    assert!(failed > 0);
    assert_eq!(number(&report["spent"]["used"]) + failed, made);
    assert_eq!(number(&direct(&report, "wall-clock")["readings"]) + failed, made);
    assert!(report["notes"].to_string().contains("exit status 1"), "{}", report["notes"]);
}

#[test]
fn a_program_that_only_fails_is_refused_in_one_sentence() {
    let output = whither(&["measure", "--", "false"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("failed in each of 3 runs (exit status 1)"), "{said}");
    assert!(output.stdout.is_empty());
    let (report, _) = measure(&["-i", "--runs", "3", "--", "false"]);
    assert_eq!(number(&report["run"]["failed"]), 0);
    // A failure of one side of a comparison is found as well.
    let output = whither(&["measure", "--compare", "true", "false"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn what_was_reached_is_reported_where_the_target_was_not() {
    let (report, _) =
        measure(&["-u", "0.0001%", "--max-runs", "8", "--warmup", "0", "--", "sh", "-c", ":"]);
    let run = &report["run"];
    assert_eq!(
        (run["ended"].as_str(), run["is_reached"].as_bool()),
        (Some("out_of_runs"), Some(false))
    );
    assert_eq!(number(&run["executions"]), 8);
    assert!(run["reached"].as_f64().unwrap() > 1e-6);
    assert!(report["notes"].to_string().contains("was not reached"));
    let output = whither(&["measure", "--max-time", "50ms", "--", "sleep", "0.2"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("an uncertainty needs two"), "{said}");
}

#[test]
fn input_starts_anew_in_every_run_and_output_is_dropped_unless_asked_for() {
    let input = Scratch::new("input", "hello\n");
    let script = "read -r word; echo noise; [ \"$word\" = hello ]";
    let arguments =
        ["--runs", "5", "--warmup", "0", "--input", input.path(), "--", "sh", "-c", script];
    let (report, status) = measure(&arguments);
    assert!(status == 0 || status == 3);
    assert_eq!(number(&report["run"]["failed"]), 0);
    let mut all = vec!["measure", "--show-output"];
    all.extend(arguments);
    let shown = String::from_utf8_lossy(&whither(&all).stdout).into_owned();
    assert_eq!(shown.lines().filter(|line| *line == "noise").count(), 5);
    let output = whither(&["measure", "--input", "/no/such/file", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn fixed_warm_up_runs_are_left_out() {
    let (report, _) = measure(&["--runs", "3", "--warmup", "2", "--", "true"]);
    let run = &report["run"];
    assert_eq!((number(&run["executions"]), number(&run["warm_up"])), (5, 2));
    assert_eq!(number(&direct(&report, "wall-clock")["readings"]), 3);
}

#[test]
fn drawn_surroundings_are_held_for_two_executions_and_are_a_level() {
    // The program fails unless its environment has the same size as the time before, every second
    // time: an odd line of the file holds a size, the even one after it must repeat it.
    let sizes = Scratch::new("sizes", "");
    let script = format!(
        "f={}; now=${{#WHITHER_PADDING}}; n=$(wc -l < $f); last=$(tail -n 1 $f); echo $now >> $f; \
         [ $((n % 2)) -eq 0 ] || [ \"$last\" = \"$now\" ]",
        sizes.path()
    );
    let (report, _) = measure(&[
        "--runs",
        "12",
        "--warmup",
        "0",
        "--vary",
        "env,aslr,order",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    assert_eq!(number(&report["run"]["failed"]), 0);
    let levels = &report["levels"];
    assert_eq!((number(&levels["draws"]), number(&levels["executions_each"])), (6, 2));
    assert_eq!(number(&direct(&report, "wall-clock")["readings"]), 6);
    let text = std::fs::read_to_string(sizes.path()).unwrap();
    let distinct: std::collections::BTreeSet<&str> = text.lines().collect();
    assert!(distinct.len() >= 5, "{text}");
}

#[test]
fn mistakes_are_found_before_anything_runs() {
    let cases: [(&[&str], i32, &str); 8] = [
        (&["measure"], 2, "PROGRAM"),
        (&["measure", "-u", "0", "--", "true"], 2, "no uncertainty"),
        (&["measure", "--coverage", "100", "--", "true"], 2, "no coverage"),
        (&["measure", "--max-time", "soon", "--", "true"], 2, "no time"),
        (&["measure", "--warmup", "some", "--", "true"], 2, "auto"),
        (&["measure", "--set", "basc", "--", "true"], 2, "did you mean 'basic'?"),
        (&["measure", "--compare", "a 'b", "c"], 2, "not closed"),
        (&["measure", "--", "no-such-program-here"], 1, "no program 'no-such-program-here'"),
    ];
    for (arguments, status, words) in cases {
        let output = whither(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn events_take_turns_beside_the_measurand_on_a_modelled_core() {
    if !can_model() {
        return;
    }
    let (report, _) = measure(&[
        "--machine",
        "zen4",
        "--full",
        "--counters",
        "2",
        "-e",
        "cycles,loads,stores",
        "--warmup",
        "0",
        "--",
        "true",
    ]);
    let run = &report["run"];
    assert_eq!(run["source"], "modelled");
    let needed = number(&run["needed"]);
    // Three groups of one event: L is a multiple of R and at least twice three.
    let used = number(&report["spent"]["used"]);
    assert_eq!(used % needed, 0);
    assert!(used >= 6 && number(&report["groups"]["size"]) == needed);
    assert_eq!(number(&direct(&report, "instructions")["readings"]), used);
    let turns: Vec<u64> = ["cycles", "loads", "stores"]
        .iter()
        .map(|name| number(&direct(&report, name)["readings"]))
        .collect();
    assert_eq!(turns.iter().sum::<u64>(), used);
    assert!(turns.iter().max().unwrap() - turns.iter().min().unwrap() <= 1, "{turns:?}");
    assert_eq!(number(&report["spent"]["one_by_one"]), needed + used);
    let ipc = report["derived"].as_array().unwrap().first().unwrap();
    assert_eq!((&ipc["above"], &ipc["below"]), (&"instructions".into(), &"cycles".into()));
    assert_eq!(number(&ipc["together"]), turns[0]);
}

#[test]
fn groups_that_disagree_are_named_and_end_with_status_3() {
    if !can_model() {
        return;
    }
    // From the sixth run on the script does three times the work.
    let lines = Scratch::new("drift", "");
    let script = lines
        .counting("m=200; [ $n -gt 5 ] && m=600; i=0; while [ $i -lt $m ]; do i=$((i+1)); done");
    let (report, status) = measure(&[
        "--machine",
        "zen4",
        "--full",
        "--counters",
        "2",
        "-e",
        "cycles,loads",
        "--warmup",
        "0",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    assert_eq!(status, 3, "{report}");
    let groups = &report["groups"];
    assert_eq!((groups["agree"].as_str(), groups["overlap"].as_bool()), (Some("no"), Some(false)));
    assert_eq!(groups["worst_pair"], "1 and 2");
    assert!(groups["worst_difference"].as_f64().unwrap() > 0.01);
}

#[test]
fn a_comparison_fails_above_its_limit_and_not_below() {
    if !can_model() {
        return;
    }
    let work = |loops: u32| format!("sh -c 'i=0; while [ $i -lt {loops} ]; do i=$((i+1)); done'");
    let compare = |a: &str, b: &str| {
        let arguments =
            ["--machine", "zen4", "--full", "--runs", "3", "--fail-above", "2%", "--compare", a, b];
        measure(&arguments)
    };
    let (report, status) = compare(&work(100), &work(2000));
    assert_eq!((status, report["comparison"]["verdict"].as_str()), (3, Some("slower")));
    assert!(report["comparison"]["ratio"]["low"].as_f64().unwrap() > 1.02);
    let (report, status) = compare(&work(2000), &work(100));
    assert_eq!((status, report["comparison"]["verdict"].as_str()), (0, Some("within")));
    let pairs = number(&report["comparison"]["pairs"]);
    assert_eq!(number(&report["comparison"]["executions"]), 2 * pairs);
}
