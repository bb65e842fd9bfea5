//! DCPI's figures 8 and 9: estimated frequencies against exact ones, on the modelled cores.
//!
//! In order, samples of cycles are given, as the paper had them. Out of order, time says little about how often something ran, so retired instructions
//! and branch stacks are given; what time alone would say stands beside.

mod samples;

use show::{Cell, Column, Row, Table, Tone, Unit};

use super::model_agreement::side_by_side;
use crate::context::Context;
use crate::result::{Figure, RowResult};
use crate::witness::{self, Frequencies, IN_ORDER, OUT_OF_ORDER, Use, Within, judge_frequencies};

pub(super) use samples::run as run_samples;

/// Sets of samples a program.
pub(super) const SEEDS: usize = 2;
/// What a look runs.
pub(super) const QUICK: &[&str] = &["art", "bzip2", "mcf"];

/// Which of the two a row is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Instructions,
    Edges,
}

impl What {
    fn of(self, found: &Frequencies) -> Within {
        match self {
            What::Instructions => found.instructions,
            What::Edges => found.edges,
        }
    }
}

const COLUMNS: [Column; 11] = [
    Column::text("program", "program"),
    Column::number("samples", "samples"),
    Column::number("within_5", "within 5 %"),
    Column::number("within_10", "within 10 %"),
    Column::number("within_15", "within 15 %"),
    Column::number("over", "over by > 15 %"),
    Column::number("under", "under by > 15 %"),
    Column::number("low", "low confidence"),
    Column::number("marked", "of > 15 % off, low"),
    Column::number("floor_5", "counting alone, 5 %"),
    Column::number("time_10", "time alone, 10 %"),
];

/// `freq-inorder`.
pub(super) fn run_in_order(context: &Context) -> Result<RowResult, String> {
    run(context, IN_ORDER, What::Instructions)
}

/// `freq-ooo`.
pub(super) fn run_out_of_order(context: &Context) -> Result<RowResult, String> {
    run(context, OUT_OF_ORDER, What::Instructions)
}

/// `edges-inorder`.
pub(super) fn run_edges_in_order(context: &Context) -> Result<RowResult, String> {
    run(context, IN_ORDER, What::Edges)
}

/// `edges-ooo`.
pub(super) fn run_edges_out_of_order(context: &Context) -> Result<RowResult, String> {
    run(context, OUT_OF_ORDER, What::Edges)
}

/// What the analysis is given on a machine.
pub(super) fn given(machine: &str) -> Use {
    let is_out_of_order = machine != IN_ORDER;
    Use { instructions: is_out_of_order, stacks: is_out_of_order, ..Use::TIME }
}

/// One program's figures, a set a seed.
struct Found {
    name: String,
    samples: u64,
    ours: Frequencies,
    time_alone: Frequencies,
}

fn run(context: &Context, machine: &'static str, what: What) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let root = context.work.streams()?;
    context.progress.start(tasks.len() as u64);
    let answers = side_by_side(&tasks, |place, task| {
        let witness = witness::witnessed(context, task, machine, SEEDS, &root, place)?;
        let (program, wrong) = witness::load(witness)?;
        let mut found = Found {
            name: task.name.clone(),
            samples: program.samples(0),
            ours: Frequencies::default(),
            time_alone: Frequencies::default(),
        };
        for seed in 0..program.seeds {
            add(&mut found.ours, &judge_frequencies(&program, Use { seed, ..given(machine) }));
        }
        found.time_alone = judge_frequencies(&program, Use::TIME);
        context.progress.step(&task.name);
        Ok::<_, String>((found, wrong))
    });
    context.progress.finish();
    let mut result = RowResult { wrong, ..RowResult::default() };
    let mut found = Vec::new();
    for (task, answer) in tasks.iter().zip(answers) {
        match answer {
            Ok((one, unread)) => {
                result.remember(task);
                result
                    .notes
                    .extend(unread.iter().map(|sentence| format!("{sentence}; passed over")));
                found.push(one);
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    if context.quick && context.commands.is_empty() {
        result.notes.push(format!("quick: {} programs, shorter inputs", QUICK.len()));
    }
    fill(&mut result, &found, machine, what, context.size_name());
    result.seeds.insert("sampling".to_owned(), serde_json::json!(context.seed));
    Ok(result)
}

fn add(sum: &mut Frequencies, other: &Frequencies) {
    sum.instructions.merge(&other.instructions);
    sum.edges.merge(&other.edges);
    sum.outside += other.outside;
}

fn fill(result: &mut RowResult, found: &[Found], machine: &str, what: What, size: &str) {
    let weighed = match what {
        What::Instructions => "samples",
        What::Edges => "executions",
    };
    let given = match machine == IN_ORDER {
        true => "cycles",
        false => "cycles, retired instructions and branch stacks",
    };
    result.caption = format!(
        "{size} size; modelled {machine}; from samples of {given}; shares weighted by {weighed}, \
         every program alike"
    );
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    let mut all = Within::default();
    for one in found {
        let within = what.of(&one.ours);
        all.merge(&within.normalised());
        let time = what.of(&one.time_alone);
        result.detail.rows.push(Row::Cells(Tone::Plain, cells(one, &within, &time)));
    }
    if found.is_empty() {
        return;
    }
    for (place, key) in ["within_5_pct", "within_10_pct", "within_15_pct"].into_iter().enumerate() {
        result.ours.push(Figure::exact(key, all.share(place)));
    }
    result.ours.push(Figure::exact("low_confidence_pct", 100.0 * all.low / all.all));
    if let Some(marked) = all.marked() {
        result.ours.push(Figure::exact("off_marked_low_pct", marked));
    }
    if what == What::Instructions {
        result.ours.push(Figure::exact("floor_5_pct", all.floor_share(0)));
    }
    let outside: u64 = found.iter().map(|one| one.ours.outside).sum();
    if outside > 0 && what == What::Instructions {
        result.notes.push(format!(
            "{outside} samples lie in no procedure; they count as far off and as low confidence"
        ));
    }
}

fn cells(found: &Found, within: &Within, time: &Within) -> Vec<Cell> {
    let share = |value: f64| Cell::Number(value / within.all.max(f64::MIN_POSITIVE), Unit::Share);
    let marked = within.marked();
    vec![
        Cell::text(&found.name),
        Cell::Number(found.samples as f64, Unit::Count),
        share(within.pct[0]),
        share(within.pct[1]),
        share(within.pct[2]),
        share(within.over),
        share(within.under),
        share(within.low),
        marked.map_or(Cell::Empty, |marked| Cell::Number(marked / 100.0, Unit::Share)),
        if within.floor[0] > 0.0 { share(within.floor[0]) } else { Cell::Empty },
        Cell::Number(time.share(1) / 100.0, Unit::Share),
    ]
}
