//! What watching everything costs, beside `perf record -a`.
//!
//! Three parts, each with its own method:
//!
//! - *slowdown*: workloads run bare, under our daemon and under perf in an order drawn anew for
//!   every round; a round gives one difference of wall times, as a share of the bare one. A reading
//!   is the least of several runs, because neighbours only ever add to a run, and more than is asked
//!   about. Many short rounds rather than few long ones: what else the machine does changes slower
//!   than that, and is on all three sides of a round.
//! - *windows*: the workloads over and over, minutes under each of the two; their CPU time inside
//!   the window, start-up apart, and that until both have ended; bytes after their end, and what
//!   became of the samples.
//! - *handler*: page faults, each an event (see `faults`).
//!
//! At standard size this takes three quarters of an hour. Every cell of the table is kept when it is done, so
//! that a run that was interrupted goes on where it stopped, and a reading that fails costs its
//! round alone.

mod faults;
mod slowdown;
mod watcher;
mod window;

use std::time::Duration;

use serde_json::{Value, json};
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::peers::{our_binary, our_version, version_of_perf};
use crate::result::{Figure, RowResult};
use slowdown::Timed;

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

/// How much is measured.
struct Sizes {
    /// Rounds of each workload and rate.
    rounds: usize,
    /// A run takes this long at least.
    run_s: f64,
    /// A reading is the least of so many runs.
    least_of: usize,
    window: Duration,
    faults: usize,
}

impl Sizes {
    fn of(context: &Context) -> Sizes {
        match context.quick {
            true => Sizes {
                rounds: 3,
                run_s: 0.2,
                least_of: 2,
                window: Duration::from_secs(5),
                faults: 5,
            },
            // The daemon may hold samples for minutes: shorter windows show the fixed cost of an
            // append and the beginning of a database's growth.
            false => Sizes {
                rounds: 20,
                run_s: 0.5,
                least_of: 5,
                window: Duration::from_secs(300),
                faults: 60,
            },
        }
    }
}

/// What every part needs.
struct Bench<'a> {
    context: &'a Context,
    whither: String,
    versions: [String; 2],
    tasks: Vec<Timed>,
    sizes: Sizes,
}

impl Bench<'_> {
    /// Under which a part of this row is kept.
    fn key(&self, part: &str, tasks: &[&Timed], hertz: u64) -> Value {
        let tools: Vec<&str> = self.versions.iter().map(String::as_str).collect();
        let rounds = self.sizes.rounds;
        let key = |timed: &&Timed| self.context.key("dcpi-overhead", &timed.task, &tools, rounds);
        let sizes = (self.sizes.rounds, self.sizes.window.as_secs());
        let tasks: Vec<Value> = tasks.iter().map(key).collect();
        let mut key = json!({ "part": part, "hertz": hertz, "sizes": sizes, "tasks": tasks });
        if part == slowdown::PART {
            key["least_of"] = json!(self.sizes.least_of);
        }
        key
    }
}

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
    let versions = [our_version(context)?, version_of_perf()?];
    result.seeds.insert("order".to_owned(), json!(context.seed));
    result.versions.insert("whither".to_owned(), json!(versions[0]));
    result.versions.insert("perf".to_owned(), json!(versions[1]));
    tasks.iter().for_each(|task| result.remember(task));
    let sizes = Sizes::of(context);
    let timed = |task| Timed::of_at_least(context, task, sizes.run_s);
    let tasks: Vec<Timed> = tasks.into_iter().map(timed).collect::<Result<_, String>>()?;
    let bench = Bench { context, whither, versions, tasks, sizes };
    let steps = RATES.len() * (bench.tasks.len() * bench.sizes.rounds + 2);
    context.progress.start(steps as u64);
    handler(&mut result, bench.sizes.faults);
    slowdown::slowdowns(&bench, &mut result);
    slowdown::configurations(&bench, &mut result);
    window::windows(&bench, &mut result);
    context.progress.finish();
    if context.quick {
        result.notes.push(
            "quick: windows of 5 s show a database's fixed cost more than its growth, and three \
             short rounds hardly bound a slowdown"
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
