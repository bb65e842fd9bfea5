//! Table 4: which way categories interact when a loop of the machine is long.

use icost::{Categories, Category, Lattice, subsets_up_to};
use show::{Cell, Column, Row, Table, Tone, Unit};

use super::{Found, Wanted, answers, mean_of, recorded};
use crate::context::Context;
use crate::idealise::{Variant, by_set};
use crate::result::{Figure, RowResult};

const WINDOWS: usize = 20;
const QUICK_WINDOWS: usize = 8;
const WINDOW_INSTRUCTIONS: u64 = 20_000;

/// A pair and the sign of its interaction cost in the paper, suite mean.
type Signed = (Category, Category, f64);

/// With a first-level latency of 4.
pub(in crate::rows) fn four_a(context: &Context) -> Result<RowResult, String> {
    let signs = [
        (Category::Dl1, Category::Win, -1.0),
        (Category::Dl1, Category::Bw, 1.0),
        (Category::Dl1, Category::Bmisp, -1.0),
        (Category::Dl1, Category::Shalu, -1.0),
    ];
    row(context, "icost-4a", &[("caches.l1d.latency_cycles", 4)], &signs)
}

/// With a two-cycle issue-wakeup loop.
pub(in crate::rows) fn four_b(context: &Context) -> Result<RowResult, String> {
    let signs = [(Category::Shalu, Category::Win, -1.0), (Category::Shalu, Category::Bw, 1.0)];
    row(context, "icost-4b", &[("window.wakeup_cycles", 2)], &signs)
}

const LONG_MISPREDICT: [(&str, u32); 1] = [("window.mispredict_cycles", 15)];
const LONG_MISPREDICT_SIGNS: [Signed; 1] = [(Category::Bmisp, Category::Win, 1.0)];

/// With a 15-cycle mispredict loop.
pub(in crate::rows) fn four_c(context: &Context) -> Result<RowResult, String> {
    row(context, "icost-4c", &LONG_MISPREDICT, &LONG_MISPREDICT_SIGNS)
}

/// The same on recorded traces.
pub(in crate::rows) fn four_c_smoke(context: &Context) -> Result<RowResult, String> {
    let wanted = wanted("icost-4c", &LONG_MISPREDICT, QUICK_WINDOWS);
    let found = recorded(context, &wanted)?;
    Ok(told(found, "recorded", &LONG_MISPREDICT, &LONG_MISPREDICT_SIGNS))
}

fn wanted(row: &'static str, facts: &[(&str, u32)], windows: usize) -> Wanted {
    Wanted {
        row,
        variants: vec![Variant::table_6(facts)],
        windows,
        window_instructions: WINDOW_INSTRUCTIONS,
        most: Category::ALL.len() as u32,
        really: false,
        shotgun: None,
    }
}

fn row(
    context: &Context,
    name: &'static str,
    facts: &[(&str, u32)],
    signs: &[Signed],
) -> Result<RowResult, String> {
    let windows = if context.quick { QUICK_WINDOWS } else { WINDOWS };
    let found = answers(context, &wanted(name, facts, windows))?;
    Ok(told(found, context.size_name(), facts, signs))
}

fn told(found: Found, size: &str, facts: &[(&str, u32)], signs: &[Signed]) -> RowResult {
    let (found, mut result) = found;
    let lattices: Vec<(String, Lattice)> = found
        .iter()
        .map(|(name, answer)| (name.clone(), by_set(answer.variants.iter().flatten()).0))
        .collect();
    fill(&mut result, &lattices, signs);
    let facts: Vec<String> = facts.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    result.caption = format!(
        "{size} size; the machine of table 6 with {}; share of all cycles in percent",
        facts.join(", ")
    );
    result
}

fn fill(result: &mut RowResult, lattices: &[(String, Lattice)], signs: &[Signed]) {
    let whole = |lattice: &Lattice| lattice.time(Categories::NONE).unwrap_or(f64::NAN);
    let share =
        |lattice: &Lattice, set| 100.0 * lattice.icost(set).unwrap_or(f64::NAN) / whole(lattice);
    let mean = |set: Categories| {
        mean_of(&lattices.iter().map(|(_, lattice)| share(lattice, set)).collect::<Vec<f64>>())
    };
    let agrees = |&(a, b, sign): &Signed| sign * mean(Categories::of(&[a, b])) > 0.0;
    let agree = signs.iter().filter(|signed| agrees(signed)).count();
    result.ours.push(Figure::exact("signs_agree", agree as f64));
    // Every set's interaction cost and what is left: all of the time.
    let sum = |lattice: &Lattice| {
        let sets = subsets_up_to(Category::ALL.len() as u32);
        let costs: f64 = sets.iter().map(|&set| share(lattice, set)).sum();
        let left = lattice.time(Categories::ALL).unwrap_or(f64::NAN);
        costs + 100.0 * left / whole(lattice)
    };
    let totals: Vec<f64> = lattices.iter().map(|(_, lattice)| sum(lattice)).collect();
    result.ours.push(Figure::exact("total", mean_of(&totals)));
    result.notes.push(
        "total: the interaction costs of all 256 sets and the time left with everything idealised"
            .to_owned(),
    );
    let mut sets: Vec<Categories> = subsets_up_to(1).into_iter().skip(1).collect();
    let focus = signs.first().map_or(Category::Dl1, |signed| signed.0);
    let others = Category::ALL.iter().filter(|&&other| other != focus);
    sets.extend(others.map(|&other| Categories::of(&[focus, other])));
    result.detail = table(lattices, &sets, &share, &mean);
}

fn table(
    lattices: &[(String, Lattice)],
    sets: &[Categories],
    share: &dyn Fn(&Lattice, Categories) -> f64,
    mean: &dyn Fn(Categories) -> f64,
) -> Table {
    let cells = |set: &Categories| {
        let each =
            lattices.iter().map(|(name, lattice)| format!("{name} {:.1}", share(lattice, *set)));
        let cells = vec![
            Cell::text(set.name()),
            Cell::Number(mean(*set), Unit::Number),
            Cell::text(each.collect::<Vec<_>>().join(", ")),
        ];
        Row::Cells(Tone::Plain, cells)
    };
    Table {
        columns: vec![
            Column::text("category", "category"),
            Column::number("mean", "mean"),
            Column::text("programs", "by program"),
        ],
        rows: sets.iter().map(cells).collect(),
        text_rows: None,
    }
}
