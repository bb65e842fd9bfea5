//! `whither model` on real programs: closed forms and identities, exact; reports; refusals.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod counting;
mod refusing;
mod reporting;

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn whither(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whither")).args(arguments).output().unwrap()
}

/// Whether there is an engine: our own, or qemu-user with plugins.
pub(crate) fn can_model() -> bool {
    let doctor: Value = serde_json::from_slice(&whither(&["doctor", "--json"]).stdout).unwrap();
    let engine = doctor["abilities"].as_array().unwrap().iter().find(|a| a["key"] == "engine");
    let engine = engine.unwrap();
    if engine["state"] != "works" {
        eprintln!("skipped: {}", engine["why"]);
    }
    engine["state"] == "works"
}

pub(crate) fn modelled(arguments: &[&str]) -> Value {
    modelled_as(&["--full"], arguments)
}

pub(crate) fn modelled_as(options: &[&str], arguments: &[&str]) -> Value {
    let mut all = vec!["model", "--json", "--machine", "zen4", "--pin"];
    all.extend(options);
    all.push("--");
    all.extend(arguments);
    let output = whither(&all);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_str(text.lines().last().unwrap_or_default())
        .unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A folder of this test's own, gone when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("whither-model-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Compiles or assembles; none where there is no compiler.
    pub(crate) fn program(&self, source: &str, suffix: &str, flags: &[&str]) -> Option<String> {
        let (input, program) = (self.0.join(format!("program.{suffix}")), self.0.join("program"));
        std::fs::write(&input, source).unwrap();
        let built =
            Command::new("cc").arg("-o").arg(&program).arg(&input).args(flags).status().ok();
        let Some(built) = built else {
            eprintln!("skipped: there is no C compiler");
            return None;
        };
        assert!(built.success());
        Some(program.to_str().unwrap().to_owned())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn sum(rows: &Value, key: &str) -> u64 {
    rows.as_array().unwrap().iter().map(|row| row[key].as_u64().unwrap()).sum()
}

pub(crate) fn count(report: &Value, event: &str) -> u64 {
    let counters = report["counters"].as_array().unwrap();
    counters.iter().find(|row| row["event"] == event).unwrap()["count"].as_u64().unwrap()
}
