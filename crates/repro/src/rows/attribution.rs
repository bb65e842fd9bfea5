//! Time by instruction from samples against exact time.
//!
//! The error of a profile is the share of time that it puts on the wrong instruction: half the sum
//! of the differences between the sampled and the true shares, over instructions that have at least
//! 400 samples, so that chance leaves little of it.

use show::{Cell, Column, Row, Table, Tone, Unit};

use super::frequency::{QUICK, SEEDS, TRACES};
use super::model_agreement::side_by_side;
use crate::context::Context;
use crate::result::{Figure, RowResult};
use crate::witness::{self, Line, OUT_OF_ORDER, Witness};

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
        context.progress.step(&task.name);
        Ok::<_, String>(judge(&witness))
    });
    context.progress.finish();
    let mut result = RowResult { wrong, ..RowResult::default() };
    let mut found = Vec::new();
    for (task, answer) in tasks.iter().zip(answers) {
        match answer {
            Ok(one) => {
                result.remember(task);
                found.push((task.name.clone(), one));
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    fill(&mut result, found, context.size_name());
    Ok(result)
}

/// The same on the traces of the repository, so that no engine is needed.
pub(super) fn smoke(context: &Context) -> Result<RowResult, String> {
    let mut found = Vec::new();
    for name in TRACES {
        let witness = witness::replayed(context, name, OUT_OF_ORDER)?;
        found.push((name.to_owned(), judge(&witness)));
    }
    let mut result = RowResult::default();
    fill(&mut result, found, "recorded");
    Ok(result)
}

fn fill(result: &mut RowResult, found: Vec<(String, Found)>, size: &str) {
    result.caption = format!(
        "{size} size; modelled {OUT_OF_ORDER}; instructions of at least {HOT} samples; the share of \
         their time that is put on the wrong one"
    );
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    for (name, one) in &found {
        let cells = vec![
            Cell::text(name),
            Cell::Number(one.hot as f64, Unit::Count),
            Cell::Number(one.hot_share, Unit::Share),
            Cell::Number(one.owned, Unit::Share),
            Cell::Number(one.next, Unit::Share),
        ];
        result.detail.rows.push(Row::Cells(Tone::Plain, cells));
    }
    let found: Vec<Found> =
        found.into_iter().map(|(_, one)| one).filter(|one| one.hot > 0).collect();
    if !found.is_empty() {
        let mean =
            |of: fn(&Found) -> f64| 100.0 * found.iter().map(of).sum::<f64>() / found.len() as f64;
        result.ours.push(Figure::exact("error_pct", mean(|one| one.owned)));
        result.ours.push(Figure::exact("next_committing_error_pct", mean(|one| one.next)));
    }
}

/// Both attributions, over the seeds together.
fn judge(witness: &Witness) -> Found {
    let all = witness.cycles.max(1) as f64;
    let seeds = witness.question.seeds.len();
    let samples = |seen: &witness::Seen, line: Line| -> u64 {
        (0..seeds).map(|seed| seen.samples(seed, line)).sum()
    };
    let every = || witness.images.iter().flat_map(|image| &image.seen);
    let exact = |seen: &witness::Seen| seen.2 as f64 / model::core::TICKS as f64 / all;
    let total =
        |line: Line| -> f64 { every().map(|seen| samples(seen, line)).sum::<u64>().max(1) as f64 };
    let (owned_all, next_all) = (total(Line::Owned), total(Line::Cycles));
    let mut found = Found { hot: 0, hot_share: 0.0, owned: 0.0, next: 0.0 };
    for seen in every() {
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
