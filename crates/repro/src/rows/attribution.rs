//! Time by instruction from samples against exact time.
//!
//! The error of a profile is the share of time that it puts on the wrong instruction: half the sum
//! of the differences between the sampled and the true shares, over instructions that have at least
//! 400 samples, so that chance leaves little of it.

use show::{Cell, Column, Row, Table, Tone, Unit};

use super::frequency::{QUICK, SEEDS};
use super::model_agreement::side_by_side;
use crate::context::Context;
use crate::result::{Figure, RowResult};
use crate::witness::{self, Line, OUT_OF_ORDER, Program};

/// A hot instruction has at least so many.
const HOT: u64 = 400;

const COLUMNS: [Column; 5] = [
    Column::text("program", "program"),
    Column::number("hot", "hot instructions"),
    Column::number("hot_share", "their time"),
    Column::number("time_proportional", "time-proportional"),
    Column::number("next_committing", "next committing"),
];

struct Found {
    hot: u64,
    hot_share: f64,
    owned: f64,
    next: f64,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let root = context.work.streams()?;
    context.progress.start(tasks.len() as u64);
    let answers = side_by_side(&tasks, |place, task| {
        let witness = witness::witnessed(context, task, OUT_OF_ORDER, SEEDS, &root, place)?;
        let (program, _) = witness::load(witness)?;
        context.progress.step(&task.name);
        Ok::<_, String>(judge(&program))
    });
    context.progress.finish();
    let mut result = RowResult {
        wrong,
        caption: format!(
            "{} size; modelled {OUT_OF_ORDER}; instructions of at least {HOT} samples; the share \
             of their time that is put on the wrong one",
            context.size_name()
        ),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    let mut found = Vec::new();
    for (task, answer) in tasks.iter().zip(answers) {
        match answer {
            Ok(one) => {
                result.remember(task);
                result.detail.rows.push(Row::Cells(
                    Tone::Plain,
                    vec![
                        Cell::text(&task.name),
                        Cell::Number(one.hot as f64, Unit::Count),
                        Cell::Number(one.hot_share, Unit::Share),
                        Cell::Number(one.owned, Unit::Share),
                        Cell::Number(one.next, Unit::Share),
                    ],
                ));
                found.extend((one.hot > 0).then_some(one));
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    if !found.is_empty() {
        let mean =
            |of: fn(&Found) -> f64| 100.0 * found.iter().map(of).sum::<f64>() / found.len() as f64;
        result.ours.push(Figure::exact("error_pct", mean(|one| one.owned)));
        result.ours.push(Figure::exact("next_committing_error_pct", mean(|one| one.next)));
    }
    Ok(result)
}

/// Both attributions, over the seeds together.
fn judge(program: &Program) -> Found {
    let all = program.cycles.max(1) as f64;
    let samples = |seen: &witness::Seen, line: Line| -> u64 {
        (0..program.seeds).map(|seed| seen.samples(seed, line)).sum()
    };
    let exact = |seen: &witness::Seen| seen.2 as f64 / model::core::TICKS as f64 / all;
    let total = |line: Line| -> f64 {
        program.seen().map(|(_, seen)| samples(seen, line)).sum::<u64>().max(1) as f64
    };
    let (owned_all, next_all) = (total(Line::Owned), total(Line::Cycles));
    let mut found = Found { hot: 0, hot_share: 0.0, owned: 0.0, next: 0.0 };
    for (_, seen) in program.seen() {
        let (owned, next) = (samples(seen, Line::Owned), samples(seen, Line::Cycles));
        if owned < HOT {
            continue;
        }
        let truth = exact(seen);
        found.hot += 1;
        found.hot_share += truth;
        found.owned += (owned as f64 / owned_all - truth).abs() / 2.0;
        found.next += (next as f64 / next_all - truth).abs() / 2.0;
    }
    let by = found.hot_share.max(f64::MIN_POSITIVE);
    (found.owned, found.next) = (found.owned / by, found.next / by);
    found
}
