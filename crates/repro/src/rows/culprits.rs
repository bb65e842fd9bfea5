//! DCPI's section 6.3: are stalls explained, and by their true causes?
//!
//! The modelled cores know why nothing retired in every cycle, so what the paper could only
//! correlate is held against the truth. As in the paper, frequencies are exact here, so that
//! culprits are judged alone.

use std::collections::BTreeMap;

use show::{Cell, Column, Row, Table, Tone, Unit};

use super::frequency::{SEEDS, TRACES};
use super::model_agreement::side_by_side;
use crate::context::Context;
use crate::result::{Figure, RowResult};
use crate::witness::{
    self, Blamed, CodeStalls, IN_ORDER, OUT_OF_ORDER, Use, correlation, judge_culprits,
};

/// What a look runs: code that does not fit its cache must be among it.
const QUICK: &[&str] = &["art", "bzip2", "sqlite"];
/// What culprits are found from.
const USED: Use = Use { events: true, exact: true, ..Use::TIME };
/// The procedures that make this share of the time are correlated.
const TIME_SHARE: f64 = 0.999;

const COLUMNS: [Column; 7] = [
    Column::text("program", "program"),
    Column::text("machine", "machine"),
    Column::number("stall", "dynamic stall"),
    Column::number("unexplained", "unexplained"),
    Column::number("listed", "cause listed"),
    Column::number("ranges", "ranges hold"),
    Column::text("worst", "least often listed"),
];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let root = context.work.streams()?;
    let mut result = RowResult {
        wrong,
        caption: format!(
            "{} size; modelled cores; exact frequencies; samples of cycles, misses and mispredicts; \
             every program alike",
            context.size_name()
        ),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    context.progress.start(2 * tasks.len() as u64);
    let mut found: Vec<Blamed> = Vec::new();
    for machine in [IN_ORDER, OUT_OF_ORDER] {
        let answers = side_by_side(&tasks, |place, task| {
            let witness = witness::witnessed(context, task, machine, SEEDS, &root, place)?;
            let (program, _) = witness::load(witness)?;
            let blamed = judge_culprits(&program, USED);
            context.progress.step(&task.name);
            Ok::<_, String>(blamed)
        });
        for (task, answer) in tasks.iter().zip(answers) {
            match answer {
                Ok(blamed) => {
                    result.remember(task);
                    let cells = cells(&task.name, machine, &blamed);
                    result.detail.rows.push(Row::Cells(Tone::Plain, cells));
                    found.push(blamed);
                }
                Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
            }
        }
    }
    context.progress.finish();
    figures(&mut result, &found);
    Ok(result)
}

/// The same on the traces of the repository, so that no engine is needed. What is correlated are
/// code misses, of which loops as small as these have none; and runs as short as these take too few
/// samples for small stalls to stand out, so that what is listed is not judged here.
pub(super) fn smoke(context: &Context) -> Result<RowResult, String> {
    let mut found = Vec::new();
    for machine in [IN_ORDER, OUT_OF_ORDER] {
        for name in TRACES {
            let (program, _) = witness::load(witness::replayed(context, name, machine)?)?;
            found.push(judge_culprits(&program, USED));
        }
    }
    let mut result = RowResult::default();
    figures(&mut result, &found);
    result.ours.retain(|figure| !figure.key.starts_with("r_") && figure.key != "listed_pct");
    Ok(result)
}

fn figures(result: &mut RowResult, found: &[Blamed]) {
    if found.is_empty() {
        return;
    }
    let mean =
        |of: fn(&Blamed) -> f64| 100.0 * found.iter().map(of).sum::<f64>() / found.len() as f64;
    result.ours.push(Figure::exact("unexplained_pct", mean(|b| b.unexplained / b.cycles.max(1.0))));
    result.ours.push(Figure::exact("listed_pct", mean(|b| b.stall.1 / b.stall.0.max(1.0))));
    let suspected = mean(|b| b.suspected / b.stall.0.max(1.0));
    result.ours.push(Figure::exact("listed_or_suspect_pct", suspected));
    let held = |of: fn(&Blamed) -> u64| found.iter().map(of).sum::<u64>().max(1) as f64;
    let ranges = 100.0 * held(|b| b.ranges.1) / held(|b| b.ranges.0);
    result.ours.push(Figure::exact("ranges_pct", ranges));
    let code: Vec<CodeStalls> = found.iter().flat_map(|b| most_of_time(&b.code)).collect();
    let pairs = |of: fn(&CodeStalls) -> f64| -> Vec<(f64, f64)> {
        code.iter().map(|one| (one.misses, of(one))).collect()
    };
    let tops = correlation(&pairs(|one| one.range.1));
    let mids = correlation(&pairs(|one| (one.range.0 + one.range.1) / 2.0));
    let bottoms = correlation(&pairs(|one| one.range.0));
    let figures = [("r_top", tops), ("r_mid", mids), ("r_bottom", bottoms)];
    let known = figures.into_iter().filter_map(|(key, r)| Some(Figure::exact(key, r?)));
    result.ours.extend(known);
    result
        .notes
        .push(format!("{} procedures of all programs and both cores are correlated", code.len()));
    let mut missed: BTreeMap<&str, f64> = BTreeMap::new();
    for one in found {
        for (cause, off) in &one.missed {
            *missed.entry(cause).or_default() += 100.0 * off / one.cycles / found.len() as f64;
        }
    }
    let list: Vec<String> =
        missed.iter().map(|(cause, off)| format!("{cause} {off:.2} %")).collect();
    if !list.is_empty() {
        result.notes.push(format!("time outside its range: {}", list.join(", ")));
    }
}

/// The procedures that make most of a program's time.
fn most_of_time(code: &[CodeStalls]) -> Vec<CodeStalls> {
    let mut sorted = code.to_vec();
    sorted.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
    let all: f64 = sorted.iter().map(|one| one.cycles).sum();
    let mut sum = 0.0;
    sorted.retain(|one| {
        let is_needed = sum < TIME_SHARE * all;
        sum += one.cycles;
        is_needed
    });
    sorted
}

fn cells(name: &str, machine: &str, blamed: &Blamed) -> Vec<Cell> {
    let share = |part: f64, all: f64| Cell::Number(part / all.max(1.0), Unit::Share);
    let unlisted = |(stall, listed): &(f64, f64)| stall - listed;
    let worst = blamed.by_cause.iter().max_by(|a, b| unlisted(a.1).total_cmp(&unlisted(b.1)));
    vec![
        Cell::text(name),
        Cell::text(machine),
        share(blamed.stall.0, blamed.cycles),
        share(blamed.unexplained, blamed.cycles),
        share(blamed.stall.1, blamed.stall.0),
        share(blamed.ranges.1 as f64, blamed.ranges.0 as f64),
        worst.map_or(Cell::Empty, |(cause, by)| {
            Cell::text(format!("{cause}: {:.1} % of stalls", 100.0 * unlisted(by) / blamed.stall.0))
        }),
    ]
}
