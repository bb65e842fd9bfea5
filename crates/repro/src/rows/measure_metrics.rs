//! Metrology's section 4.2: measures derived from the counts, each with its uncertainty.
//!
//! The paper divides stalls by instructions and calls them shares of time; both ratios are given
//! here, and its definitions decide which figure stands beside its own.

use metrology::{Coverage, mean};
use serde_json::Value;
use show::{Cell, Column, Row, Table, Tone, Unit};

use super::measure_suite::measured::{COUNTERS, EVENTS, direct, measure};
use crate::context::Context;
use crate::native;
use crate::peers::our_version;
use crate::result::{Figure, RowResult};
use crate::run::Task;

const QUICK: &[&str] = &["gzip", "mcf", "mgrid"];
const LIMIT: &str = "4m";

/// Key, heading, what is above and below the line.
const METRICS: [(&str, &str, &str, &str); 9] = [
    ("ipc", "IPC", "instructions", "cycles"),
    ("misprediction_rate_pct", "mispredicted", "branch-misses", "branches"),
    ("l1d_misses_pct", "L1D misses", "l1d-load-misses", "instructions"),
    ("l2_misses_pct", "L2 misses", "l2-load-misses", "instructions"),
    ("load_store_stall_pct", "load/store stalls", "load-queue-full-cycles", "instructions"),
    ("rob_stall_pct", "ROB stalls", "rob-full-cycles", "instructions"),
    ("rs_stall_pct", "RS stalls", "scheduler-full-cycles", "instructions"),
    ("mispredict_stall_pct", "mispredict stalls", "stall-mispredict-cycles", "instructions"),
    ("rs_stall_of_cycles_pct", "RS stalls of cycles", "scheduler-full-cycles", "cycles"),
];

const COLUMNS: [Column; 10] = [
    Column::text("program", "program"),
    Column::number("ipc", "IPC"),
    Column::number("misprediction_rate", "mispredicted"),
    Column::number("l1d_misses", "L1D misses"),
    Column::number("l2_misses", "L2 misses"),
    Column::number("load_store_stalls", "load/store"),
    Column::number("rob_stalls", "ROB"),
    Column::number("rs_stalls", "RS"),
    Column::number("mispredict_stalls", "mispredict"),
    Column::number("rs_stalls_of_cycles", "RS of cycles"),
];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks_at(names, crate::suite::Size::Quick);
    let machine =
        native::described().map_or_else(|_| "icelake-server".to_owned(), |machine| machine.name);
    let mut result = RowResult {
        wrong,
        caption: format!(
            "quick size, modelled {machine}; misses and stalls by instruction, as the paper has \
             them; ± at 95 % over runs of varied environment"
        ),
        size: Some(crate::suite::Size::Quick.name()),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    let mut by_metric: Vec<Vec<f64>> = vec![Vec::new(); METRICS.len()];
    context.progress.start(tasks.len() as u64);
    for task in &tasks {
        context.progress.step(&task.name);
        let report = match modelled(context, task, &machine) {
            Ok(report) => report,
            Err(sentence) => {
                result.wrong.push(format!("{sentence}; left out"));
                continue;
            }
        };
        result.remember(task);
        let mut cells = vec![Cell::text(&task.name)];
        for (metric, values) in METRICS.iter().zip(&mut by_metric) {
            let (cell, value) = metric_cell(&report, metric);
            values.extend(value);
            cells.push(cell);
        }
        result.detail.rows.push(Row::Cells(Tone::Plain, cells));
    }
    context.progress.finish();
    for ((key, ..), values) in METRICS.iter().zip(&by_metric) {
        let scale = if key.ends_with("_pct") { 100.0 } else { 1.0 };
        if let Ok(over_programs) = mean(values) {
            let estimate = over_programs.scaled(scale);
            let interval = estimate.interval(Coverage::P95);
            result.ours.push(Figure::measured(key, estimate.value, interval));
        }
    }
    result.notes.push(
        "the ± of a mean over programs is the spread between programs, that of a program is over \
         its runs; load/store counts dispatch waiting for the load queue, mispredict the window \
         empty after a mispredicted branch, which the paper's counters do not define alike"
            .to_owned(),
    );
    Ok(result)
}

fn modelled(context: &Context, task: &Task, machine: &str) -> Result<Value, String> {
    let key = context.key("measure-metrics", task, &[&our_version(context)?, machine], COUNTERS);
    if let Some(found) = context.kept.find(&key) {
        return Ok(found);
    }
    let (events, counters) = (EVENTS.join(","), COUNTERS.to_string());
    let options = [
        "--machine",
        machine,
        "--counters",
        &counters,
        "-e",
        &events,
        "--vary",
        "env,aslr",
        "--max-time",
        LIMIT,
    ];
    let report = measure(context, task, &options, &context.work.streams()?)?;
    context.kept.put(&key, &report)?;
    Ok(report)
}

/// The ratio with its interval from the report where it is derived there, else none.
fn metric_cell(
    report: &Value,
    &(_, _, above, below): &(&str, &str, &str, &str),
) -> (Cell, Option<f64>) {
    let rows = report["derived"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = rows.iter().find(|row| row["above"] == above && row["below"] == below);
    let Some(row) = found else {
        // Not among those that the command derives: the quotient of the means, without a ±.
        let value = |name: &str| direct(report, name).and_then(|row| row["mean"]["value"].as_f64());
        return match value(above).zip(value(below)).filter(|(_, below)| *below != 0.0) {
            Some((above, below)) => (Cell::Number(above / below, Unit::Share), Some(above / below)),
            None => (Cell::NotCounted("no reading".to_owned()), None),
        };
    };
    let part = |key: &str| row["value"][key].as_f64();
    let scale = if below == "instructions" { 1e-3 } else { 1.0 };
    let unit = if above == "instructions" { Unit::Number } else { Unit::Share };
    let (Some(value), Some(low), Some(high)) = (part("value"), part("low"), part("high")) else {
        return (Cell::NotCounted("no value".to_owned()), None);
    };
    let coverage = Coverage::P95;
    let interval = metrology::Interval { low: low * scale, high: high * scale, coverage };
    (Cell::Estimate(value * scale, interval, unit), Some(value * scale))
}
