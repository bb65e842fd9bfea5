//! `whither run` on real programs: identities only, never a duration or a rate.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn whither() -> Command {
    Command::new(env!("CARGO_BIN_EXE_whither"))
}

fn run(arguments: &[&str]) -> Output {
    whither().arg("run").args(arguments).output().unwrap()
}

/// The report as JSON: the last line of stderr.
fn report(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Whether perf events can be opened at all; a sandbox may forbid them.
fn can_sample() -> bool {
    let output = whither().args(["doctor", "--json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&output.stdout).unwrap();
    let abilities = doctor["abilities"].as_array().unwrap();
    let works = abilities.iter().any(|a| a["key"] == "sample_own" && a["state"] == "works");
    if !works {
        eprintln!("skipped: perf events cannot be opened here; `whither doctor` says why");
    }
    works
}

/// A folder of this test's own, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("whither-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn script(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        // Another process writes it: what this one writes may be open in a child that another
        // test is just starting, and then cannot be executed.
        let mut shell = Command::new("sh");
        shell.args(["-c", r#"printf %s "$1" > "$0" && chmod 755 "$0""#]).arg(&path).arg(text);
        assert!(shell.status().unwrap().success());
        path.to_str().unwrap().to_owned()
    }

    /// Compiles C; none where there is no compiler.
    fn program(&self, name: &str, source: &str, flags: &[&str]) -> Option<String> {
        let (input, program) = (self.0.join(format!("{name}.c")), self.0.join(name));
        std::fs::write(&input, source).unwrap();
        let compiled =
            Command::new("cc").args(flags).arg("-o").arg(&program).arg(&input).status().ok()?;
        assert!(compiled.success());
        Some(program.to_str().unwrap().to_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_programs_streams_and_status_are_its_own() {
    if !can_sample() {
        return;
    }
    let mut child = whither()
        .args(["run", "-o", "/dev/null", "--", "sh", "-c", "cat; echo err >&2; exit 42"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(42));
    assert_eq!(output.stdout, b"through");
    assert_eq!(output.stderr, b"err\n");
}

#[test]
fn a_killed_program_gives_128_and_its_signal() {
    if !can_sample() {
        return;
    }
    let output = run(&["--json", "--", "sh", "-c", "kill -SEGV $$"]);
    assert_eq!(output.status.code(), Some(128 + 11));
    assert_eq!(report(&output)["run"]["ended"], "killed by signal 11");
}

#[test]
fn every_sample_taken_is_stored_unplaced_or_lost() {
    if !can_sample() {
        return;
    }
    let output = run(&[
        "--json",
        "-F",
        "4999",
        "--",
        "sh",
        "-c",
        "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done",
    ]);
    assert_eq!(output.status.code(), Some(0));
    let report = report(&output);
    let number = |key: &str| report["sampling"][key].as_u64().unwrap();
    assert_eq!(number("taken"), number("stored") + number("unplaced") + number("lost"));
    let sum = |section: &str| -> u64 {
        let rows = report[section].as_array().unwrap().iter();
        rows.map(|row| row["samples"].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("images"), number("stored") + number("unplaced"));
    assert_eq!(sum("procedures"), number("stored"));
    assert_eq!(report["schema"], "whither.run");
}

/// All of the program's time is in one procedure, so that it comes first however few the samples.
const SPIN: &str = "#include <stdlib.h>\n\
    __attribute__((noinline)) unsigned spin(unsigned n) {\n\
      volatile unsigned x = 0; for (unsigned i = 0; i < n; i++) x += i; return x; }\n\
    int main(int c, char **v) { return spin(c > 1 ? atoi(v[1]) : 300000000) == 1; }\n";

#[test]
fn the_hot_procedure_is_named_and_its_code_carries_its_samples() {
    let folder = Folder::new("spin");
    let Some(program) = folder.program("spin", SPIN, &["-O1", "-no-pie"]) else {
        eprintln!("skipped: there is no C compiler");
        return;
    };
    if !can_sample() {
        return;
    }
    let output = run(&["--json", "--", &program]);
    let report = report(&output);
    let first = &report["procedures"][0];
    assert_eq!(
        (&first["procedure"], &first["image"]),
        (&"spin".into(), &"spin".into()),
        "{report}"
    );
    assert_eq!(first["named_by"], "symbol table");
    let code = report["hottest"][0]["rows"].as_array().unwrap();
    let on_code: u64 = code.iter().filter_map(|row| row["samples"].as_u64()).sum();
    assert_eq!(on_code, first["samples"].as_u64().unwrap());
}

#[test]
fn a_stripped_program_is_divided_by_its_unwind_table() {
    let folder = Folder::new("stripped");
    let Some(program) = folder.program("spin", SPIN, &["-O1", "-s"]) else {
        eprintln!("skipped: there is no C compiler");
        return;
    };
    if !can_sample() {
        return;
    }
    let report = report(&run(&["--json", "--", &program]));
    let first = &report["procedures"][0];
    assert_eq!(first["named_by"], "unwind table", "{report}");
    assert!(first["procedure"].as_str().unwrap().starts_with("spin+0x"), "{first}");
    let notes = report["notes"].to_string();
    assert!(notes.contains("Stripped"), "{notes}");
}

#[test]
fn forked_and_executed_children_are_placed_too() {
    let folder = Folder::new("children");
    let Some(program) = folder.program("spin", SPIN, &["-O1"]) else {
        eprintln!("skipped: there is no C compiler");
        return;
    };
    if !can_sample() {
        return;
    }
    let script = format!("{program} 100000000 & {program} 100000000 & wait");
    // User mode: a kernel may run code of its own making, which lies in no image.
    let report = report(&run(&["--json", "-e", "cpu-clock:u", "--", "sh", "-c", &script]));
    assert_eq!(report["procedures"][0]["procedure"], "spin", "{report}");
    assert_eq!(report["sampling"]["unplaced"], 0, "{report}");
}

#[test]
fn a_script_runs_and_the_report_says_what_is_seen() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new("script");
    let script = folder.script("job", "#!/bin/sh\nexit 3\n");
    let output = run(&["--json", "--", &script]);
    assert_eq!(output.status.code(), Some(3));
    let notes = report(&output)["notes"].to_string();
    assert!(notes.contains("is a script") && notes.contains("/bin/sh"), "{notes}");
}

#[test]
fn files_that_cannot_run_get_one_sentence() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new("broken");
    let no_line = folder.script("no-line", "echo hello\n");
    let no_interpreter = folder.script("no-interpreter", "#!/no/such/interpreter\n");
    let truncated = folder.script("truncated", "\x7fELF");
    for (file, words) in [
        (&no_line, "neither a program for this machine nor a script"),
        (&no_interpreter, "its interpreter '/no/such/interpreter' is not there"),
        (&truncated, "neither a program for this machine nor a script"),
    ] {
        let output = run(&["--", file]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(126), "{said}");
        assert!(said.contains(words), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn an_interrupt_ends_the_program_and_the_report_is_still_written() {
    if !can_sample() {
        return;
    }
    // SIGTERM to whither is passed on; the shell dies of it.
    let child = whither()
        .args(["run", "--json", "--", "sh", "-c", "echo up; exec sleep 600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = child;
    let mut up = [0; 3];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
    // SAFETY: a signal to a process that this test started and has not waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), None);
    assert_eq!(output.status.code(), Some(128 + 15));
    assert_eq!(report(&output)["run"]["ended"], "killed by signal 15");
}

#[test]
fn the_report_goes_to_a_file_when_asked() {
    if !can_sample() {
        return;
    }
    let folder = Folder::new("file");
    let file = folder.0.join("report.txt");
    let output = run(&["-o", file.to_str().unwrap(), "--", "true"]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("whither run: true\n") && Path::new(&file).is_file(), "{text}");
}

#[test]
fn hardware_events_are_sampled_where_there_is_a_pmu() {
    let output = whither().args(["doctor", "--json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&output.stdout).unwrap();
    let abilities = doctor["abilities"].as_array().unwrap();
    let pmu = abilities.iter().find(|ability| ability["key"] == "pmu").unwrap();
    if pmu["state"] != "works" {
        eprintln!("skipped: {}", pmu["why"]);
        let refused = run(&["-e", "cycles", "--", "true"]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(125), "{said}");
        assert!(said.contains("the program was not started"), "{said}");
        return;
    }
    let report = report(&run(&["--json", "-e", "cycles", "--", "sh", "-c", ":"]));
    assert_eq!(report["sampling"]["event"], "cycles");
}
