//! MPX's figure 3: four events counted by turns against the same counted in full, over three loops
//! of eight lengths.

use metrology::{Coverage, Estimate};
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::loops::{self, EVENTS, KINDS, Logged, MISSES, SLICE_CYCLES};
use crate::result::{Figure, RowResult};

/// MPX's lengths.
const POWERS: std::ops::RangeInclusive<u32> = 17..=24;
/// The longest of a look, in all threads together.
const QUICK_POWER: u32 = 20;
/// Orders of turns that are tried.
const SEEDS: u64 = 20;

const COLUMNS: [Column; 8] = [
    Column::text("loop", "loop"),
    Column::text("iterations", "iterations"),
    Column::text("event", "event"),
    Column::number("truth", "truth"),
    Column::number("counted_runs", "runs that counted it"),
    Column::number("linear_error", "linear, worst error"),
    Column::number("error", "ours, worst error"),
    Column::number("polluted_error", "ours and pollution, worst"),
];

/// What came of one event, loop and length over all orders of turns.
#[derive(Debug, Default)]
pub(super) struct Worst {
    pub(super) truth: f64,
    pub(super) counted: u64,
    linear: f64,
    ours: f64,
    pub(super) polluted: f64,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    measure(context, 1)
}

/// The row with so many threads.
pub(super) fn measure(context: &Context, threads: usize) -> Result<RowResult, String> {
    // Four threads do four times the work: a quarter of the length each keeps a look a look.
    let quick_power = QUICK_POWER - threads.ilog2();
    let longest = if context.quick { quick_power } else { *POWERS.end() };
    let directory = context.work.streams()?;
    let pollution = loops::pollution::lines_a_switch();
    let lines = pollution.map_or(0, |lines| lines.value.round().max(0.0) as u64);
    let mut result = RowResult {
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        caption: format!(
            "modelled {} without data prefetches, {threads} {}; slices of {SLICE_CYCLES} cycles (10 ms at 332 MHz), one \
             event at a time beside cycles and instructions; the worst of {SEEDS} orders of turns",
            loops::MACHINE,
            if threads == 1 { "thread" } else { "threads" },
        ),
        ..RowResult::default()
    };
    let mut worst_tiled = 0.0_f64;
    let mut worst_other = 0.0_f64;
    context.progress.start(KINDS.len() as u64);
    for kind in KINDS {
        let logs = loops::logged(context, &directory, kind, longest, threads, lines)?;
        for power in POWERS.filter(|&power| power <= longest) {
            for event in MISSES..EVENTS.len() {
                let worst = compare(&logs, power, event, context.seed)?;
                result.detail.rows.push(row(kind, power, event, &worst));
                match (kind, event) {
                    ("tiled", MISSES) => worst_tiled = worst_tiled.max(worst.polluted),
                    _ => worst_other = worst_other.max(worst.polluted),
                }
            }
        }
        context.progress.step(kind);
    }
    context.progress.finish();
    result.ours.push(Figure::exact("tiled_miss_error_pct", 100.0 * worst_tiled));
    result.ours.push(Figure::exact("error_pct", 100.0 * worst_other));
    result.notes.push(said(pollution, &mut result.ours));
    result.notes.push(
        "cycles and instructions are counted all the time and are exact; a run of fewer slices \
         than groups leaves events uncounted, and their number of runs is below the others'"
            .to_owned(),
    );
    result.seeds.insert("turns".to_owned(), json!((context.seed, SEEDS)));
    Ok(result)
}

/// The pollution as a note, and as a figure.
fn said(pollution: Option<Estimate>, ours: &mut Vec<Figure>) -> String {
    let Some(lines) = pollution else {
        return "this machine's first- and second-level caches cannot be told apart by time: no \
                pollution is added"
            .to_owned();
    };
    let interval = lines.interval(Coverage::P95);
    ours.push(Figure::measured("lines_a_switch", lines.value, interval));
    format!(
        "a switch throws {:.0} ± {:.0} of {} lines out of this machine's first-level data cache \
         (measured natively, waking and two changes of context included); for the last column a \
         handler that reads as many lines of its own runs on the modelled core after every slice, \
         uncounted, and what the loop fetches again is counted. MPX: a few thousand a switch",
        lines.value,
        interval.half_width(),
        loops::pollution::LINES,
    )
}

pub(super) fn compare(
    logs: &[Logged],
    power: u32,
    event: usize,
    seed: u64,
) -> Result<Worst, String> {
    let grouping = loops::grouping()?;
    let alone: Vec<_> = logs.iter().map(|log| loops::first(&log.alone, power)).collect();
    let switched: Vec<_> = logs.iter().map(|log| loops::first(&log.switched, power)).collect();
    let truth: u64 = alone.iter().flat_map(|part| part.iter()).map(|slice| slice[event]).sum();
    let mut worst = Worst { truth: truth as f64, ..Worst::default() };
    let off = |estimate: Option<f64>| estimate.map_or(0.0, |e| (e / truth as f64 - 1.0).abs());
    for k in 0..SEEDS {
        let turns = |parts: &[&[[u64; EVENTS.len()]]]| -> Vec<_> {
            let seed =
                |thread: usize| seed.wrapping_mul(SEEDS).wrapping_add(k + 100 * thread as u64);
            let each = parts.iter().enumerate();
            each.map(|(t, part)| loops::by_turns(part, &grouping, seed(t))).collect()
        };
        let (linear, ours) = loops::estimates(&grouping, &turns(&alone), event);
        let (_, polluted) = loops::estimates(&grouping, &turns(&switched), event);
        worst.counted += u64::from(ours.is_some());
        worst.linear = worst.linear.max(off(linear));
        worst.ours = worst.ours.max(off(ours));
        worst.polluted = worst.polluted.max(off(polluted));
    }
    Ok(worst)
}

fn row(kind: &str, power: u32, event: usize, worst: &Worst) -> Row {
    let share = |error: f64| match worst.counted {
        0 => Cell::NotCounted("fewer slices than groups".to_owned()),
        _ => Cell::Number(error, Unit::Share),
    };
    let name = EVENTS.get(event).map_or("", |event| event.name());
    let cells = vec![
        Cell::text(kind),
        Cell::text(format!("2^{power}")),
        Cell::text(name),
        Cell::Number(worst.truth, Unit::Count),
        Cell::Number(worst.counted as f64, Unit::Number),
        share(worst.linear),
        share(worst.ours),
        share(worst.polluted),
    ];
    Row::Cells(Tone::Plain, cells)
}
