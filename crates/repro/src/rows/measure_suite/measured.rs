//! `whither measure` on a program, its report read back.

use std::path::Path;

use serde_json::Value;

use crate::context::Context;
use crate::peers::our_binary;
use crate::run::{self, Task, Wrap};

/// The paper's nine events beside instructions, as the modelled core counts them: cycles; branches
/// and mispredicted ones; misses of the first and second level; the stalls of section 4.
pub(in crate::rows) const EVENTS: [&str; 9] = [
    "cycles",
    "branches",
    "branch-misses",
    "l1d-load-misses",
    "l2-load-misses",
    "stall-mispredict-cycles",
    "load-queue-full-cycles",
    "rob-full-cycles",
    "scheduler-full-cycles",
];
/// General counters, the measurand's included.
pub(in crate::rows) const COUNTERS: usize = 4;

/// Measures a program with these options; the report.
///
/// # Errors
///
/// A sentence: it cannot be measured so.
pub(in crate::rows) fn measure(
    context: &Context,
    task: &Task,
    options: &[&str],
    streams: &Path,
) -> Result<Value, String> {
    if !task.clients.is_empty() {
        return Err(format!("{} is a server: it does not end by itself", task.name));
    }
    let report = streams.join("measured.json");
    let _ = std::fs::remove_file(&report);
    let report_text = report.to_string_lossy().into_owned();
    let input = task.stdin.as_ref().map(|name| task.directory.join(name));
    let mut words = vec![our_binary(context)?, "measure".into(), "--json".into()];
    words.extend(["-o".into(), report_text]);
    words.extend(options.iter().map(|&option| option.to_owned()));
    if let Some(input) = input {
        words.extend(["--input".into(), input.to_string_lossy().into_owned()]);
    }
    words.push("--".into());
    // What the program writes is dropped, so that there is nothing to check.
    let unchecked = Task { check: None, stdin: None, ..task.clone() };
    let ran = run::run(&unchecked, &Wrap { words, joined: false }, streams);
    // Groups of runs that disagree end with a status of their own; the report is there all the same.
    match std::fs::read_to_string(&report).ok().and_then(|text| serde_json::from_str(&text).ok()) {
        Some(report) => Ok(report),
        None => Err(ran.err().unwrap_or_else(|| format!("{}: no report", task.name))),
    }
}

/// The row of a quantity measured directly.
pub(in crate::rows) fn direct<'a>(report: &'a Value, name: &str) -> Option<&'a Value> {
    report.get("direct")?.as_array()?.iter().find(|row| row["measure"] == name)
}

/// Its relative standard uncertainty.
pub(in crate::rows) fn relative(report: &Value, name: &str) -> Option<f64> {
    let row = direct(report, name)?;
    let (value, u) = (row["mean"]["value"].as_f64()?, row["standard_uncertainty"].as_f64()?);
    (value != 0.0).then(|| u / value.abs())
}
