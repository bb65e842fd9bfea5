//! The machine file with clock and latencies as this host has them.
//!
//! Only those: everything else stays as its documents say. `whither calibrate` measures them with
//! loops of its own, none of which is scored here.

use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::Context;
use crate::peers::our_binary;

/// The copy, and what is new in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Calibrated {
    /// The text of the copy.
    text: String,
    /// The replaced facts: key, what the file says, what was measured.
    replaced: Vec<(String, f64, f64)>,
    dropped: u64,
}

impl Calibrated {
    /// Measures, or finds what an interrupted run of this row measured.
    pub(super) fn of(
        context: &Context,
        machine: &str,
        version: &str,
    ) -> Result<Calibrated, String> {
        let key = json!({ "row": "model-accuracy", "calibrated": machine, "tools": [version] });
        if let Some(kept) = context.kept.find(&key) {
            return Ok(kept);
        }
        let copy = context.work.streams()?.join("calibrated.toml");
        let output = Command::new(our_binary(context)?)
            .args(["calibrate", "--json", "--latencies-only", "--machine", machine, "--write"])
            .arg(&copy)
            .output()
            .map_err(|e| format!("whither calibrate cannot be started: {e}"))?;
        let text = std::fs::read_to_string(&copy)
            .map_err(|_| "whither calibrate wrote no machine file".to_owned())?;
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|e| format!("whither calibrate left no report: {e}"))?;
        let calibrated = Calibrated { text, ..told(&report) };
        context.kept.put(&key, &calibrated)?;
        Ok(calibrated)
    }

    /// Puts the copy where `whither model --machine` finds it.
    pub(super) fn file(&self, context: &Context) -> Result<String, String> {
        let directory = context.work.program("calibrated");
        let path = directory.join("machine.toml");
        let wrong = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::create_dir_all(&directory).map_err(wrong)?;
        std::fs::write(&path, &self.text).map_err(wrong)?;
        Ok(path.to_string_lossy().into_owned())
    }

    /// What tells this copy from another.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The sentence of the output.
    pub(super) fn note(&self, machine: &str) -> String {
        let facts: Vec<String> = self
            .replaced
            .iter()
            .map(|(key, file, measured)| format!("{key} {file:.0} → {measured:.0}"))
            .collect();
        format!(
            "{machine} with clock and latencies as `whither calibrate` measured them here, on loops \
             that are not scored ({} runs dropped): {}",
            self.dropped,
            facts.join(", ")
        )
    }
}

fn told(report: &Value) -> Calibrated {
    let rows = report.get("facts").and_then(Value::as_array).cloned().unwrap_or_default();
    let replaced = rows.iter().filter_map(|row| {
        let key = row.get("key")?.as_str()?.to_owned();
        let is_memory = key == "memory.bytes_per_cycle";
        let measured = row.get("measured")?.get("value")?.as_f64()?;
        (!is_memory).then_some((key, row.get("file")?.as_f64()?, measured))
    });
    Calibrated {
        text: String::new(),
        replaced: replaced.collect(),
        dropped: rows.iter().filter_map(|row| row.get("dropped")?.as_f64()).sum::<f64>() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_names_what_was_replaced_and_not_the_bandwidth() {
        let report = json!({ "facts": [
            { "key": "memory.latency_cycles", "file": 380.0, "dropped": 2.0,
              "measured": { "value": 551.7, "low": 540.0, "high": 560.0, "coverage": 0.95 } },
            { "key": "memory.bytes_per_cycle", "file": 8.0, "dropped": 1.0,
              "measured": { "value": 9.0, "low": 9.0, "high": 9.0, "coverage": 0.95 } },
            { "key": "caches.l2.latency_cycles", "file": 14.0, "dropped": 0.0,
              "measured": { "not_counted": "too few runs were kept" } },
            { "key": null, "file": 4.0, "dropped": 0.0, "measured": { "value": 3.9 } },
        ]});
        let calibrated = told(&report);
        let note = calibrated.note("zen4");
        assert!(note.contains("(3 runs dropped): memory.latency_cycles 380 → 552"), "{note}");
        assert!(!note.contains("bytes_per_cycle") && !note.contains("l2"), "{note}");
    }
}
