//! Modelled cycles against the machine's own.
//!
//! ```text
//! microbenchmark  cycles an iteration: two lengths each, so that start-up and set-up cancel
//! program         user cycles of the whole run
//! ```
//!
//! The model is the machine file that describes this host, its clock and latencies as measured here
//! by loops that are not scored (`calibrated`). Nothing in it is fitted to what is.

mod calibrated;
mod micro;
mod programs;

use metrology::{Coverage, mean};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::native::{self, Kept, Pinned};
use crate::peers::{modelled, our_version};
use crate::result::{Figure, RowResult};
use crate::run::{self, Task};
use calibrated::Calibrated;

const COLUMNS: [Column; 10] = [
    Column::text("kind", "kind"),
    Column::text("name", "name"),
    Column::number("modelled", "modelled cycles"),
    Column::number("native", "native cycles"),
    Column::number("native_spread", "± of it"),
    Column::number("error", "error"),
    Column::number("kept", "kept"),
    Column::number("dropped", "dropped"),
    Column::text("cause", "mostly"),
    Column::text("scored", "scored"),
];

/// Lines that are further off get a sentence of their own.
const FAR: f64 = 0.15;

/// Modelled beside native.
#[derive(Debug)]
struct Line {
    kind: String,
    name: String,
    modelled: Modelled,
    native: Kept,
    /// Why it is listed and not averaged.
    unscored: Option<String>,
}

/// What `whither model --full` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Modelled {
    cycles: f64,
    /// The CPI stack: causes and their shares of the cycles, the largest first.
    stack: Vec<(String, f64)>,
}

impl Modelled {
    /// What most of the cycles went to.
    fn cause(&self) -> &str {
        self.stack.first().map_or("", |(cause, _)| cause)
    }
}

impl Line {
    fn native_cycles(&self) -> Option<f64> {
        self.native.median()
    }

    /// The signed relative error of the model.
    fn error(&self) -> Option<f64> {
        self.native_cycles().map(|native| self.modelled.cycles / native - 1.0)
    }

    fn scored(&self) -> Option<f64> {
        self.error().filter(|_| self.unscored.is_none())
    }
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let machine = native::described()?;
    let version = our_version(context)?;
    let pinned = Pinned::to_one()?;
    let wanted = if context.quick { 3 } else { 10 };
    let mut result = RowResult {
        caption: format!(
            "{}; {} size; median of {wanted} kept runs on CPU {}, clock now {:.0} MHz; an error is \
             (modelled − native) / native",
            machine.name,
            context.size_name(),
            pinned.cpu(),
            native::clock_hz() / 1e6
        ),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    result.versions.insert("whither".to_owned(), json!(version));
    let calibrated = Calibrated::of(context, &machine.name, &version)?;
    let file = calibrated.file(context)?;
    result.notes.push(calibrated.note(&machine.name));
    let asked = Asked {
        context,
        pinned: &pinned,
        machine: &file,
        facts: calibrated.text(),
        version: &version,
        wanted,
    };
    let micros =
        if context.commands.is_empty() { micro::lines(&asked, &mut result)? } else { vec![] };
    let programs = programs::lines(&asked, &mut result);
    context.progress.finish();
    let sizes = |lines: &[Line]| -> Vec<f64> {
        let mut all: Vec<f64> = lines.iter().filter_map(Line::scored).map(f64::abs).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let scored = sizes(&micros);
    let figure = |key: &str, p: f64| Some(Figure::exact(key, 100.0 * quantile(&scored, p)?));
    result.ours.extend(figure("micro_median_pct", 0.5));
    result.ours.extend(figure("micro_p90_pct", 0.9));
    let over_programs = sizes(&programs);
    match mean(&over_programs) {
        Ok(estimate) => {
            let estimate = estimate.scaled(100.0);
            let interval = estimate.interval(Coverage::P95);
            result.ours.push(Figure::measured("program_mean_pct", estimate.value, interval));
        }
        Err(_) => {
            let one = over_programs.first();
            result.ours.extend(one.map(|e| Figure::exact("program_mean_pct", 100.0 * e)));
        }
    }
    let dropped: usize = micros.iter().chain(&programs).map(|line| line.native.dropped).sum();
    result.notes.push(format!(
        "{} microbenchmarks and {} programs scored; {dropped} runs dropped for an unsteady clock or \
         stolen time",
        scored.len(),
        over_programs.len()
    ));
    result.notes.extend(micros.iter().chain(&programs).filter_map(explained));
    for line in micros.iter().chain(&programs) {
        result.detail.rows.push(Row::Cells(Tone::Plain, cells(line)));
    }
    Ok(result)
}

/// What every measurement needs.
struct Asked<'a> {
    context: &'a Context,
    pinned: &'a Pinned,
    /// The machine file, and what it says.
    machine: &'a str,
    facts: &'a str,
    version: &'a str,
    wanted: usize,
}

impl Asked<'_> {
    /// The key of what the machine took for `task`; no build of ours has a part in it.
    fn native_key(&self, task: &Task) -> Value {
        self.context.key("model-accuracy", task, &["native"], self.wanted)
    }

    /// The modelled run of `task`, kept.
    fn model(&self, task: &Task) -> Result<Modelled, String> {
        let tools = [self.version, self.facts];
        let key = self.context.key("model-accuracy", task, &tools, 1);
        if let Some(modelled) = self.context.kept.find(&key) {
            return Ok(modelled);
        }
        let streams = self.context.work.streams()?;
        let wrap = modelled(self.context, &["--full", "--machine", self.machine], &streams)?;
        run::run(task, &wrap, &streams).map_err(|sentence| format!("modelled, {sentence}"))?;
        let modelled = report(&streams.join("report"))
            .ok_or_else(|| format!("{}: whither model left no cycles", task.name))?;
        self.context.kept.put(&key, &modelled)?;
        Ok(modelled)
    }
}

fn report(path: &std::path::Path) -> Option<Modelled> {
    let report: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
    let cycles = report.get("run")?.get("cycles")?.as_f64().filter(|cycles| *cycles > 0.0)?;
    let parts = report.get("cpi_stack").and_then(Value::as_array).into_iter().flatten();
    let share = |part: &Value| {
        let cause = part.get("cause")?.as_str()?.to_owned();
        Some((cause, part.get("cycles")?.as_f64()? / cycles))
    };
    Some(Modelled { cycles, stack: parts.filter_map(share).collect() })
}

/// What is known of a line that is further off than the goal lets the most of them be.
fn explained(line: &Line) -> Option<String> {
    let error = line.scored().filter(|error| error.abs() > FAR)?;
    let mostly: Vec<String> = line.modelled.stack.iter().take(3).map(told).collect();
    let spread = line.native.spread().zip(line.native_cycles());
    let native = spread.map_or_else(String::new, |(far, middle)| {
        format!("; native runs lie up to {:.0} % from their median", 100.0 * far / middle)
    });
    let mostly = mostly.join(", ");
    Some(format!("{} {:+.1} %: the model spends {mostly}{native}", line.name, 100.0 * error))
}

fn told((cause, share): &(String, f64)) -> String {
    format!("{:.0} % on {}", 100.0 * share, cause.replace('_', " "))
}

/// The value that a share `p` of sorted values does not exceed.
fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let place = (p * sorted.len() as f64).ceil() as usize;
    sorted.get(place.max(1) - 1).copied()
}

fn cells(line: &Line) -> Vec<Cell> {
    let why = || Cell::NotCounted("no run was kept".to_owned());
    let cycles = |value: f64| Cell::Number(value, Unit::Number);
    let spread = match (line.native_cycles(), line.native.values.len()) {
        (Some(middle), 2..) => {
            let far = line.native.values.iter().map(|v| (v / middle - 1.0).abs());
            Cell::Number(far.fold(0.0, f64::max), Unit::Share)
        }
        _ => Cell::Empty,
    };
    vec![
        Cell::text(&line.kind),
        Cell::text(&line.name),
        cycles(line.modelled.cycles),
        line.native_cycles().map_or_else(why, cycles),
        spread,
        line.error().map_or_else(why, |error| Cell::Number(error, Unit::Share)),
        Cell::Number(line.native.values.len() as f64, Unit::Number),
        Cell::Number(line.native.dropped as f64, Unit::Number),
        Cell::text(line.modelled.cause()),
        Cell::text(line.unscored.clone().unwrap_or_else(|| "yes".to_owned())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_judged_by_the_median_and_quantiles_are_values() {
        let line = |values: &[f64]| Line {
            kind: String::new(),
            name: String::new(),
            modelled: Modelled {
                cycles: 110.0,
                stack: vec![("data_tlb".to_owned(), 0.75), ("l2".to_owned(), 0.25)],
            },
            native: Kept { values: values.to_vec(), dropped: 0 },
            unscored: None,
        };
        // A tenth off needs no words; twice as much as the machine takes does.
        assert_eq!(explained(&line(&[100.0])), None);
        let words = explained(&line(&[50.0, 60.0, 55.0])).unwrap();
        assert!(
            words.contains("+100.0 %: the model spends 75 % on data tlb, 25 % on l2"),
            "{words}"
        );
        assert!(words.ends_with("native runs lie up to 9 % from their median"), "{words}");
        assert!((line(&[90.0, 100.0, 900.0]).error().unwrap() - 0.1).abs() < 1e-12);
        assert!((line(&[120.0, 80.0]).error().unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(line(&[]).error(), None);
        let sorted = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0];
        assert_eq!(quantile(&sorted, 0.5), Some(5.0));
        assert_eq!(quantile(&sorted, 0.9), Some(9.0));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
