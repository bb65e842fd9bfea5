//! The command line through the real binary: exit statuses, sentences, the JSON's shape.
#![allow(clippy::unwrap_used, clippy::panic, clippy::expect_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const REPRO: &str = env!("CARGO_BIN_EXE_repro");

/// A directory with a small suite of its own, gone when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let root = std::env::temp_dir().join(format!("repro-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("suite/programs")).unwrap();
        let place = Place(root);
        place.put("suite/rows.toml", "[[row]]\nname = \"peers\"\nregenerates = \"x\"\n");
        place.put("suite/tools.toml", "package = []\nbuild = []\n");
        place
    }

    fn put(&self, path: &str, text: &str) {
        fs::write(self.0.join(path), text).unwrap();
    }

    /// A program that copies a seeded text to its output, or runs `command` instead.
    fn program(&self, name: &str, command: &str) {
        let size = format!("command = {command}\ncheck = {{ of = \"stdout\" }}\n");
        let text = format!(
            "name = \"{name}\"\nstands_for = \"x\"\nstresses = \"y\"\npackages = []\n\
             [[input]]\nfile = \"in.txt\"\nrecipe = \"markov-text\"\nseed = 3\namount = 1000\n\
             [size.quick]\n{size}[size.standard]\n{size}[size.full]\n{size}"
        );
        self.put(&format!("suite/programs/{name}.toml"), &text);
    }

    fn repro(&self, arguments: &[&str]) -> Output {
        Command::new(REPRO)
            .args(arguments)
            .current_dir(&self.0)
            .env("WHITHER_SUITE_DIR", self.0.join("work"))
            .output()
            .unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn in_repository(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(REPRO).args(arguments).current_dir(root).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const CAT: &str = "[\"cat\", \"in.txt\"]";

#[test]
fn an_unknown_row_suggests_the_nearest_and_is_a_usage_error() {
    let output = in_repository(&["mux-totl"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(err(&output), "repro: no row is called mux-totl: did you mean mux-total?\n");
    assert_eq!(in_repository(&["suite", "--write"]).status.code(), Some(2));
    assert_eq!(in_repository(&["--no-such-flag"]).status.code(), Some(2));
}

#[test]
fn a_row_that_is_on_the_page_without_code_is_said_to_be_missing() {
    let place = Place::new("missing");
    place.put("suite/rows.toml", "[[row]]\nname = \"of-the-future\"\nregenerates = \"x\"\n");
    let output = place.repro(&["of-the-future"]);
    assert_eq!(output.status.code(), Some(1));
    let expected = "repro: the row of-the-future is known but its code has not landed yet\n";
    assert_eq!(err(&output), expected);
    let list = out(&place.repro(&["list"]));
    assert!(list.contains("landed (0):") && list.contains("still missing (1):"), "{list}");
}

#[test]
fn a_wrong_checksum_and_a_failing_program_are_named_and_the_rest_goes_on() {
    let place = Place::new("wrong");
    place.program("good", CAT);
    place.program("fails", "[\"false\"]");
    place.program("tampered", CAT);
    place.program("changed", CAT);
    let entry = |program: &str, what: &str, value: &str| {
        let hash = "0".repeat(64);
        format!(
            "[[entry]]\nprogram = \"{program}\"\nwhat = {{ {what} = \"{value}\" }}\nsha256 = \"{hash}\"\n"
        )
    };
    let lock = entry("tampered", "input", "in.txt") + &entry("changed", "output", "quick");
    place.put("suite/lock.toml", &lock);
    let output = place.repro(&["prepare", "--no-install"]);
    assert_eq!(output.status.code(), Some(1));
    let said = err(&output);
    assert!(said.contains("tampered: input in.txt has sha256"), "{said}");
    assert!(said.contains("changed made another output than the recorded one"), "{said}");
    assert!(said.contains("fails ended with status 1; left out"), "{said}");
    assert!(out(&output).contains("prepare: 1 ready, 3 wrong"), "{}", out(&output));
}

#[test]
fn what_is_recorded_verifies_and_is_not_made_again() {
    let place = Place::new("resume");
    place.program("good", CAT);
    assert_eq!(place.repro(&["prepare", "--no-install", "--write"]).status.code(), Some(0));
    let again = place.repro(&["prepare", "--no-install", "--check"]);
    assert_eq!(again.status.code(), Some(0), "{}", err(&again));
    assert!(out(&again).contains("prepare: 1 ready, 0 wrong; 0 inputs made, 1 kept"));
    fs::write(place.0.join("work/programs/good/in.txt"), "spoilt").unwrap();
    assert_eq!(place.repro(&["prepare", "--no-install", "--check"]).status.code(), Some(1));
    let mended = place.repro(&["prepare", "--no-install"]);
    assert!(out(&mended).contains("1 inputs made, 0 kept"), "{}", out(&mended));
}

#[test]
fn a_package_that_is_not_there_leaves_its_program_out() {
    let place = Place::new("package");
    place.program("good", CAT);
    place.program("bare", CAT);
    let path = "suite/programs/bare.toml";
    let text = fs::read_to_string(place.0.join(path)).unwrap();
    place.put(path, &text.replace("packages = []", "packages = [\"no-such-package-anywhere\"]"));
    let output = place.repro(&["prepare", "--no-install"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("bare: not installed: no-such-package-anywhere; left out"));
    assert!(out(&output).contains("prepare: 1 ready, 1 wrong"));
}

#[test]
fn an_unknown_key_is_an_error_that_names_file_and_key() {
    let place = Place::new("key");
    place.program("good", CAT);
    let path = "suite/programs/good.toml";
    let text = fs::read_to_string(place.0.join(path)).unwrap();
    place.put(path, &text.replace("seed = 3", "sede = 3"));
    let output = place.repro(&["list"]);
    assert_eq!(output.status.code(), Some(1));
    let said = err(&output);
    assert!(
        said.starts_with("repro: suite/programs/good.toml: line 8: unknown key `sede`"),
        "{said}"
    );
}

#[test]
fn a_row_prints_one_object_with_the_pages_keys() {
    let place = Place::new("json");
    let output = place.repro(&["peers", "--quick", "--json", "--cmd", "true", "--seed", "7"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["name"], "peers");
    for key in ["paper", "ours", "goal", "run"] {
        assert!(object[key].is_object(), "{key} in {object}");
    }
    assert!(object["met"].is_null() && object["detail"].is_array());
    assert_eq!(object["size"], "command");
    assert_eq!(object["run"]["seeds"]["row"], 7);
    assert!(object["run"]["machine"]["processor"].is_string());
    // No bar and no colour may reach the stream that a program reads.
    assert!(!out(&output).contains('\u{1b}'));
}

#[test]
fn a_command_that_fails_is_named_and_the_next_one_still_runs() {
    let place = Place::new("cmd");
    let arguments = ["peers", "--quick", "--json", "--cmd", "false", "--cmd", "true"];
    let output = place.repro(&arguments);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("repro: false ended with status 1; left out"),
        "{}",
        err(&output)
    );
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["wrong"][0], "false ended with status 1; left out");
    let programs: Vec<&Value> =
        object["detail"].as_array().unwrap().iter().map(|row| &row["program"]).collect();
    assert!(programs.iter().all(|name| *name == "true"));
}

#[test]
fn results_are_written_without_a_path_of_the_machine() {
    let place = Place::new("write");
    place.program("good", CAT);
    let output = place.repro(&["all", "--quick", "--write", "--cmd", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = fs::read_to_string(place.0.join("docs/RESULTS.md")).unwrap();
    assert!(text.starts_with("# Results\n") && text.contains("## peers"));
    assert!(!text.contains(place.0.to_str().unwrap()), "{text}");
}
