//! What each watcher takes while programs run for minutes.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use show::{Cell, Row, Tone, Unit};

use super::slowdown::Timed;
use super::watcher::{Watcher, Who};
use super::{Bench, RATES, line};
use crate::result::{Figure, RowResult};

/// What one window showed.
#[derive(Debug, Serialize, Deserialize)]
struct Window {
    /// Of one CPU, inside the window, start-up apart; ours appends what it holds before the clock
    /// is read, so that nothing is put off beyond the end.
    cpu_share: f64,
    /// The same until both have ended: perf then goes through its file once more for the build-ids
    /// of what was sampled, without which it cannot be named once a file has changed.
    ended_share: f64,
    bytes_a_second: f64,
    cpu_s: f64,
    status: Option<Value>,
}

pub(super) fn windows(bench: &Bench<'_>, result: &mut RowResult) {
    let mut ratios: Vec<[f64; 3]> = Vec::new();
    let mut sums = Sums::default();
    for hertz in RATES {
        let [ours, perf] = [Who::Ours("default"), Who::Perf].map(|who| {
            let window = kept_window(bench, who, hertz);
            bench.context.progress.step("window");
            match window {
                Ok(window) => {
                    let mut cells = line("window", "all in turn", Some(hertz), who.name());
                    cells[5] = Cell::Number(window.cpu_share, Unit::Share);
                    cells[6] = Cell::Number(window.bytes_a_second, Unit::Count);
                    result.detail.rows.push(Row::Cells(Tone::Plain, cells));
                    let mut cells = line("to the end", "all in turn", Some(hertz), who.name());
                    cells[5] = Cell::Number(window.ended_share, Unit::Share);
                    result.detail.rows.push(Row::Cells(Tone::Plain, cells));
                    Some(window)
                }
                Err(why) => {
                    result.wrong.push(format!("a window at {hertz} Hz: {why}"));
                    None
                }
            }
        });
        if let (Some(ours), Some(perf)) = (&ours, &perf) {
            let cpu = ours.cpu_share / perf.cpu_share;
            let ended = ours.ended_share / perf.ended_share;
            result.notes.push(format!(
                "at {hertz} Hz our CPU time is {cpu:.2} of perf's inside the window, and \
                 {ended:.2} until both have ended and perf has looked up build-ids"
            ));
            ratios.push([cpu, ended, ours.bytes_a_second / perf.bytes_a_second]);
        }
        if let Some(window) = &ours
            && let Some(status) = &window.status
        {
            sums.add(status, window.cpu_s);
        }
    }
    // A figure of some rates would pass for one of all.
    if ratios.len() == RATES.len() {
        let keys = ["collector_cpu_vs_perf", "cpu_ended_vs_perf", "bytes_vs_perf"];
        for (place, key) in keys.into_iter().enumerate() {
            let worst = ratios.iter().map(|ratio| ratio[place]).fold(0.0, f64::max);
            result.ours.push(Figure::exact(key, worst));
        }
    }
    sums.figures(result);
}

fn kept_window(bench: &Bench<'_>, who: Who, hertz: u64) -> Result<Window, String> {
    let tasks: Vec<&Timed> = bench.tasks.iter().collect();
    let key = bench.key(who.name(), &tasks, hertz);
    if let Some(window) = bench.context.kept.find(&key) {
        return Ok(window);
    }
    let window = one_window(bench, who, hertz)?;
    bench.context.kept.put(&key, &window)?;
    Ok(window)
}

fn one_window(bench: &Bench<'_>, who: Who, hertz: u64) -> Result<Window, String> {
    let watcher = Watcher::start(who, hertz, &bench.whither)?;
    // Start-up apart: what was spent before the window does not count, on either side.
    watcher.settle();
    let (before, began) = (watcher.cpu_seconds().unwrap_or(0.0), Instant::now());
    'window: loop {
        for task in &bench.tasks {
            if began.elapsed() >= bench.sizes.window {
                break 'window;
            }
            task.run(bench.context)?;
        }
    }
    let elapsed = began.elapsed().as_secs_f64();
    watcher.flush()?;
    let cpu_s = watcher.cpu_seconds().unwrap_or(0.0) - before;
    let done = watcher.stop()?;
    Ok(Window {
        cpu_share: cpu_s / elapsed,
        ended_share: (done.cpu_s - before).max(0.0) / elapsed,
        bytes_a_second: done.bytes as f64 / elapsed,
        cpu_s,
        status: done.status,
    })
}

/// What became of the samples of all windows.
#[derive(Debug, Default)]
struct Sums {
    taken: f64,
    unplaced: f64,
    lost: f64,
    idle: f64,
    due: f64,
    cpu_s: f64,
    handed: f64,
    missed_in_table: f64,
    uneven: u64,
}

impl Sums {
    fn add(&mut self, status: &Value, cpu_s: f64) {
        let number = |value: &Value| value.as_f64().unwrap_or(0.0);
        let samples = &status["samples"];
        let taken = number(&samples["taken"]);
        self.taken += taken;
        self.unplaced += number(&samples["unplaced"]);
        self.lost += number(&samples["lost"]);
        self.idle += number(&samples["idle"]);
        self.uneven += u64::from(samples["adds_up"] != true);
        let due = status["events"].as_array().into_iter().flatten();
        self.due += due.map(|event| number(&event["due"])).sum::<f64>();
        self.cpu_s += cpu_s;
        self.handed += taken / number(&status["table"]["aggregation"]).max(1.0);
        self.missed_in_table += taken * (1.0 - number(&status["table"]["hit_rate"]));
    }

    fn figures(&self, result: &mut RowResult) {
        // Idle samples leave every denominator.
        let busy = (self.taken - self.idle).max(1.0);
        let figures = [
            ("daemon_ns_per_sample", 1e9 * self.cpu_s / busy),
            ("aggregation_factor", busy / self.handed.max(1.0)),
            ("miss_rate_pct", 100.0 * self.missed_in_table / busy),
            ("unplaced_ppm", 1e6 * self.unplaced / busy),
            ("lost", self.lost),
            ("missed", (self.due - self.taken).max(0.0).round()),
        ];
        result.ours.extend(figures.map(|(key, value)| Figure::exact(key, value)));
        result.notes.push(format!(
            "{:.0} samples, {:.0} of them idle; {} windows did not add up; missed are samples that \
             the clock owed and a throttled or stopped CPU never delivered",
            self.taken, self.idle, self.uneven
        ));
    }
}
