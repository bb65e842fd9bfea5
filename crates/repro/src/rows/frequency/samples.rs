//! The same over the number of samples: what more of them buy, beside what counting alone allows.

use show::{Cell, Column, Row, Table, Tone, Unit};

use super::{QUICK, SEEDS, given};
use crate::context::Context;
use crate::plot::{Bar, bars};
use crate::result::{Figure, Plot, RowResult};
use crate::rows::model_agreement::side_by_side;
use crate::witness::{self, IN_ORDER, OUT_OF_ORDER, Use, Within, judge_frequencies};

/// Shares of the samples that are kept.
const KEPT: [f64; 5] = [1.0 / 64.0, 1.0 / 16.0, 1.0 / 4.0, 1.0 / 2.0, 1.0];

const COLUMNS: [Column; 6] = [
    Column::text("machine", "machine"),
    Column::number("samples", "samples"),
    Column::number("within_5", "within 5 %"),
    Column::number("within_10", "within 10 %"),
    Column::number("within_15", "within 15 %"),
    Column::number("floor_5", "counting alone, 5 %"),
];

pub(in crate::rows) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let root = context.work.streams()?;
    let mut result = RowResult {
        wrong,
        caption: format!(
            "{} size; samples are thinned by chance from one run; every program alike",
            context.size_name()
        ),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    context.progress.start(2 * tasks.len() as u64);
    let mut drawn = Vec::new();
    for machine in [IN_ORDER, OUT_OF_ORDER] {
        let answers = side_by_side(&tasks, |place, task| {
            let witness = witness::witnessed(context, task, machine, SEEDS, &root, place)?;
            let (program, _) = witness::load(witness)?;
            let judged = KEPT.map(|kept| {
                let found = judge_frequencies(&program, Use { kept, ..given(machine) });
                found.instructions.normalised()
            });
            context.progress.step(&task.name);
            Ok::<_, String>((program.samples(0), judged))
        });
        let mut sums = [Within::default(); KEPT.len()];
        let mut samples = 0;
        for (task, answer) in tasks.iter().zip(answers) {
            match answer {
                Ok((count, judged)) => {
                    result.remember(task);
                    samples += count;
                    sums.iter_mut().zip(&judged).for_each(|(sum, one)| sum.merge(one));
                }
                Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
            }
        }
        for (kept, sum) in KEPT.into_iter().zip(&sums).filter(|(_, sum)| sum.all > 0.0) {
            let each = kept * samples as f64 / sum.all;
            result.detail.rows.push(Row::Cells(Tone::Plain, cells(machine, each, sum)));
            let label = |what: &str| format!("{machine} {each:.0} {what}");
            drawn.push(Bar { label: label("ours"), value: sum.share(0), interval: None });
            drawn.push(Bar { label: label("floor"), value: sum.floor_share(0), interval: None });
        }
        if let Some(sum) = sums.last().filter(|sum| sum.all > 0.0) {
            let key = if machine == IN_ORDER { "in_order" } else { "out_of_order" };
            result.ours.push(Figure::exact(&format!("{key}_within_5_pct"), sum.share(0)));
            result.ours.push(Figure::exact(&format!("{key}_floor_5_pct"), sum.floor_share(0)));
        }
    }
    context.progress.finish();
    result.plots.push(Plot {
        name: "freq-samples".to_owned(),
        caption: "Frequency estimates within 5 % over the samples a program, ours and the floor"
            .to_owned(),
        svg: bars("Frequencies within 5 %, by samples", "%", &drawn),
    });
    Ok(result)
}

fn cells(machine: &str, samples: f64, sum: &Within) -> Vec<Cell> {
    let share = |place: usize| Cell::Number(sum.share(place) / 100.0, Unit::Share);
    vec![
        Cell::text(machine),
        Cell::Number(samples, Unit::Count),
        share(0),
        share(1),
        share(2),
        Cell::Number(sum.floor_share(0) / 100.0, Unit::Share),
    ]
}
