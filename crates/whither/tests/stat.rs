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

/// Whether this user may count what runs on a CPU.
fn may_look_wide() -> bool {
    let output = whither(&["-a", "-e", "cpu-clock", "--", "true"]);
    output.status.code() == Some(0)
}

#[test]
fn every_cpu_apart_has_perfs_columns_and_adds_up_to_all() {
    if !may_look_wide() {
        return;
    }
    let arguments = ["-x;", "-a", "-A", "-e", "context-switches,cpu-clock", "sleep", "0.05"];
    let ours = whither(&arguments);
    assert_eq!(ours.status.code(), Some(0), "{}", stderr(&ours));
    let text = stderr(&ours);
    let heads: Vec<&str> = text.lines().filter_map(|line| line.split(';').next()).collect();
    let cpus = heads.len() / 2;
    assert!(cpus > 0 && heads[..cpus] == heads[cpus..], "{text}");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split(';').nth(3)).collect();
    assert!(names[..cpus].iter().all(|name| *name == "context-switches"), "{text}");
    if let Some(theirs) = perf(&arguments) {
        assert_alike(&theirs, &text, &arguments);
    }
    let lines = json(&stderr(&whither(&["-j", "-a", "-A", "-e", "cs", "sleep", "0.05"])));
    let places: Vec<&str> = lines.iter().filter_map(|line| line["cpu"].as_str()).collect();
    let expected: Vec<String> = heads[..cpus].iter().map(|head| head.replace("CPU", "")).collect();
    assert_eq!(places, expected);
    // -I and the report say it too.
    let report = json(&stderr(&whither(&["--json", "-A", "-C", "0", "-e", "cs", "true"])));
    assert_eq!(report.last().unwrap()["counted"][0]["cpu"], "CPU0");
}

#[test]
fn apart_without_all_cpus_says_what_to_add() {
    for arguments in [&["-A", "-e", "cs", "true"][..], &["-e", "cs", "-G", "x", "true"]] {
        let output = whither(arguments);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains("-a") && said.lines().count() == 1, "{said}");
    }
}

/// A control group of our own, gone when dropped; none where none can be made.
struct Cgroup {
    name: String,
    path: std::path::PathBuf,
}

impl Cgroup {
    fn create(word: &str) -> Option<Cgroup> {
        let name = format!("whither-test-{word}-{}", std::process::id());
        let path = perf::cgroup_directory(&name)?;
        std::fs::create_dir(&path).ok()?;
        Some(Cgroup { name, path })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.path);
    }
}

#[test]
fn a_control_group_is_counted_by_itself() {
    if !may_look_wide() {
        return;
    }
    let (Some(busy), Some(idle)) = (Cgroup::create("busy"), Cgroup::create("idle")) else { return };
    // The program moves itself into one of the two, then works: faults in the other are none.
    let procs = busy.path.join("cgroup.procs");
    let script = format!(
        "echo $$ > {} || exit 9; i=0; while [ $i -lt 50 ]; do /bin/true; i=$((i+1)); done",
        procs.display()
    );
    let both = format!("{},{}", busy.name, idle.name);
    let arguments =
        ["-j", "-a", "-e", "page-faults", "--for-each-cgroup", &both, "sh", "-c", &script];
    let output = whither(&arguments);
    if output.status.code() == Some(9) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines = json(&stderr(&output));
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(
        (&lines[0]["cgroup"], &lines[1]["cgroup"]),
        (&busy.name.as_str().into(), &idle.name.as_str().into())
    );
    let faults: f64 = lines[0]["counter-value"].as_str().unwrap().parse().unwrap();
    // Fifty programs cannot start without a fault each.
    assert!(faults >= 50.0, "{lines:?}");
    let idle_count = lines[1]["counter-value"].as_str().unwrap();
    assert!(idle_count.starts_with('<') || idle_count.parse() == Ok(0.0), "{lines:?}");
    // perf's columns: the name stands behind the event.
    let csv = ["-x;", "-a", "-e", "page-faults", "-G", &busy.name, "true"];
    let text = stderr(&whither(&csv));
    assert_eq!(text.split(';').nth(3), Some(busy.name.as_str()), "{text}");
    if let Some(theirs) = perf(&csv) {
        assert_eq!(theirs.split(';').nth(3), Some(busy.name.as_str()), "{theirs}");
    }
}

#[test]
fn a_control_group_that_is_not_there_is_named() {
    let output = whither(&["-a", "-e", "cs", "-G", "no/such/group", "true"]);
    assert_eq!(output.status.code(), Some(125));
    let said = stderr(&output);
    assert!(said.contains("no/such/group") && said.lines().count() == 1, "{said}");
}

#[test]
fn turns_of_so_many_occurrences_are_taken_on_the_machine() {
    let script = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done";
    let arguments = [
        "--json",
        "--counters",
        "2",
        "--slice",
        "500page-faults",
        "-e",
        "task-clock,cs,minor-faults",
        "--",
        "sh",
        "-c",
        script,
    ];
    let output = whither(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&stderr(&output)).pop().unwrap();
    assert!(report["run"]["turns"].as_str().unwrap().contains("groups took turns"), "{report}");
    let nowhere = whither(&["--counters", "2", "--slice", "500 no-such-event", "-e", "cs", "true"]);
    assert_eq!(nowhere.status.code(), Some(125));
    assert!(stderr(&nowhere).contains("no length of a turn"), "{}", stderr(&nowhere));
}

#[test]
fn intervals_name_their_event_below_the_heading_whether_it_was_counted_or_not() {
    // A program that sleeps runs in few intervals; CPUs are there in all.
    for (arguments, event) in [
        (&["-I", "200", "-e", "task-clock", "--", "sleep", "1"][..], "task-clock"),
        (&["-I", "200", "-a", "-A", "-e", "cpu-clock", "--", "sleep", "0.5"][..], "cpu-clock"),
    ] {
        let text = stderr(&whither(arguments));
        let mut lines = text.lines();
        let column = lines.next().and_then(|heading| heading.find("event"));
        // The ± takes two bytes and one place.
        let place = |line: &str| line.split_once(event).map(|(before, _)| before.chars().count());
        assert!(lines.clone().count() > 1 && lines.all(|line| place(line) == column), "{text}");
        let is_said = text.contains("not counted: the target did not run");
        assert!(is_said || event == "cpu-clock", "{text}");
    }
}
