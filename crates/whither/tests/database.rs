//! The database as a user meets it: record, import, prof.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

/// A database of this test's own.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("whither-database-{}-{number}", std::process::id());
        Folder(std::env::temp_dir().join(name))
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let whither = Command::new(env!("CARGO_BIN_EXE_whither"))
            .args(arguments)
            .env("WHITHER_DB", &self.0)
            .output();
        whither.unwrap()
    }

    /// The one line of JSON, wherever it went.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[&["--json"], arguments].concat());
        let said = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
        let text = String::from_utf8_lossy(said);
        serde_json::from_str(text.lines().last().unwrap()).unwrap_or_else(|_| panic!("{text}"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn fixtures() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    if !root.is_dir() {
        eprintln!("skipped: there is no ../shared/fixtures beside the project");
        return None;
    }
    Some(root)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn sum(view: &Value) -> u64 {
    view["rows"].as_array().unwrap().iter().map(|row| row["samples"].as_u64().unwrap()).sum()
}

fn words(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((8 + body.len() as u16).to_le_bytes());
    bytes.extend(body);
    bytes
}

/// A tiny recording in the form of a pipe: one map, three samples in it, one beside it, two lost.
fn tiny() -> Vec<u8> {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[16]));
    bytes.extend(record(64, 0, &words(&[64 << 32, 0, 1000, 0b111, 0, 0, 0, 0])));
    let mut map = words(&[7 | 7 << 32, 0x4000, 0x1000, 0]);
    map.extend(b"/opt/\x1b[31mevil\0\0\0");
    bytes.extend(record(1, 2, &map));
    for (time, pc) in [0x4010, 0x4010, 0x4020, 0x9000].into_iter().enumerate() {
        bytes.extend(record(9, 2, &words(&[pc, 7 | 7 << 32, 10 + time as u64])));
    }
    bytes.extend(record(2, 0, &words(&[1, 2])));
    bytes
}

fn import_from_stdin(folder: &Folder, bytes: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_whither"))
        .args(["import", "-", "--host", "away"])
        .env("WHITHER_DB", &folder.0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn a_recording_from_a_pipe_is_shown_with_its_unplaced_and_its_lost() {
    let folder = Folder::new();
    let output = import_from_stdin(&folder, &tiny());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let view = folder.json(&["prof", "by", "image"]);
    assert_eq!(view["schema"], "whither.prof");
    assert_eq!(view["samples"]["taken"], 6);
    assert_eq!(view["samples"]["stored"], 3);
    assert_eq!(view["samples"]["unplaced"], 1);
    assert_eq!(view["samples"]["lost"], 2);
    assert_eq!(sum(&view), 3 + 1, "the unplaced are a row");
    assert_eq!(view["rows"][0]["image"], "/opt/\x1b[31mevil");
    let text = String::from_utf8(folder.run(&["prof", "by", "image"]).stdout).unwrap();
    assert!(!text.contains('\x1b'), "a path must not reach the terminal as it is");
    for by in ["procedure", "process", "event"] {
        assert_eq!(sum(&folder.json(&["prof", "by", by])), 4, "by {by}");
    }
    for by in ["epoch", "host"] {
        let view = folder.json(&["prof", "by", by]);
        assert_eq!(sum(&view), 3, "by {by}");
        assert_eq!(
            (&view["rows"][0]["unplaced"], &view["rows"][0]["lost"]),
            (&1.into(), &2.into())
        );
    }
}

#[test]
fn what_came_before_the_damage_is_imported_and_the_status_says_so() {
    let folder = Folder::new();
    let mut bytes = tiny();
    bytes.extend([9, 0, 0, 0, 2, 0, 0, 0]);
    let output = import_from_stdin(&folder, &bytes);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("says that it has 0 bytes"), "{said}");
    assert!(said.contains("the 6 samples before that are in epoch 1"), "{said}");
    assert_eq!(folder.json(&["prof"])["samples"]["taken"], 6);
}

#[test]
fn every_recording_is_imported_with_the_samples_that_are_stated() {
    let Some(root) = fixtures() else { return };
    let folder = Folder::new();
    let stated = [
        ("busy.1-3.4", 11_778, 0),
        ("callgraph_and_branch-3.8", 1_856, 0),
        ("branch-4.14", 13, 0),
        ("weight_struct", 14, 0),
        ("group_desc-4.14", 13, 0),
        ("hw_and_sw-3.4", 4_941, 0),
        ("singleprocess-3.8", 13, 0),
        ("hybrid_topology", 7, 0),
        ("lost_samples-4.4", 191, 2),
        ("proc.map.timeout-3.18", 8, 0),
        ("piped.target-3.8", 5_218, 0),
        ("piped.header_features_aligned-6.12", 9, 0),
    ];
    let mut all = 0;
    for (name, samples, lost) in stated {
        let path = root.join(format!("perf-data-converter/perf.data.{name}"));
        let view = folder.json(&["import", path.to_str().unwrap()]);
        assert_eq!(view["samples"]["taken"], samples + lost, "{name}");
        assert_eq!(view["samples"]["lost"], lost, "{name}");
        all += samples + lost;
    }
    assert_eq!(folder.json(&["prof", "by", "event"])["samples"]["taken"], all);
    let branches = root.join("autofdo/propeller_sample_1.perfdata1");
    let view = folder.json(&["import", branches.to_str().unwrap()]);
    assert_eq!(view["imported"]["branches"], 119_424);
    let corrupt = root.join("perf-data-converter/perf.data.piped.corrupted.zero_size_sample-3.2");
    let output = folder.run(&["import", corrupt.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.lines().count() == 1 && said.contains("at byte 49104"), "{said}");
}

#[test]
fn another_database_is_merged_into_one_epoch() {
    let (from, into) = (Folder::new(), Folder::new());
    import_from_stdin(&from, &tiny());
    import_from_stdin(&from, &tiny());
    let view = into.json(&["import", from.0.to_str().unwrap()]);
    assert_eq!(view["imported"]["epochs"], 2);
    let view = into.json(&["prof", "by", "image"]);
    assert_eq!(view["database"]["epochs"], 1);
    assert_eq!((sum(&view), &view["samples"]["lost"]), (8, &4.into()));
}

#[test]
fn a_recorded_program_keeps_its_status_and_its_samples_add_up() {
    let folder = Folder::new();
    let script = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; exit 5";
    let output = folder.run(&["record", "-g", "-F", "1999", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let view = folder.json(&["prof"]);
    let samples = &view["samples"];
    let number = |key: &str| samples[key].as_u64().unwrap();
    assert_eq!(number("taken"), number("stored") + number("unplaced") + number("lost"));
    assert_eq!(sum(&view), number("stored") + number("unplaced"));
    let processes = folder.json(&["prof", "by", "process"]);
    assert_eq!(processes["rows"][0]["process"], "sh");
    assert_eq!(folder.json(&["prof", "by", "epoch", "--since", "1h"])["rows"][0]["epoch"], 1);
    let nothing = folder.run(&["prof", "--until", "2001-01-01"]);
    assert_eq!(nothing.status.code(), Some(1));
    assert!(stderr(&nothing).contains("matches"), "{}", stderr(&nothing));
}

#[test]
fn modelled_samples_are_kept_apart_and_labelled_and_follow_from_their_seed() {
    let folder = Folder::new();
    let run = |seed: &str| {
        let model = ["record", "--machine", "icelake-server", "-c", "2000", "--seed", seed];
        let view = folder.json(&[&model[..], &["-e", "cycles,branches", "--", "true"]].concat());
        assert_eq!(view["recorded"]["source"], "modelled", "{view}");
    };
    run("7");
    let measured = folder.run(&["prof"]);
    assert_eq!(measured.status.code(), Some(1));
    assert!(stderr(&measured).contains("--modelled shows them"), "{}", stderr(&measured));
    let view = folder.json(&["prof", "--modelled", "by", "event"]);
    assert_eq!(view["database"]["source"], "modelled");
    let machine = view["database"]["machine"].as_str().unwrap();
    assert_eq!(machine, "icelake-server (seed 7, period 2000)");
    assert_eq!(view["rows"].as_array().unwrap().len(), 2, "{view}");
    assert_eq!(sum(&view), view["samples"]["stored"].as_u64().unwrap());
    let summary = folder.json(&["summary", "--modelled", "--event", "cycles"]);
    let evidence = summary["cpi"]["evidence"].as_str().unwrap();
    assert!(evidence.starts_with("samples of cycles") && evidence.contains("double samples"));
    run("8");
    let both = folder.json(&["prof", "--modelled", "by", "epoch"]);
    assert_eq!(both["rows"].as_array().unwrap().len(), 2);
}

#[test]
fn mistakes_get_one_sentence_and_the_right_status() {
    let folder = Folder::new();
    let cases: [(&[&str], i32, &str); 8] = [
        (&["prof"], 1, "there is nothing in the database"),
        (&["prof", "by", "imgae"], 2, "did you mean 'image'?"),
        (&["prof", "by", "image", "--since", "soon"], 2, "'soon' is no time"),
        (&["import", "/no/such/perf.data"], 1, "cannot read /no/such/perf.data"),
        (&["import", "/etc/passwd"], 1, "this is not a perf.data file"),
        (&["record"], 125, "PROGRAM"),
        (&["record", "-C", "x", "--", "true"], 125, "'x' is no list of CPUs"),
        (&["record", "--machine", "zen4", "-e", "cylces", "--", "true"], 125, "'cycles'"),
    ];
    for (arguments, status, words) in cases {
        let output = folder.run(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}
