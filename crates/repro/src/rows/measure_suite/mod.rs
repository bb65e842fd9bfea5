//! Metrology's section 4: how many runs, how sure, how many executions are saved; and whether the
//! intervals that are printed hold as often as they say.
//!
//! Three parts: seeded experiments with a known truth, the suite's programs on a modelled core with
//! four counters and natively, and one short command beside other tools.

pub(super) mod measured;
mod peers;
mod simulate;

use serde_json::{Value, json};
use show::{Cell, Column, Row, Table, Tone, Unit};

use self::measured::{COUNTERS, EVENTS, measure, relative};
use self::simulate::{Line, of, percent};
use crate::context::Context;
use crate::native;
use crate::peers::our_version;
use crate::result::{Figure, RowResult};
use crate::run::Task;

/// Simulated experiments a line.
const EXPERIMENTS: usize = 10_000;
/// What a look runs, and what stands beside other tools.
const QUICK: &[&str] = &["gzip", "mcf", "mgrid"];
const BESIDE: &str = "gzip -c /etc/services";
/// Experiments of ten runs beside other tools.
const BESIDE_EXPERIMENTS: usize = 60;
/// How long a program may take on each core.
const LIMIT: &str = "4m";

const COLUMNS: [Column; 6] = [
    Column::text("part", "part"),
    Column::text("case", "case"),
    Column::number("runs", "runs"),
    Column::number("figure", "figure"),
    Column::text("beside", "beside"),
    Column::text("about", "about"),
];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let mut result = smoke(context)?;
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks_at(names, crate::suite::Size::Quick);
    result.wrong = wrong;
    context.progress.start(tasks.len() as u64 + 1);
    let mut totals = Totals::default();
    for task in &tasks {
        context.progress.step(&task.name);
        match programs(context, task) {
            Ok((modelled, native)) => {
                totals.add(&modelled);
                result.remember(task);
                result.detail.rows.extend(modelled_rows(task, &modelled));
                result.detail.rows.push(native_row(task, &native));
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    totals.fill(&mut result);
    context.progress.step("peers");
    beside(context, &mut result);
    context.progress.finish();
    result.caption = format!(
        "{EXPERIMENTS} seeded experiments a line; programs at quick size on the modelled {} with \
         {COUNTERS} counters, and natively by time",
        machine()
    );
    result.notes.push(
        "there is no PMU behind these figures unless the machine's line says so: counts of programs \
         are modelled, and natively the time on a CPU is the measurand"
            .to_owned(),
    );
    result.notes.push(
        "executions are ours, naive ones one event an execution as often as ours counted it; the \
         paper's six leave each event with one reading and so without an uncertainty"
            .to_owned(),
    );
    Ok(result)
}

/// The experiments alone: they follow from the seed.
pub(super) fn smoke(context: &Context) -> Result<RowResult, String> {
    let lines = simulate::all(context.seed, EXPERIMENTS);
    let mut result = RowResult {
        caption: format!("{EXPERIMENTS} seeded experiments a line"),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    figures(&mut result, &lines);
    result.detail.rows = lines.iter().map(line_row).collect();
    result.seeds.insert("experiments".to_owned(), json!(context.seed));
    Ok(result)
}

/// The figures that goals bound: each the worst of its lines.
fn figures(result: &mut RowResult, lines: &[Line]) {
    let fixed: Vec<&Line> = of(lines, "interval holds", &["normal", "two levels"]).collect();
    let furthest = |line: &&&Line| (line.share - 0.95).abs();
    let worst = fixed.iter().max_by(|a, b| furthest(a).total_cmp(&furthest(b)));
    push(result, "coverage_pct", worst.copied());
    let least = |part, case: &[&str], keep: fn(usize) -> bool| {
        of(lines, part, case)
            .filter(|line| keep(line.runs))
            .min_by(|a, b| a.share.total_cmp(&b.share))
            .cloned()
    };
    let any = |_: usize| true;
    let stopped = least("stopped interval holds", &["normal"], any);
    push(result, "sequential_coverage_pct", stopped.as_ref());
    let spent = of(lines, "stopped interval holds", &["normal"]).filter_map(|line| line.spent);
    if let Some(most) = spent.max_by(f64::total_cmp) {
        result.ours.push(Figure::exact("sequential_runs_ratio", most));
    }
    let few = least("interval holds", &["lognormal 0.5"], |runs| runs < 30);
    push(result, "lognormal_pct", few.as_ref());
    let many = least("interval holds", &["lognormal 0.5"], |runs| runs == 30);
    push(result, "lognormal_30_pct", many.as_ref());
    let alarms = of(lines, "false alarm", &["0 % planted"]);
    let most = alarms.max_by(|a, b| a.share.total_cmp(&b.share));
    push(result, "false_alarms_pct", most);
}

fn push(result: &mut RowResult, key: &str, line: Option<&Line>) {
    let Some(line) = line else { return };
    let (value, interval) = percent(line);
    result.ours.push(match interval {
        Some(interval) => Figure::measured(key, value, interval),
        None => Figure::exact(key, value),
    });
}

fn line_row(line: &Line) -> Row {
    let figure = match line.interval {
        Some(interval) => Cell::Estimate(line.share, interval, Unit::Share),
        None => Cell::Number(line.share, Unit::Share),
    };
    let beside = match line.spent {
        Some(spent) => Cell::text(format!("{spent:.2} of the optimum's runs")),
        None => Cell::Empty,
    };
    let cells = vec![
        Cell::text(line.part),
        Cell::text(&line.case),
        Cell::Number(line.runs as f64, Unit::Number),
        figure,
        beside,
        Cell::text("simulated"),
    ];
    Row::Cells(Tone::Plain, cells)
}

/// The machine that describes this host, or a common one.
fn machine() -> String {
    native::described().map_or_else(|_| "icelake-server".to_owned(), |machine| machine.name)
}

/// A program on the modelled core and natively.
fn programs(context: &Context, task: &Task) -> Result<(Value, Value), String> {
    let version = our_version(context)?;
    let key = context.key("measure-suite", task, &[&version, &machine()], COUNTERS);
    if let Some(found) = context.kept.find(&key) {
        return Ok(found);
    }
    let (machine, events, counters) = (machine(), EVENTS.join(","), COUNTERS.to_string());
    let streams = context.work.streams()?;
    let options = ["--machine", &machine, "--counters", &counters, "-e", &events];
    let shared = ["--vary", "env,aslr", "--max-time", LIMIT];
    let modelled = measure(context, task, &[&options[..], &shared[..]].concat(), &streams)?;
    let native = measure(context, task, &shared, &streams)?;
    let found = (modelled, native);
    context.kept.put(&key, &found)?;
    Ok(found)
}

/// Sums over programs.
#[derive(Debug, Default)]
struct Totals {
    runs: f64,
    executions: f64,
    naive: f64,
    /// The worst relative uncertainty by kind of event.
    worst: [f64; 5],
}

/// Kinds of event, as the paper sums up their uncertainty.
const KINDS: [(&str, &[&str]); 4] = [
    ("instructions", &["instructions"]),
    ("cycles", &["cycles"]),
    ("branches", &["branches", "branch-misses"]),
    (
        "caches_and_stalls",
        &[
            "l1d-load-misses",
            "l2-load-misses",
            "stall-mispredict-cycles",
            "load-queue-full-cycles",
            "rob-full-cycles",
            "scheduler-full-cycles",
        ],
    ),
];

impl Totals {
    fn add(&mut self, report: &Value) {
        let number = |section: &str, key: &str| report[section][key].as_f64().unwrap_or(0.0);
        self.runs = self.runs.max(number("run", "needed"));
        self.executions += number("spent", "used");
        self.naive += number("spent", "one_by_one");
        for ((_, names), worst) in KINDS.iter().zip(&mut self.worst) {
            let all = names.iter().filter_map(|name| relative(report, name));
            *worst = all.fold(*worst, f64::max);
        }
        let ipc = report["derived"].as_array().and_then(|rows| rows.first());
        let ipc = ipc.and_then(|row| {
            Some(row["standard_uncertainty"].as_f64()? / row["value"]["value"].as_f64()?)
        });
        self.worst[4] = self.worst[4].max(ipc.unwrap_or(0.0));
    }

    fn fill(&self, result: &mut RowResult) {
        if self.executions == 0.0 {
            return;
        }
        result.ours.push(Figure::exact("runs", self.runs));
        let worst = self.worst.iter().copied().fold(0.0, f64::max);
        result.ours.push(Figure::exact("max_u_pct", 100.0 * worst));
        let names = KINDS.iter().map(|kind| kind.0).chain(["ipc"]);
        for (name, worst) in names.zip(self.worst) {
            result.ours.push(Figure::exact(&format!("max_u_{name}_pct"), 100.0 * worst));
        }
        result.ours.push(Figure::exact("executions", self.executions));
        result.ours.push(Figure::exact("naive_executions", self.naive));
    }
}

fn modelled_rows(task: &Task, report: &Value) -> Vec<Row> {
    let number = |section: &str, key: &str| report[section][key].as_f64().unwrap_or(0.0);
    let names = std::iter::once("instructions").chain(EVENTS);
    let said =
        |name: &str| relative(report, name).map(|share| format!("{name} {}", short(100.0 * share)));
    let uncertainties: Vec<String> = names.filter_map(said).collect();
    let agree = report["groups"]["agree"].as_str().unwrap_or("not compared").to_owned();
    vec![Row::Cells(
        Tone::Plain,
        vec![
            Cell::text("modelled"),
            Cell::text(&task.name),
            Cell::Number(number("run", "needed"), Unit::Number),
            Cell::Number(number("spent", "used"), Unit::Number),
            Cell::text(format!("{} one by one", number("spent", "one_by_one"))),
            Cell::text(format!("groups agree: {agree}; u in %: {}", uncertainties.join(", "))),
        ],
    )]
}

fn native_row(task: &Task, report: &Value) -> Row {
    let number = |section: &str, key: &str| report[section][key].as_f64().unwrap_or(0.0);
    let measurand = report["run"]["measurand"].as_str().unwrap_or_default();
    let agree = report["groups"]["agree"].as_str().unwrap_or("not compared");
    let reached = 100.0 * number("run", "reached");
    let between = 100.0 * number("levels", "share_between");
    let about = format!(
        "{measurand} known to {} %; groups agree: {agree}; {between:.0} % of the variance is the \
         layout's; ended: {}",
        short(reached),
        report["run"]["ended"].as_str().unwrap_or_default()
    );
    Row::Cells(
        Tone::Plain,
        vec![
            Cell::text("native"),
            Cell::text(&task.name),
            Cell::Number(number("run", "needed"), Unit::Number),
            Cell::Number(number("spent", "used"), Unit::Number),
            Cell::Empty,
            Cell::text(about),
        ],
    )
}

/// Two significant digits.
fn short(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let places = (1.0 - value.abs().log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{value:.places$}")
}

/// One short command beside other tools.
fn beside(context: &Context, result: &mut RowResult) {
    let task = match context.commands.first() {
        Some(task) => Ok(task.clone()),
        None => Task::from_command(BESIDE, std::path::Path::new("/")),
    };
    let experiments = if context.quick { BESIDE_EXPERIMENTS / 2 } else { BESIDE_EXPERIMENTS };
    match task.and_then(|task| peers::compare(context, &task, experiments)) {
        Ok(all) => {
            for claims in all {
                let figure = claims.held().map_or(Cell::Empty, |(share, interval)| {
                    Cell::Estimate(share, interval, Unit::Share)
                });
                let width = short(100.0 * claims.half_width());
                result.detail.rows.push(Row::Cells(
                    Tone::Plain,
                    vec![
                        Cell::text("claim held"),
                        Cell::text(&claims.tool),
                        Cell::text(peers::RUNS),
                        figure,
                        Cell::text(format!("± {width} % claimed")),
                        Cell::text(format!("what its ± is: {}", claims.claimed)),
                    ],
                ));
            }
            result.notes.push(format!(
                "claims: {experiments} experiments of {} runs of `{BESIDE}` each, tools in turns; a \
                 claim holds if the interval it prints holds the grand mean of all the tool's runs. \
                 Time on a shared machine drifts between experiments, which no interval of ten runs \
                 in a row can know",
                peers::RUNS
            ));
        }
        Err(sentence) => result.notes.push(format!("no claims were compared: {sentence}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_of_the_goal_follows_from_the_experiments() {
        let lines = simulate::all(3, 20);
        let mut result = RowResult::default();
        figures(&mut result, &lines);
        let keys: Vec<&str> = result.ours.iter().map(|figure| figure.key.as_str()).collect();
        assert_eq!(
            keys,
            [
                "coverage_pct",
                "sequential_coverage_pct",
                "sequential_runs_ratio",
                "lognormal_pct",
                "lognormal_30_pct",
                "false_alarms_pct"
            ]
        );
        assert_eq!(
            simulate::RUNS.len() * 2,
            of(&lines, "interval holds", &["normal", "two levels"]).count()
        );
    }

    #[test]
    fn two_digits_are_kept() {
        assert_eq!([0.0, 0.001_23, 1.26, 45.6].map(short), ["0", "0.0012", "1.3", "46"]);
    }
}
