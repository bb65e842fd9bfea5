//! The command line as a user meets it: help, mistakes, statuses.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod golden;

use std::process::{Command, Output};

fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .env("COLUMNS", "100")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn help_is_as_recorded() {
    for (arguments, name) in [
        (&["--help"][..], "help.txt"),
        (&["run", "--help"], "help-run.txt"),
        (&["model", "--help"], "help-model.txt"),
        (&["icost", "--help"], "help-icost.txt"),
        (&["calibrate", "--help"], "help-calibrate.txt"),
        (&["measure", "--help"], "help-measure.txt"),
        (&["record", "--help"], "help-record.txt"),
        (&["import", "--help"], "help-import.txt"),
        (&["prof", "--help"], "help-prof.txt"),
        (&["annotate", "--help"], "help-annotate.txt"),
        (&["calc", "--help"], "help-calc.txt"),
        (&["summary", "--help"], "help-summary.txt"),
        (&["cfg", "--help"], "help-cfg.txt"),
        (&["stats", "--help"], "help-stats.txt"),
        (&["diff", "--help"], "help-diff.txt"),
        (&["count", "--help"], "help-count.txt"),
        (&["export", "--help"], "help-export.txt"),
        (&["list", "--help"], "help-list.txt"),
        (&["stat", "--help"], "help-stat.txt"),
        (&["ssb", "--help"], "help-ssb.txt"),
    ] {
        let output = whither(arguments);
        assert_eq!(output.status.code(), Some(0));
        golden::check(name, &stdout(&output));
    }
}

#[test]
fn the_manual_page_and_completions_follow_from_the_same_definitions() {
    let page = stdout(&whither(&["man"]));
    golden::check("whither.1", &page);
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&whither(&["completions", shell]));
        for flag in ["--hottest", "--color", "--json"] {
            let spelled = if shell == "fish" { flag.trim_start_matches("--") } else { flag };
            assert!(script.contains(spelled), "{shell} does not complete {flag}");
        }
    }
}

#[test]
fn every_command_gets_a_manual_page() {
    let folder = std::env::temp_dir().join(format!("whither-man-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let output = whither(&["man", "--dir", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for page in ["whither.1", "whither-run.1", "whither-doctor.1", "whither-list.1"] {
        assert!(folder.join(page).is_file(), "{page}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn mistakes_get_one_sentence_and_the_right_status() {
    let cases: [(&[&str], i32, &str); 25] = [
        (&["docter"], 2, "'doctor'"),
        (&["list", "evnts"], 2, "'events'"),
        (&[], 2, "Usage"),
        (&["run"], 125, "PROGRAM"),
        (&["run", "--hotest", "1", "true"], 125, "'--hottest'"),
        (&["run", "-e", "instructons", "true"], 125, "did you mean 'instructions'?"),
        (&["run", "-F", "999999999", "true"], 125, "more than this kernel allows"),
        (&["run", "-o", "/no/such/folder/x", "true"], 125, "the program was not started"),
        (&["run", "no-such-program-here"], 127, "no program 'no-such-program-here'"),
        (&["run", "/etc/passwd"], 126, "not executable"),
        (&["run", "--engine", "qemu", "true"], 125, "--model"),
        (&["model", "--engine", "quemu", "true"], 125, "'qemu'"),
        (&["stat"], 125, "PROGRAM"),
        (&["stat", "-e", "cylces", "true"], 125, "did you mean 'cycles'?"),
        (&["stat", "-e", "{cycles", "true"], 125, "no partner"),
        (&["stat", "--set", "defualt", "true"], 125, "did you mean 'default'?"),
        (&["stat", "--slice", "5 parsecs", "true"], 125, "no length of a turn"),
        (&["stat", "-C", "9-1", "true"], 125, "no list of CPUs"),
        (&["stat", "--machine", "zen4", "-e", "cycles:k", "true"], 125, "user mode only"),
        (&["ssb"], 125, "PROGRAM"),
        (&["ssb", "--machine", "zen4", "--set", "sbs", "true"], 125, "did you mean 'ssb'?"),
        (&["ssb", "--machine", "zen4", "--mode", "kernel", "true"], 125, "user mode only"),
        (&["ssb", "--machine", "zen4", "no-such-program-here"], 127, "no-such-program-here"),
        (&["ssb", "--follow", "/etc/passwd"], 1, "not a counter log"),
        (&["stat", "no-such-program-here"], 127, "no program 'no-such-program-here'"),
    ];
    for (arguments, status, words) in cases {
        let output = whither(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
    }
}

#[test]
fn a_failure_is_json_when_json_was_asked_for() {
    let output = whither(&["run", "--json", "--", "no-such-program-here"]);
    let said: serde_json::Value = serde_json::from_str(&stderr(&output)).unwrap();
    assert_eq!(said["schema"], "whither.error");
    assert_eq!(said["status"], 127);
    assert!(said["what"].as_str().unwrap().contains("no-such-program-here"));
}

#[test]
fn lists_are_as_recorded() {
    // This host's own sets depend on its core; the modelled ones on nothing.
    golden::check("list-sets.txt", &stdout(&whither(&["list", "sets", "--machine", "zen4"])));
    assert!(stdout(&whither(&["list", "sets"])).contains("cache-references"));
    let events: serde_json::Value =
        serde_json::from_str(&stdout(&whither(&["list", "events", "--json"]))).unwrap();
    let names: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"cycles") && names.contains(&"task-clock"), "{names:?}");
    let machines: serde_json::Value =
        serde_json::from_str(&stdout(&whither(&["list", "machines", "--json"]))).unwrap();
    assert!(machines["machines"].as_array().unwrap().iter().any(|m| m["name"] == "zen4"));
}

#[test]
fn the_page_of_events_and_formulas_is_written_from_the_data() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/EVENTS.md");
    let written = stdout(&whither(&["list", "reference"]));
    if std::env::var_os("WHITHER_BLESS").is_some() {
        std::fs::write(page, &written).unwrap();
    }
    let kept = std::fs::read_to_string(page).unwrap();
    assert!(kept == written, "`whither list reference > docs/EVENTS.md` writes it anew");
    for formula in ["`instructions / cycles`", "`ex_no_retire.empty`", "ssb-mispredict-cycles"] {
        assert!(kept.contains(formula), "{formula}");
    }
}

#[test]
fn colour_is_written_when_asked_for_and_never_into_a_pipe_otherwise() {
    assert!(!stdout(&whither(&["doctor"])).contains('\x1b'));
    assert!(stdout(&whither(&["doctor", "--color", "always"])).contains('\x1b'));
    assert!(!stdout(&whither(&["doctor", "--color=never"])).contains('\x1b'));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let script = format!(
        "{} list events | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_whither")
    );
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
