//! Distributions over time from counters that take turns, against full ones.

use model::event::Event;
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::hear;
use crate::mux::judge::{MACHINE, each_program, groups_of, seeds};
use crate::mux::kl::{Distance, distances};
use crate::mux::replay::{Sums, grouping};
use crate::mux::truth::Question;
use crate::result::{Figure, RowResult};

/// A round of two million cycles in ten slices.
const SLICE_CYCLES: u64 = 200_000;
const SEEDS: u64 = 3;
/// Ours may exceed linear scaling's distance by so much before it is called worse.
const WORSE: f64 = 0.01;
const QUICK: &[&str] = &["art", "bzip2", "mcf"];

/// The table's events but instructions, which are an anchor here and exact.
const TABLE: [Event; 8] = [
    Event::Loads,
    Event::Stores,
    Event::L1dLoadMisses,
    Event::L1iMisses,
    Event::DtlbLoadWalks,
    Event::DtlbLoadMisses,
    Event::L2LoadMisses,
    Event::BranchMisses,
];

const COLUMNS: [Column; 5] = [
    Column::text("program", "program"),
    Column::number("seed", "seed"),
    Column::text("event", "event"),
    Column::number("linear", "linear"),
    Column::number("ours", "ours"),
];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let seeds = seeds(context, SEEDS);
    let question = Question::by_cycles(MACHINE);
    let (found, mut result) =
        each_program(context, names, &question, |_, sums| of(sums, SLICE_CYCLES, &seeds))?;
    fill(&mut result, &found, context.size_name(), SLICE_CYCLES);
    result.versions.insert("repro".to_owned(), json!(hear::version(context)?));
    result.seeds.insert("orders".to_owned(), json!(seeds));
    Ok(result)
}

/// The table's events beside as many others as ten groups hold.
fn of(sums: &Sums, slice: u64, seeds: &[u64]) -> Result<Vec<(u64, Distance)>, String> {
    let mut all = Vec::new();
    for &seed in seeds {
        let others = groups_of(seed)?;
        let others = crate::mux::replay::events_of(&others);
        let others = others.into_iter().skip(2).filter(|event| !TABLE.contains(event));
        let events: Vec<Event> = TABLE.into_iter().chain(others).take(80).collect();
        let groups = grouping(MACHINE, &events)?;
        all.extend(distances(sums, &groups, slice, seed).into_iter().map(|d| (seed, d)));
    }
    Ok(all)
}

fn fill(result: &mut RowResult, found: &[(String, Vec<(u64, Distance)>)], size: &str, slice: u64) {
    result.caption = format!(
        "{size} size; {MACHINE}; 80 events at ratio 10, slices of {slice} cycles, a bin a round, whole \
         counts; KL distance from the full counts, natural logarithm"
    );
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    for (name, distances) in found {
        for (seed, d) in distances.iter().filter(|(_, d)| TABLE.contains(&d.event)) {
            let cells = vec![
                Cell::text(name.clone()),
                Cell::Number(*seed as f64, Unit::Number),
                Cell::text(d.event.name()),
                Cell::text(format!("{:.3}", d.linear)),
                Cell::text(format!("{:.3}", d.ours)),
            ];
            result.detail.rows.push(Row::Cells(Tone::Plain, cells));
        }
    }
    let all: Vec<Distance> = found.iter().flat_map(|(_, d)| d).map(|(_, d)| *d).collect();
    let table: Vec<Distance> = all.iter().filter(|d| TABLE.contains(&d.event)).copied().collect();
    let mut put = |key: &str, value: f64| result.ours.push(Figure::exact(key, value));
    let over = |list: &[Distance], of: fn(&Distance) -> f64, limit: f64| {
        100.0 * list.iter().filter(|d| of(d) > limit).count() as f64 / list.len().max(1) as f64
    };
    put("over_0_2_pct", over(&table, |d| d.ours, 0.2));
    put("over_0_05_pct", over(&table, |d| d.ours, 0.05));
    put("worse_than_linear", table.iter().filter(|d| d.ours > d.linear + WORSE).count() as f64);
    put("linear_over_0_2_pct", over(&table, |d| d.linear, 0.2));
    put("linear_over_0_05_pct", over(&table, |d| d.linear, 0.05));
    put("rated", table.len() as f64);
    put("all_events_over_0_2_pct", over(&all, |d| d.ours, 0.2));
    put("all_events_linear_over_0_2_pct", over(&all, |d| d.linear, 0.2));
    result.notes.push(
        "rated: the table's events with at least one in 10,000 cycles, program × event × seed; \
         instructions are an anchor here, exact and left out; worse_than_linear counts those whose \
         distance exceeds linear scaling's by more than 0.01; all_events are all 80"
            .to_owned(),
    );
}
