//! Totals from counters that take turns, against full counts.

use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::hear;
use crate::mux::judge::{
    EVENTS, Judged, LONG_CYCLES, MACHINE, SLICE_CYCLES, TRACE_CYCLES, each_program, each_trace,
    judge, judge_even, judge_long, mean, quantile, seeds,
};
use crate::mux::truth::Question;
use crate::result::{Figure, RowResult};

/// Events that happened less often are not judged here.
const COUNT_MIN: f64 = 1e5;
const SEEDS: u64 = 10;
const QUICK: &[&str] = &["art", "bzip2", "mcf"];

/// How often the traces are gone through, so that they are as long as a program.
const TRACE_TIMES: usize = 8;
const TRACE_SEEDS: u64 = 3;

const COLUMNS: [Column; 10] = [
    Column::text("program", "program"),
    Column::number("judged", "judged"),
    Column::number("mean_error", "mean error"),
    Column::number("p95_error", "95th"),
    Column::number("even_mean", "even turns"),
    Column::number("even_p95", "95th"),
    Column::number("linear_mean", "linear"),
    Column::number("linear_p95", "95th"),
    Column::number("long_mean", "200k slices"),
    Column::number("long_linear", "linear"),
];

/// Of one program: turns of the modelled PMU's slice as it takes them, the same for all groups, and
/// of the long one.
struct Found {
    short: Vec<Judged>,
    even: Vec<Judged>,
    long: Vec<Judged>,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let seeds = seeds(context, SEEDS);
    let question = Question::by_cycles(MACHINE);
    let (found, mut result) = each_program(context, names, &question, |_, sums| {
        let mut found = Found { short: Vec::new(), even: Vec::new(), long: Vec::new() };
        for &seed in &seeds {
            found.short.extend(judge(sums, SLICE_CYCLES, seed)?);
            found.even.extend(judge_even(sums, SLICE_CYCLES, seed)?);
            found.long.extend(judge_long(sums, seed)?);
        }
        Ok(found)
    })?;
    fill(&mut result, &found, context.size_name(), SLICE_CYCLES);
    result.versions.insert("repro".to_owned(), json!(hear::version(context)?));
    result.seeds.insert("events and orders".to_owned(), json!(seeds));
    Ok(result)
}

/// The same on traces of the repository, in shorter slices.
pub(super) fn smoke(context: &Context) -> Result<RowResult, String> {
    let seeds = seeds(context, TRACE_SEEDS);
    let found = each_trace(context, TRACE_TIMES, |_, sums| {
        let (mut short, mut even) = (Vec::new(), Vec::new());
        for &seed in &seeds {
            short.extend(judge(sums, TRACE_CYCLES, seed)?);
            even.extend(judge_even(sums, TRACE_CYCLES, seed)?);
        }
        Ok(Found { short, even, long: Vec::new() })
    })?;
    let mut result = RowResult::default();
    fill(&mut result, &found, "recorded", TRACE_CYCLES);
    // Ten million instructions hold too few waits for a tail: those figures are the whole row's.
    result.ours.retain(|figure| figure.key == "mean_error_pct");
    Ok(result)
}

fn fill(result: &mut RowResult, found: &[(String, Found)], size: &str, slice: u64) {
    result.caption = format!(
        "{size} size; {MACHINE}, {EVENTS} events on 8 counters in 10 groups, cycles and instructions \
         on fixed ones; slices of {slice} cycles and shorter ones at first, four or three a round for \
         groups of waits, six for the longest waits in the first three million cycles; error of \
         totals of at least 10^5, program × event × seed; beside it even turns, with our estimators \
         and with linear scaling, and both for slices of {LONG_CYCLES} cycles"
    );
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    let row = |(name, f): &(String, Found)| Row::Cells(Tone::Plain, cells(name, f));
    result.detail.rows = found.iter().map(row).collect();
    let short: Vec<Judged> = found.iter().flat_map(|(_, f)| common(&f.short)).collect();
    let even: Vec<Judged> = found.iter().flat_map(|(_, f)| common(&f.even)).collect();
    let long: Vec<Judged> = found.iter().flat_map(|(_, f)| common(&f.long)).collect();
    let mut put = |key: &str, value: Option<f64>| {
        result.ours.extend(value.map(|value| Figure::exact(key, value)));
    };
    put("mean_error_pct", mean(&ours(&short)));
    put("p95_error_pct", quantile(&ours(&short), 0.95));
    put("beyond_5u", Some(short.iter().filter(|j| j.is_beyond_5u()).count() as f64));
    put("even_mean_error_pct", mean(&ours(&even)));
    put("even_p95_error_pct", quantile(&ours(&even), 0.95));
    put("linear_mean_error_pct", mean(&linear(&even)));
    put("linear_p95_error_pct", quantile(&linear(&even), 0.95));
    put("judged", Some(short.len() as f64));
    put("long_mean_error_pct", mean(&ours(&long)));
    put("long_linear_mean_error_pct", mean(&linear(&long)));
    result.notes.push(format!(
        "every seed draws another {EVENTS} of the modelled core's events, cycles by other names left \
         out; the busiest thread is judged; the modelled PMU switches at no cost, so its slices are \
         {slice} cycles, and what slices of {LONG_CYCLES} give stands beside"
    ));
}

fn common(judged: &[Judged]) -> Vec<Judged> {
    judged.iter().filter(|j| j.truth >= COUNT_MIN).copied().collect()
}

fn ours(judged: &[Judged]) -> Vec<f64> {
    judged.iter().map(|j| 100.0 * j.error(&j.ours)).collect()
}

fn linear(judged: &[Judged]) -> Vec<f64> {
    judged.iter().map(|j| 100.0 * j.error(&j.linear)).collect()
}

fn cells(name: &str, found: &Found) -> Vec<Cell> {
    let (short, long) = (common(&found.short), common(&found.long));
    let even = common(&found.even);
    let pct = |value: Option<f64>| {
        value.map_or(Cell::Empty, |value| Cell::Number(value / 100.0, Unit::Share))
    };
    vec![
        Cell::text(name),
        Cell::Number(short.len() as f64, Unit::Number),
        pct(mean(&ours(&short))),
        pct(quantile(&ours(&short), 0.95)),
        pct(mean(&ours(&even))),
        pct(quantile(&ours(&even), 0.95)),
        pct(mean(&linear(&even))),
        pct(quantile(&linear(&even), 0.95)),
        pct(mean(&ours(&long))),
        pct(mean(&linear(&long))),
    ]
}
