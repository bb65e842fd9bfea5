//! What hyperfine, `perf stat -r` and ours claim about one command, and how often each was right.
//!
//! Small experiments of ten runs, in turns. Each tool's claim is held against the grand mean of all
//! its own runs, so that what a tool adds to the time does not matter.

use std::path::Path;

use metrology::{Coverage, Interval, share};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::Context;
use crate::machine::version_of;
use crate::make::Rng;
use crate::peers::version_of_perf;
use crate::rows::measure_suite::measured::{direct, measure};
use crate::run::{self, Task, Wrap};

/// Runs in an experiment.
pub(super) const RUNS: &str = "10";

/// Mean and the half-width that the tool prints after it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Claim {
    mean: f64,
    low: f64,
    high: f64,
}

/// One tool's experiments.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Claims {
    pub(super) tool: String,
    /// What the ± is said to be.
    pub(super) claimed: String,
    claims: Vec<Claim>,
}

impl Claims {
    /// How often the claim held the grand mean.
    pub(super) fn held(&self) -> Option<(f64, Interval)> {
        let truth = self.grand_mean();
        let held = self.claims.iter().filter(|c| c.low <= truth && truth <= c.high).count();
        share(held as u64, self.claims.len() as u64, Coverage::P95)
    }

    /// The mean relative half-width of what is claimed.
    pub(super) fn half_width(&self) -> f64 {
        let widths = self.claims.iter().map(|c| (c.high - c.low) / 2.0 / c.mean);
        widths.sum::<f64>() / self.claims.len().max(1) as f64
    }

    pub(super) fn grand_mean(&self) -> f64 {
        self.claims.iter().map(|c| c.mean).sum::<f64>() / self.claims.len().max(1) as f64
    }
}

/// All tools that are here, in turns.
pub(super) fn compare(
    context: &Context,
    task: &Task,
    experiments: usize,
) -> Result<Vec<Claims>, String> {
    let tools: [(&str, &str, Ask); 5] = [
        ("whither measure, wall", "95 % of intervals hold", |c, t, s| ours(c, t, s, "wall-clock")),
        ("hyperfine, wall", "standard deviation of a run", |_, t, s| hyperfine(t, s)),
        ("perf stat -r, wall", "none said; it is one u", |_, t, s| {
            perf(t, s, &[], elapsed_of_perf)
        }),
        ("whither measure, CPU", "95 % of intervals hold", |c, t, s| ours(c, t, s, "task-clock")),
        ("perf stat -r, CPU", "none said; it is one u", |_, t, s| {
            perf(t, s, &["-x,"], clock_of_perf)
        }),
    ];
    let mut all: Vec<Claims> = tools
        .iter()
        .map(|(tool, claimed, _)| Claims {
            tool: (*tool).to_owned(),
            claimed: (*claimed).to_owned(),
            claims: Vec::new(),
        })
        .collect();
    let streams = context.work.streams()?;
    let mut rng = Rng::new(context.seed);
    let mut order: Vec<usize> = (0..tools.len()).collect();
    for _ in 0..experiments {
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        for &place in &order {
            let (Some((_, _, ask)), Some(claims)) = (tools.get(place), all.get_mut(place)) else {
                continue;
            };
            claims.claims.push(ask(context, task, &streams)?);
        }
    }
    Ok(all)
}

type Ask = fn(&Context, &Task, &Path) -> Result<Claim, String>;

fn ours(context: &Context, task: &Task, streams: &Path, name: &str) -> Result<Claim, String> {
    let options = ["--runs", RUNS, "--warmup", "0", "--measurand", name];
    let report = measure(context, task, &options, streams)?;
    let mean = direct(&report, name).map(|row| &row["mean"]);
    let part = |key: &str| mean.and_then(|mean| mean[key].as_f64());
    part("value")
        .zip(part("low"))
        .zip(part("high"))
        .map(|((mean, low), high)| Claim { mean, low, high })
        .ok_or_else(|| format!("{}: {name} is not in the report", task.name))
}

fn hyperfine(task: &Task, streams: &Path) -> Result<Claim, String> {
    version_of("hyperfine", &["--version"])?;
    let export = streams.join("hyperfine.json");
    let words = ["/usr/bin/hyperfine", "-N", "--runs", RUNS, "--style", "none", "--export-json"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.push(export.to_string_lossy().into_owned());
    let unchecked = Task { check: None, ..task.clone() };
    run::run(&unchecked, &Wrap { words, joined: true }, streams)?;
    let text = std::fs::read_to_string(&export).map_err(|e| format!("hyperfine: {e}"))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("hyperfine: {e}"))?;
    let result = &report["results"][0];
    let (mean, deviation) = result["mean"]
        .as_f64()
        .zip(result["stddev"].as_f64())
        .ok_or("hyperfine: no mean in its report")?;
    Ok(Claim { mean, low: mean - deviation, high: mean + deviation })
}

fn perf(
    task: &Task,
    streams: &Path,
    form: &[&str],
    read: fn(&str) -> Option<Claim>,
) -> Result<Claim, String> {
    version_of_perf()?;
    let file = streams.join("perf-stat.txt");
    let file_text = file.to_string_lossy().into_owned();
    let mut words = vec!["/usr/bin/perf", "stat", "-r", RUNS, "-e", "task-clock"];
    words.extend(form);
    words.extend(["-o", &file_text, "--"]);
    let words = words.into_iter().map(str::to_owned).collect();
    let unchecked = Task { check: None, ..task.clone() };
    run::run(&unchecked, &Wrap { words, joined: false }, streams)?;
    let text = std::fs::read_to_string(&file).map_err(|e| format!("perf stat: {e}"))?;
    read(&text).ok_or_else(|| "perf stat does not say what it measured".to_owned())
}

/// `value,unit,task-clock,variation%,…`.
fn clock_of_perf(text: &str) -> Option<Claim> {
    let fields = text
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .find(|fields| fields.get(2) == Some(&"task-clock"))?;
    let mean: f64 = fields.first()?.parse().ok()?;
    let percent: f64 = fields.get(3)?.strip_suffix('%')?.parse().ok()?;
    let half = mean * percent / 100.0;
    Some(Claim { mean, low: mean - half, high: mean + half })
}

/// `0.001574 +- 0.000262 seconds time elapsed`. The event `duration_time` is no substitute: beside
/// the ± of all runs perf prints the value of one.
fn elapsed_of_perf(text: &str) -> Option<Claim> {
    let line = text.lines().find(|line| line.contains("seconds time elapsed"))?;
    let (mean, rest) = line.split_once("+-")?;
    let mean: f64 = mean.trim().parse().ok()?;
    let half: f64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(Claim { mean, low: mean - half, high: mean + half })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perfs_lines_are_read() {
        let text = "# started\n\n0.85,msec,task-clock,4.00%,845919,100.00,0.627,CPUs utilized\n";
        let claim = clock_of_perf(text).unwrap();
        assert!((claim.high - 0.884).abs() < 1e-12 && (claim.low - 0.816).abs() < 1e-12);
        assert!(clock_of_perf("1,,cycles,4.00%,1,100.00").is_none());
        let text = "\n  0.001574 +- 0.000262 seconds time elapsed  ( +- 16.63% )\n";
        let claim = elapsed_of_perf(text).unwrap();
        assert!((claim.low - 0.001312).abs() < 1e-12 && (claim.high - 0.001836).abs() < 1e-12);
    }

    #[test]
    fn a_claim_is_held_against_the_grand_mean() {
        let claim = |mean: f64, half: f64| Claim { mean, low: mean - half, high: mean + half };
        let claims = vec![claim(9.0, 0.5), claim(11.0, 2.0), claim(10.0, 0.1), claim(10.0, 0.1)];
        let claims = Claims { tool: String::new(), claimed: String::new(), claims };
        assert_eq!(claims.grand_mean(), 10.0);
        assert_eq!(claims.held().unwrap().0, 0.75);
    }
}
