//! What watching everything costs, beside `perf record -a`.
//!
//! Three parts, each with its own method:
//!
//! - *slowdown*: workloads run bare, under our daemon and under perf in an order drawn anew for
//!   every round; a round gives one difference of wall times, as a share of the bare one. Many short
//!   rounds rather than few long ones: what else the machine does changes slower than that, and is
//!   on all three sides of a round. A workload that is too short is run several times over.
//! - *windows*: the workloads over and over, minutes under each of the two; their CPU time inside
//!   the window, bytes after their end, and what became of the samples.
//! - *handler*: page faults, each an event (see `faults`).

mod faults;
mod watcher;

use std::time::{Duration, Instant};

use metrology::{Coverage, mean};
use serde_json::{Value, json};
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::make::Rng;
use crate::peers::{our_binary, our_version, version_of_perf};
use crate::result::{Figure, RowResult};
use crate::run::{self, Task, Wrap};
use watcher::{Watcher, Who};

/// What is run: many short processes, and one server under load.
const PROGRAMS: &[&str] = &["gcc-50", "redis"];
/// Samples a second and CPU: primes beside 1, 5 and 20 kHz.
const RATES: [u64; 3] = [997, 4999, 19_997];
/// The rate from which two points are allowed instead of one.
const FAST: u64 = 19_997;

const COLUMNS: [Column; 8] = [
    Column::text("part", "part"),
    Column::text("workload", "workload"),
    Column::number("hertz", "Hz"),
    Column::text("watcher", "watcher"),
    Column::number("slowdown", "slowdown"),
    Column::number("cpu", "of one CPU"),
    Column::number("bytes", "bytes a s"),
    Column::number("ns", "ns"),
];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let whither = our_binary(context)?;
    let (tasks, wrong) = context.tasks(PROGRAMS);
    if tasks.is_empty() {
        return Err(wrong.join("; "));
    }
    let mut result = RowResult {
        wrong,
        caption: format!("{} size; ± at 95 %", context.size_name()),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    result.seeds.insert("order".to_owned(), json!(context.seed));
    result.versions.insert("perf".to_owned(), json!(version_of_perf()?));
    result.versions.insert("whither".to_owned(), json!(our_version(context)?));
    tasks.iter().for_each(|task| result.remember(task));
    let rounds = if context.quick { 8 } else { 20 };
    let window = Duration::from_secs(if context.quick { 8 } else { 60 });
    let least_s = if context.quick { 0.3 } else { 0.8 };
    let tasks: Vec<Timed> = tasks
        .into_iter()
        .map(|task| Timed::of_at_least(context, task, least_s))
        .collect::<Result<_, String>>()?;
    context.progress.start((RATES.len() * (tasks.len() * rounds + 2)) as u64);
    handler(&mut result, if context.quick { 15 } else { 60 });
    slowdowns(context, &whither, &tasks, rounds, &mut result)?;
    configurations(context, &whither, &tasks, rounds.min(5), &mut result)?;
    windows(context, &whither, &tasks, window, &mut result)?;
    context.progress.finish();
    if context.quick {
        result.notes.push(
            "quick: windows of 8 s show a database's fixed cost more than its growth, and eight \
             short rounds bound a slowdown loosely"
                .to_owned(),
        );
    }
    Ok(result)
}

fn handler(result: &mut RowResult, rounds: usize) {
    let (plain, costs) = match faults::measure(rounds) {
        Ok(measured) => measured,
        Err(why) => {
            result.wrong.push(format!("the handler was not timed: {why}"));
            return;
        }
    };
    result.notes.push(format!("a page fault that nobody counts takes {plain:.0} ns"));
    for cost in &costs {
        for (kind, (value, interval)) in [("same pc", cost.same), ("65,536 pcs", cost.distinct)] {
            let mut cells = line("handler", kind, None, cost.way);
            cells[7] = Cell::Estimate(value, interval, Unit::Number);
            result.detail.rows.push(Row::Cells(Tone::Plain, cells));
        }
    }
    let find = |way: &str| costs.iter().find(|cost| cost.way == way);
    if let (Some(ours), Some(ring)) = (find("our table"), find("perf's ring")) {
        result.ours.push(Figure::measured("handler_hit_ns", ours.same.0, ours.same.1));
        result.ours.push(Figure::measured("handler_miss_ns", ours.distinct.0, ours.distinct.1));
        let worst = (ours.same.0 / ring.same.0).max(ours.distinct.0 / ring.distinct.0);
        result.ours.push(Figure::exact("handler_vs_ring", worst));
    }
}

fn line(part: &str, workload: &str, hertz: Option<u64>, watcher: &str) -> Vec<Cell> {
    let hertz = hertz.map_or(Cell::Empty, |hertz| Cell::Number(hertz as f64, Unit::Number));
    let mut cells = vec![Cell::text(part), Cell::text(workload), hertz, Cell::text(watcher)];
    cells.resize(COLUMNS.len(), Cell::Empty);
    cells
}

/// A task, and how often it is run for one reading.
struct Timed {
    task: Task,
    times: usize,
}

impl Timed {
    /// Often enough that a reading takes so many seconds.
    fn of_at_least(context: &Context, task: Task, seconds: f64) -> Result<Timed, String> {
        let once = Timed { task, times: 1 };
        // The first run fills caches.
        once.run(context)?;
        let taken = once.run(context)?;
        Ok(Timed { times: (seconds / taken).ceil().clamp(1.0, 100.0) as usize, ..once })
    }

    fn name(&self) -> &str {
        &self.task.name
    }

    /// Wall seconds of the programs alone.
    fn run(&self, context: &Context) -> Result<f64, String> {
        let mut seconds = 0.0;
        for _ in 0..self.times {
            let streams = context.work.streams()?;
            seconds += run::run(&self.task, &Wrap::default(), &streams)?.spent.wall_seconds;
        }
        Ok(seconds)
    }

    /// The same under a watcher.
    fn under(&self, context: &Context, whither: &str, who: Who, hertz: u64) -> Result<f64, String> {
        let watcher = Watcher::start(who, hertz, whither)?;
        let seconds = self.run(context)?;
        watcher.stop()?;
        Ok(seconds)
    }
}

fn slowdowns(
    context: &Context,
    whither: &str,
    tasks: &[Timed],
    rounds: usize,
    result: &mut RowResult,
) -> Result<(), String> {
    let mut rng = Rng::new(context.seed);
    let mut worst = f64::NEG_INFINITY;
    for hertz in RATES {
        for task in tasks {
            let (mut ours, mut perf) = (Vec::new(), Vec::new());
            for _ in 0..rounds {
                let mut seconds = [0.0; 3];
                let whos = [Who::Bare, Who::Ours("default"), Who::Perf];
                for place in shuffled(&mut rng, whos.len()) {
                    seconds[place] = task.under(context, whither, whos[place], hertz)?;
                }
                ours.push(seconds[1] / seconds[0] - 1.0);
                perf.push(seconds[2] / seconds[0] - 1.0);
                context.progress.step(task.name());
            }
            for (who, slowdowns) in [(Who::Ours("default"), &ours), (Who::Perf, &perf)] {
                slowdown_row(task, Some(hertz), who, slowdowns, result);
            }
            let apart: Vec<f64> = ours.iter().zip(&perf).map(|(a, b)| 100.0 * (a - b)).collect();
            if let Ok(apart) = mean(&apart) {
                let bound = apart.value + apart.half_width(Coverage::P95);
                // Twice as much is allowed where the interrupt itself takes a third of the machine.
                worst = worst.max(bound - if hertz >= FAST { 1.0 } else { 0.0 });
            }
        }
    }
    result.ours.push(Figure::exact("slowdown_minus_perf_points", worst));
    Ok(())
}

/// The paper's three configurations, at the lowest rate.
fn configurations(
    context: &Context,
    whither: &str,
    tasks: &[Timed],
    rounds: usize,
    result: &mut RowResult,
) -> Result<(), String> {
    for task in tasks {
        for config in ["cycles", "mux"] {
            let mut slowdowns = Vec::new();
            for _ in 0..rounds {
                let bare = task.under(context, whither, Who::Bare, RATES[0])?;
                let ours = task.under(context, whither, Who::Ours(config), RATES[0])?;
                slowdowns.push(ours / bare - 1.0);
            }
            slowdown_row(task, Some(RATES[0]), Who::Ours(config), &slowdowns, result);
        }
    }
    Ok(())
}

fn slowdown_row(
    task: &Timed,
    hertz: Option<u64>,
    who: Who,
    slowdowns: &[f64],
    result: &mut RowResult,
) {
    let mut cells = line("slowdown", task.name(), hertz, who.name());
    cells[4] = match mean(slowdowns) {
        Ok(slowdown) => {
            Cell::Estimate(slowdown.value, slowdown.interval(Coverage::P95), Unit::Share)
        }
        Err(too_few) => Cell::NotCounted(too_few.to_string()),
    };
    result.detail.rows.push(Row::Cells(Tone::Plain, cells));
}

/// What one window showed.
#[derive(Debug, Default)]
struct Window {
    cpu_share: f64,
    bytes_a_second: f64,
    cpu_s: f64,
    status: Option<Value>,
}

fn windows(
    context: &Context,
    whither: &str,
    tasks: &[Timed],
    window: Duration,
    result: &mut RowResult,
) -> Result<(), String> {
    let (mut cpu, mut bytes) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut sums = Sums::default();
    for hertz in RATES {
        let ours = one_window(context, whither, tasks, Who::Ours("default"), hertz, window)?;
        context.progress.step("window");
        let perf = one_window(context, whither, tasks, Who::Perf, hertz, window)?;
        context.progress.step("window");
        for (who, window) in [(Who::Ours("default"), &ours), (Who::Perf, &perf)] {
            let mut cells = line("window", "all in turn", Some(hertz), who.name());
            cells[5] = Cell::Number(window.cpu_share, Unit::Share);
            cells[6] = Cell::Number(window.bytes_a_second, Unit::Count);
            result.detail.rows.push(Row::Cells(Tone::Plain, cells));
        }
        cpu = cpu.max(ours.cpu_share / perf.cpu_share);
        bytes = bytes.max(ours.bytes_a_second / perf.bytes_a_second);
        if let Some(status) = &ours.status {
            sums.add(status, ours.cpu_s);
        }
    }
    result.ours.push(Figure::exact("collector_cpu_vs_perf", cpu));
    result.ours.push(Figure::exact("bytes_vs_perf", bytes));
    sums.figures(result);
    Ok(())
}

fn one_window(
    context: &Context,
    whither: &str,
    tasks: &[Timed],
    who: Who,
    hertz: u64,
    window: Duration,
) -> Result<Window, String> {
    let watcher = Watcher::start(who, hertz, whither)?;
    // Start-up apart: what was spent before the window does not count, on either side.
    let (before, began) = (watcher.cpu_seconds().unwrap_or(0.0), Instant::now());
    'window: loop {
        for task in tasks {
            if began.elapsed() >= window {
                break 'window;
            }
            task.run(context)?;
        }
    }
    watcher.flush()?;
    let cpu_s = watcher.cpu_seconds().unwrap_or(0.0) - before;
    let elapsed = began.elapsed().as_secs_f64();
    let done = watcher.stop()?;
    Ok(Window {
        cpu_share: cpu_s / elapsed,
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

fn shuffled(rng: &mut Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}
