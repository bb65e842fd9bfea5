//! DCPI's figures 8 and 9: estimated frequencies against exact ones, on the modelled cores.
//!
//! The headline is what a profile with everything that its core's counters can give allows. In
//! order that is samples of cycles, the directions of the branches that they found, and double
//! samples, the edge samples that the paper left to future work; the paper's own setting, cycles
//! alone, stands beside under keys of its own. Out of order, time says little about how often
//! something ran, so retired instructions and branch stacks are given.

mod samples;

use show::{Cell, Column, Row, Table, Tone, Unit};

use super::model_agreement::side_by_side;
use crate::context::Context;
use crate::result::{Figure, RowResult};
use crate::witness::{
    self, Frequencies, GAP_CYCLES, IN_ORDER, OUT_OF_ORDER, Program, Use, Within, judge_frequencies,
};

pub(super) use samples::run as run_samples;

/// Sets of samples a program.
pub(super) const SEEDS: usize = 2;
/// What a look runs.
pub(super) const QUICK: &[&str] = &["art", "bzip2", "mcf"];
/// What smoke replays.
pub(super) const TRACES: [&str; 2] = ["applu", "art"];

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

/// What every table of frequencies tells of a program; see [`share_cells`].
pub(in crate::rows) const SHARES: [Column; 8] = [
    Column::number("within_5", "within 5 %"),
    Column::number("within_10", "within 10 %"),
    Column::number("within_15", "within 15 %"),
    Column::number("over", "over by > 15 %"),
    Column::number("under", "under by > 15 %"),
    Column::number("low", "low confidence"),
    Column::number("marked", "of > 15 % off, low"),
    Column::number("floor_5", "counting alone, 5 %"),
];

fn columns() -> Vec<Column> {
    let mut columns =
        vec![Column::text("program", "program"), Column::number("samples", "samples")];
    columns.extend(SHARES);
    columns.push(Column::number("time_10", "time alone, 10 %"));
    columns
}

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
    match machine == IN_ORDER {
        true => Use { turns: true, doubles: true, ..Use::TIME },
        false => Use { instructions: true, stacks: true, ..Use::TIME },
    }
}

/// One program's figures, a set a seed.
struct Found {
    name: String,
    samples: u64,
    ours: Frequencies,
    time_alone: Frequencies,
    /// Time, and the directions of the branches that it found.
    turned: Option<Frequencies>,
}

impl Found {
    fn of(name: &str, program: &Program, machine: &str) -> Found {
        let mut ours = Frequencies::default();
        for seed in 0..program.seeds {
            add(&mut ours, &judge_frequencies(program, Use { seed, ..given(machine) }));
        }
        let turned = || judge_frequencies(program, Use { turns: true, ..Use::TIME });
        Found {
            name: name.to_owned(),
            samples: program.samples(0),
            ours,
            time_alone: judge_frequencies(program, Use::TIME),
            turned: (machine == IN_ORDER).then(turned),
        }
    }
}

fn run(context: &Context, machine: &'static str, what: What) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let root = context.work.streams()?;
    context.progress.start(tasks.len() as u64);
    let answers = side_by_side(&tasks, |place, task| {
        let witness = witness::witnessed(context, task, machine, SEEDS, &root, place)?;
        let (program, wrong) = witness::load(witness)?;
        let found = Found::of(&task.name, &program, machine);
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

/// The same on the traces of the repository, so that no engine is needed.
fn smoke(context: &Context, machine: &str, what: What) -> Result<RowResult, String> {
    let mut found = Vec::new();
    for name in TRACES {
        let (program, _) = witness::load(witness::replayed(context, name, machine)?)?;
        found.push(Found::of(name, &program, machine));
    }
    let mut result = RowResult::default();
    fill(&mut result, &found, machine, what, "recorded");
    Ok(result)
}

/// `freq-inorder`.
pub(super) fn smoke_in_order(context: &Context) -> Result<RowResult, String> {
    smoke(context, IN_ORDER, What::Instructions)
}

/// `freq-ooo`.
pub(super) fn smoke_out_of_order(context: &Context) -> Result<RowResult, String> {
    smoke(context, OUT_OF_ORDER, What::Instructions)
}

/// `edges-inorder`.
pub(super) fn smoke_edges_in_order(context: &Context) -> Result<RowResult, String> {
    smoke(context, IN_ORDER, What::Edges)
}

/// `edges-ooo`.
pub(super) fn smoke_edges_out_of_order(context: &Context) -> Result<RowResult, String> {
    smoke(context, OUT_OF_ORDER, What::Edges)
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
        true => format!(
            "cycles, directions of the branches that they found, and double samples {GAP_CYCLES} \
             cycles apart"
        ),
        false => "cycles, retired instructions and branch stacks".to_owned(),
    };
    result.caption = format!(
        "{size} size; modelled {machine}; from samples of {given}; shares weighted by {weighed}, \
         every program alike"
    );
    result.detail = Table { columns: columns(), ..Table::default() };
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
    shares(result, "", &all);
    if machine == IN_ORDER {
        let sum = |of: &dyn Fn(&Found) -> Option<Frequencies>| {
            let mut sum = Within::default();
            let each = found.iter().filter_map(of);
            each.for_each(|one| sum.merge(&what.of(&one).normalised()));
            sum
        };
        shares(result, "cycles_alone_", &sum(&|one| Some(one.time_alone)));
        shares(result, "with_directions_", &sum(&|one| one.turned));
    }
    result.ours.push(Figure::exact("low_confidence_pct", 100.0 * all.low / all.all));
    if let Some(marked) = all.marked() {
        result.ours.push(Figure::exact("off_marked_low_pct", marked));
        let (off, low) = all.off;
        let by_number = 100.0 * low as f64 / off.max(1) as f64;
        result.ours.push(Figure::exact("off_marked_low_by_number_pct", by_number));
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

fn shares(result: &mut RowResult, prefix: &str, within: &Within) {
    for (place, limit) in [5, 10, 15].into_iter().enumerate() {
        let key = format!("{prefix}within_{limit}_pct");
        result.ours.push(Figure::exact(&key, within.share(place)));
    }
}

fn cells(found: &Found, within: &Within, time: &Within) -> Vec<Cell> {
    let mut cells = vec![Cell::text(&found.name), Cell::Number(found.samples as f64, Unit::Count)];
    cells.extend(share_cells(within));
    cells.push(Cell::Number(time.share(1) / 100.0, Unit::Share));
    cells
}

/// The cells of [`SHARES`].
pub(in crate::rows) fn share_cells(within: &Within) -> [Cell; SHARES.len()] {
    let share = |value: f64| Cell::Number(value / within.all.max(f64::MIN_POSITIVE), Unit::Share);
    let marked = within.marked();
    [
        share(within.pct[0]),
        share(within.pct[1]),
        share(within.pct[2]),
        share(within.over),
        share(within.under),
        share(within.low),
        marked.map_or(Cell::Empty, |marked| Cell::Number(marked / 100.0, Unit::Share)),
        if within.floor[0] > 0.0 { share(within.floor[0]) } else { Cell::Empty },
    ]
}
