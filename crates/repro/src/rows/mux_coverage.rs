//! How often the ± of a multiplexed count tells the truth.

use std::collections::BTreeMap;

use metrology::{Coverage, share};
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::hear;
use crate::mux::judge::{
    EVENTS, Judged, LONG_CYCLES, MACHINE, SLICE_CYCLES, each_program, judge, judge_long, quantile,
    seeds,
};
use crate::mux::truth::Question;
use crate::result::{Figure, RowResult};

const SEEDS: u64 = 20;
/// A decade with fewer intervals says nothing about 95 %.
const INTERVALS_MIN: usize = 100;
const QUICK: &[&str] = &["art", "bzip2", "mcf"];

const COLUMNS: [Column; 7] = [
    Column::text("program", "program or decade"),
    Column::number("intervals", "intervals"),
    Column::number("held", "hold the truth"),
    Column::number("half_width", "median half-width"),
    Column::number("linear_held", "linear's hold"),
    Column::number("long_held", "200k slices hold"),
    Column::number("long_half_width", "half-width"),
];

/// Of a program or a decade: turns of the modelled PMU's slice as it takes them, and even ones of
/// the default on real counters.
#[derive(Default)]
struct Found {
    short: Vec<Judged>,
    long: Vec<Judged>,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let seeds = seeds(context, SEEDS);
    let question = Question::by_cycles(MACHINE);
    let (found, mut result) = each_program(context, names, &question, |_, sums| {
        let mut found = Found::default();
        for &seed in &seeds {
            found.short.extend(judge(sums, SLICE_CYCLES, seed)?);
            found.long.extend(judge_long(sums, seed)?);
        }
        Ok(found)
    })?;
    fill(&mut result, &found, context.size_name(), SLICE_CYCLES);
    result.versions.insert("repro".to_owned(), json!(hear::version(context)?));
    result.seeds.insert("events and orders".to_owned(), json!(seeds));
    Ok(result)
}

fn fill(result: &mut RowResult, found: &[(String, Found)], size: &str, slice: u64) {
    result.caption = format!(
        "{size} size; {MACHINE}, {EVENTS} events in 10 groups, slices of {slice} cycles; 95 % \
         intervals of every event that happened, program × event × seed; half-widths in parts of the \
         truth; beside it even turns of {LONG_CYCLES} cycles, the default on real counters"
    );
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    let mut decades: BTreeMap<i32, Found> = BTreeMap::new();
    for (_, found) in found {
        for judged in &found.short {
            decades.entry(judged.decade()).or_default().short.push(*judged);
        }
        for judged in &found.long {
            decades.entry(judged.decade()).or_default().long.push(*judged);
        }
    }
    let programs = found.iter().map(|(name, found)| cells(name, found));
    let by_decade = decades.iter().map(|(decade, found)| cells(&format!("10^{decade}"), found));
    let rows = programs.chain(by_decade).map(|cells| Row::Cells(Tone::Plain, cells));
    result.detail.rows = rows.collect();
    let all: Vec<Judged> = found.iter().flat_map(|(_, found)| &found.short).copied().collect();
    let long: Vec<Judged> = found.iter().flat_map(|(_, found)| &found.long).copied().collect();
    result.ours.extend(coverage("coverage_pct", &all));
    let worst = worst(decades.values().map(|found| found.short.as_slice()));
    result.ours.extend(worst.map(|pct| Figure::exact("worst_decade_pct", pct)));
    let widths: Vec<f64> = all.iter().map(half_width).collect();
    let median = quantile(&widths, 0.5).map(|width| Figure::exact("half_width_pct", 100.0 * width));
    result.ours.extend(median);
    let linear = all.iter().filter(|j| j.linear.interval(Coverage::P95).holds(j.truth)).count();
    let linear = 100.0 * linear as f64 / all.len().max(1) as f64;
    result.ours.push(Figure::exact("linear_coverage_pct", linear));
    result.ours.push(Figure::exact("intervals", all.len() as f64));
    result.ours.extend(coverage("long_coverage_pct", &long));
    result.notes.push(format!(
        "the worst decade is the one whose coverage is farthest from 95 %, above or below, of those \
         with at least {INTERVALS_MIN} intervals; intervals of one program and event under different \
         seeds share their program, so the ± of the coverage is too small"
    ));
}

fn coverage(key: &str, judged: &[Judged]) -> Option<Figure> {
    let held = judged.iter().filter(|j| j.holds()).count() as u64;
    let (value, interval) = share(held, judged.len() as u64, Coverage::P95)?;
    Some(Figure::measured(key, 100.0 * value, interval.scaled(100.0)))
}

fn worst<'a>(decades: impl Iterator<Item = &'a [Judged]>) -> Option<f64> {
    let off = |pct: f64| (pct - 95.0).abs();
    let rated = decades.filter(|judged| judged.len() >= INTERVALS_MIN);
    rated.map(covered).max_by(|a, b| off(*a).total_cmp(&off(*b)))
}

fn half_width(judged: &Judged) -> f64 {
    judged.ours.interval(Coverage::P95).half_width() / judged.truth
}

fn covered(judged: &[Judged]) -> f64 {
    100.0 * judged.iter().filter(|j| j.holds()).count() as f64 / judged.len().max(1) as f64
}

fn median_width(judged: &[Judged]) -> Cell {
    let widths: Vec<f64> = judged.iter().map(half_width).collect();
    quantile(&widths, 0.5).map_or(Cell::Empty, |width| Cell::Number(width, Unit::Share))
}

fn cells(name: &str, found: &Found) -> Vec<Cell> {
    let judged = &found.short;
    let linear = judged.iter().filter(|j| j.linear.interval(Coverage::P95).holds(j.truth)).count();
    vec![
        Cell::text(name),
        Cell::Number(judged.len() as f64, Unit::Number),
        Cell::Number(covered(judged) / 100.0, Unit::Share),
        median_width(judged),
        Cell::Number(linear as f64 / judged.len().max(1) as f64, Unit::Share),
        Cell::Number(covered(&found.long) / 100.0, Unit::Share),
        median_width(&found.long),
    ]
}
