//! A program whose period equals the round, under a fixed and under a permuted order.
//!
//! The program is a stretch of a recorded trace, one round long, over and over: every group then
//! meets the same tenth of it in every round unless the order changes.

use pmu::schedule::{Order, Plan};
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::mux::columns::Columns;
use crate::mux::judge::{
    Judged, MACHINE, TRACE_CYCLES, TRACES, groups_of, judge_plan, mean, quantile, seeds,
};
use crate::mux::replay::Sums;
use crate::mux::truth::{Question, replayed};
use crate::result::{Figure, RowResult};

const SEEDS: u64 = 5;
/// Slices of a round, which are the program's period.
const PERIOD: usize = 10;
const ROUNDS: usize = 2_000;
const COUNT_MIN: f64 = 1e5;

const COLUMNS: [Column; 5] = [
    Column::text("trace", "trace"),
    Column::number("judged", "judged"),
    Column::number("fixed_error", "fixed order"),
    Column::number("permuted_error", "permuted"),
    Column::number("permuted_p95", "95th"),
];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let seeds = seeds(context, SEEDS);
    let question = Question { slice: TRACE_CYCLES, ..Question::by_cycles(MACHINE) };
    let mut result = RowResult::default();
    let (mut fixed, mut permuted) = (Vec::new(), Vec::new());
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    for name in TRACES {
        let columns = replayed(context, name, question.clone())?;
        let sums = Sums::new(&repeated(&columns));
        let (mut by_fixed, mut by_permuted) = (Vec::new(), Vec::new());
        for &seed in &seeds {
            let groups = groups_of(seed)?;
            // Slices of one entry of the log each, so that the period is the round exactly.
            let plan = Plan { opening: None, ..Plan::even(groups.groups.len(), 1, seed) };
            let still = Plan { order: Order::Fixed, ..plan.clone() };
            by_fixed.extend(errors(&judge_plan(&sums, &groups, still)?));
            by_permuted.extend(errors(&judge_plan(&sums, &groups, plan)?));
        }
        let pct = |value: Option<f64>| {
            value.map_or(Cell::Empty, |value| Cell::Number(value / 100.0, Unit::Share))
        };
        let cells = vec![
            Cell::text(name),
            Cell::Number(by_permuted.len() as f64, Unit::Number),
            pct(mean(&by_fixed)),
            pct(mean(&by_permuted)),
            pct(quantile(&by_permuted, 0.95)),
        ];
        result.detail.rows.push(Row::Cells(Tone::Plain, cells));
        fixed.extend(by_fixed);
        permuted.extend(by_permuted);
    }
    result.ours.extend(mean(&fixed).map(|e| Figure::exact("fixed_error_pct", e)));
    result.ours.extend(mean(&permuted).map(|e| Figure::exact("permuted_error_pct", e)));
    result.caption = format!(
        "{MACHINE}, 80 events in 10 groups; {PERIOD} slices of {TRACE_CYCLES} cycles from the middle \
         of a trace, {ROUNDS} times over; mean error of totals of at least 10^5"
    );
    result.seeds.insert("events and orders".to_owned(), json!(seeds));
    result.notes.push(
        "the stretches come from the repository's traces, so --cmd and --quick change nothing here"
            .to_owned(),
    );
    Ok(result)
}

/// A round from the middle, over and over.
fn repeated(columns: &Columns) -> Columns {
    let from = (columns.len() / 2).min(columns.len().saturating_sub(PERIOD));
    let stretch = |column: &Vec<u32>| {
        let part = column.get(from..from + PERIOD).unwrap_or_default();
        part.repeat(ROUNDS)
    };
    Columns(columns.0.iter().map(stretch).collect())
}

fn errors(judged: &[Judged]) -> Vec<f64> {
    let common = judged.iter().filter(|j| j.truth >= COUNT_MIN);
    common.map(|j| 100.0 * j.error(&j.ours)).collect()
}
