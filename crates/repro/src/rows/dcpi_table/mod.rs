//! Shapes of the sample table, on recorded samples.
//!
//! Every shape of the same size in bytes sees the same samples. What a sample costs is the cache
//! lines that the handler touches, cold because a millisecond of other work lies between two
//! samples, and its share of the entries that the daemon must take and merge:
//!
//! ```text
//! cost = lines × cost of a cold line + entries × cost of an entry
//! ```
//! Both costs are measured here. A shape is better than ours if its cost is lower over the pieces
//! of the traces at 95 %; a difference that chance explains makes none better.

mod record;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use collect::{Hash, PlainTable, Replacement, TableShape};
use metrology::{Coverage, mean};
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};
use vocab::{Count, Epoch, EventId, ImageId, Offset, Profile, Source, Spot};

use crate::context::Context;
use crate::make::Rng;
use crate::result::{Figure, RowResult};
use crate::run::{self, Wrap};
use record::{Recorded, Trace};

const PROGRAMS: &[&str] = &["gcc-50", "redis"];
/// Twenty times the default, so that a minute stands for the time between drains.
const HERTZ: u64 = 19_997;
/// Bytes of an entry, and of the line that it shares.
const ENTRY: usize = 16;
const LINE: usize = 64;
/// The table of the default rate.
const BYTES: usize = 256 * 1024;
/// Samples of a piece: what the default rate brings between two drains.
const PIECE: usize = 50_000;

const OURS: TableShape = TableShape {
    ways: 4,
    buckets: BYTES / ENTRY / 4,
    hash: Hash::Multiply,
    replacement: Replacement::SwapToFront,
};

const COLUMNS: [Column; 9] = [
    Column::text("workload", "workload"),
    Column::number("kib", "KiB"),
    Column::number("ways", "ways"),
    Column::text("replacement", "replacement"),
    Column::text("hash", "hash"),
    Column::number("miss_rate", "misses"),
    Column::number("aggregation", "samples an entry"),
    Column::number("lines", "lines a sample"),
    Column::number("cost_ns", "ns a sample"),
];

/// What a shape did with one piece.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    samples: f64,
    misses: f64,
    handed: f64,
    lines: f64,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let (tasks, wrong) = context.tasks(PROGRAMS);
    let mut result = RowResult {
        wrong,
        caption: format!("{} size; cpu-clock at {HERTZ} Hz", context.size_name()),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    result.seeds.insert("cold lines".to_owned(), json!(context.seed));
    let (line_ns, entry_ns) = (cold_line_ns(context.seed), entry_ns());
    result.notes.push(format!(
        "a cold line takes {line_ns:.0} ns and an entry {entry_ns:.0} ns of the daemon, measured \
         here"
    ));
    let mut better = 0;
    let mut saving: Option<f64> = None;
    let repeats = if context.quick { 3 } else { 12 };
    for task in &tasks {
        let recorded = record_while(
            |streams| {
                for _ in 0..repeats {
                    context.progress.step(&task.name);
                    run::run(task, &Wrap::default(), streams)?;
                }
                Ok(())
            },
            &context.work.streams()?,
        )?;
        result.remember(task);
        if recorded.lost > 0 {
            result.notes.push(format!("{}: {} samples found no room", task.name, recorded.lost));
        }
        let costs = compare(&task.name, &recorded.traces, line_ns, entry_ns, &mut result);
        better += costs.better;
        // The least of them: what can be promised whatever runs.
        saving = match (saving, costs.saving_pct) {
            (Some(least), Some(here)) => Some(f64::min(least, here)),
            (known, here) => known.or(here),
        };
    }
    result.ours.push(Figure::exact("better_tried", better as f64));
    if let Some(saving) = saving {
        result.ours.push(Figure::exact("saving_pct", saving));
    }
    Ok(result)
}

/// Samples everything while `work` is done.
fn record_while(
    work: impl FnOnce(&std::path::Path) -> Result<(), String>,
    streams: &std::path::Path,
) -> Result<Recorded, String> {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let recorder = scope.spawn(|| record::record(HERTZ, cpus, &stop));
        let done = work(streams);
        stop.store(true, Ordering::Relaxed);
        let recorded = recorder.join().map_err(|_| "the recorder failed".to_owned())??;
        done.map(|()| recorded)
    })
}

/// How the others compare.
struct Compared {
    better: usize,
    /// What our shape saves over the paper's: four ways, replaced in turn.
    saving_pct: Option<f64>,
}

fn compare(
    workload: &str,
    traces: &[Trace],
    line_ns: f64,
    entry_ns: f64,
    result: &mut RowResult,
) -> Compared {
    let cost =
        |seen: &Seen| (seen.lines * line_ns + seen.handed * entry_ns) / seen.samples.max(1.0);
    let costs = |seen: &[Seen]| seen.iter().map(cost).collect::<Vec<f64>>();
    let ours = replay(OURS, traces);
    let our_costs = costs(&ours);
    let (mut better, mut saving_pct) = (0, None);
    for (shape, judged) in shapes() {
        let seen = replay(shape, traces);
        let apart: Vec<f64> = our_costs.iter().zip(costs(&seen)).map(|(a, b)| a - b).collect();
        let is_better =
            judged && mean(&apart).is_ok_and(|apart| apart.interval(Coverage::P95).low > 0.0);
        better += usize::from(is_better);
        if shape == (TableShape { replacement: Replacement::RoundRobin, ..OURS }) {
            let total = |costs: &[f64]| costs.iter().sum::<f64>();
            let theirs = total(&costs(&seen));
            saving_pct = Some(100.0 * (1.0 - total(&our_costs) / theirs.max(1e-9)));
        }
        let tone = match (is_better, shape == OURS) {
            (true, _) => Tone::Bad,
            (_, true) => Tone::Good,
            _ => Tone::Plain,
        };
        result.detail.rows.push(Row::Cells(tone, cells(workload, shape, &seen, &costs(&seen))));
    }
    Compared { better, saving_pct }
}

fn cells(workload: &str, shape: TableShape, seen: &[Seen], costs: &[f64]) -> Vec<Cell> {
    let sum = |of: fn(&Seen) -> f64| seen.iter().map(of).sum::<f64>();
    let samples = sum(|seen| seen.samples).max(1.0);
    let number = |value: f64| Cell::Number(value, Unit::Number);
    vec![
        Cell::text(workload),
        number((shape.ways * shape.buckets * ENTRY) as f64 / 1024.0),
        number(shape.ways as f64),
        Cell::text(replacement_name(shape.replacement)),
        Cell::text(hash_name(shape.hash)),
        Cell::Number(sum(|seen| seen.misses) / samples, Unit::Share),
        number(samples / sum(|seen| seen.handed).max(1.0)),
        number(sum(|seen| seen.lines) / samples),
        match mean(costs) {
            Ok(cost) => Cell::Estimate(cost.value, cost.interval(Coverage::P95), Unit::Number),
            Err(_) => number(costs.iter().sum::<f64>() / costs.len().max(1) as f64),
        },
    ]
}

fn replacement_name(replacement: Replacement) -> &'static str {
    match replacement {
        Replacement::SwapToFront => "swap to front",
        Replacement::MoveToFront => "move to front",
        Replacement::RoundRobin => "in turn",
        Replacement::LeastCounted => "least counted",
        Replacement::SwapForward => "swap forward",
    }
}

fn hash_name(hash: Hash) -> &'static str {
    match hash {
        Hash::Multiply => "two multiplications",
        Hash::XorMultiply => "one multiplication",
        Hash::LowBits => "low bits",
        Hash::Fold => "shifts",
    }
}

/// One thing changed at a time, and the corners of ways and replacement; the second says whether
/// the shape has our size and so can be judged against ours.
fn shapes() -> Vec<(TableShape, bool)> {
    use Replacement::{LeastCounted, MoveToFront, RoundRobin, SwapForward, SwapToFront};
    let of = |ways: usize, replacement| TableShape {
        ways,
        buckets: BYTES / ENTRY / ways,
        replacement,
        ..OURS
    };
    let mut shapes = Vec::new();
    for ways in [1, 2, 4, 6, 8] {
        for replacement in [SwapToFront, MoveToFront, RoundRobin, LeastCounted, SwapForward] {
            // With one way there is nothing to choose.
            if ways > 1 || replacement == SwapToFront {
                shapes.push((of(ways, replacement), true));
            }
        }
    }
    for hash in [Hash::XorMultiply, Hash::LowBits, Hash::Fold] {
        shapes.push((TableShape { hash, ..OURS }, true));
    }
    for quarter in [1, 2, 8, 16] {
        shapes.push((TableShape { buckets: OURS.buckets * quarter / 4, ..OURS }, false));
    }
    shapes
}

/// Runs every piece of every trace through a fresh table.
fn replay(shape: TableShape, traces: &[Trace]) -> Vec<Seen> {
    let pieces = traces.iter().flat_map(|trace| trace.chunks(PIECE));
    pieces
        .filter(|piece| piece.len() * 2 >= PIECE || traces.len() < 3)
        .map(|piece| one(shape, piece))
        .collect()
}

fn one(shape: TableShape, piece: &[(vocab::Pid, vocab::Pc)]) -> Seen {
    let mut table = PlainTable::new(shape);
    let mut seen = Seen { samples: piece.len() as f64, ..Seen::default() };
    for &(pid, pc) in piece {
        let looked = table.find(pid, pc, EventId(0));
        seen.lines += lines(shape, looked);
        if table.count(pid, pc, EventId(0)).is_some() {
            seen.handed += 1.0;
        }
    }
    seen.misses = table.inserted as f64;
    seen.handed += table.drain().count() as f64;
    seen
}

/// Cache lines that the handler touches. A hit looks at the entries up to its own; a miss looks at
/// all of them, and what falls out goes to the spill, a quarter of a line each time. A bucket of
/// six begins in the middle of a line every other time.
fn lines(shape: TableShape, found: Option<usize>) -> f64 {
    let bytes = match found {
        Some(way) => (way + 1) * ENTRY,
        None => shape.ways * ENTRY,
    };
    let aligned = (shape.ways * ENTRY).is_multiple_of(LINE) || shape.ways < LINE / ENTRY;
    let touched = bytes.div_ceil(LINE) as f64;
    // Starting half-way: one line more where the second half does not hold the rest.
    let shifted = (bytes + LINE / 2).div_ceil(LINE) as f64;
    let table = if aligned { touched } else { (touched + shifted) / 2.0 };
    let turn = match shape.replacement {
        // The place of the next turn is kept outside of a full line.
        Replacement::RoundRobin if found.is_none() => 1.0,
        _ => 0.0,
    };
    let spill = if found.is_none() { ENTRY as f64 / LINE as f64 } else { 0.0 };
    table + turn + spill
}

/// A line of memory that nobody has looked at for long: a walk through 64 MB in random order.
fn cold_line_ns(seed: u64) -> f64 {
    const LINES: usize = 1 << 20;
    let mut order: Vec<u32> = (0..LINES as u32).collect();
    let mut rng = Rng::new(seed);
    for last in (1..LINES).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    let mut next = vec![[0_u32; LINE / 4]; LINES];
    for pair in order.windows(2) {
        next[pair[0] as usize][0] = pair[1];
    }
    next[order[LINES - 1] as usize][0] = order[0];
    let mut at = order[0];
    const STEPS: usize = 1 << 20;
    let began = Instant::now();
    for _ in 0..STEPS {
        at = next[at as usize][0];
    }
    std::hint::black_box(at);
    began.elapsed().as_nanos() as f64 / STEPS as f64
}

/// What the daemon does with an entry, once placed: it goes into a profile.
fn entry_ns() -> f64 {
    const ENTRIES: u64 = 30_000;
    let epoch = Epoch { host: String::new(), began_unix_ns: 0 };
    let mut profile = Profile::empty(epoch, Source::Measured, Vec::new());
    let began = Instant::now();
    for entry in 0..ENTRIES {
        let offset = Offset(entry.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44);
        let image = ImageId((entry % 60) as u32);
        profile.store(Spot { image, offset, event: EventId(0) }, Count::ONE);
    }
    std::hint::black_box(&profile);
    began.elapsed().as_nanos() as f64 / ENTRIES as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_from_where_an_entry_lies() {
        let shape = |ways| TableShape { ways, ..OURS };
        assert_eq!(lines(shape(4), Some(0)), 1.0);
        assert_eq!(lines(shape(4), Some(3)), 1.0);
        assert_eq!(lines(shape(4), None), 1.25);
        assert_eq!(lines(shape(8), Some(3)), 1.0);
        assert_eq!(lines(shape(8), Some(4)), 2.0);
        // 96 bytes from the start of a line touch two; from its middle two as well.
        assert_eq!(lines(shape(6), None), 2.25);
        // The third entry ends at 48: inside the line, or sixteen bytes into the next.
        assert_eq!(lines(shape(6), Some(2)), 1.5);
    }

    #[test]
    fn ours_is_what_the_collector_uses_by_default() {
        let geometry = collect::Geometry::for_rate(997);
        assert_eq!(geometry.ways as usize, OURS.ways);
        assert_eq!(1_usize << geometry.bucket_bits, OURS.buckets);
        assert_eq!(geometry.table_bytes() as usize, BYTES);
    }

    #[test]
    fn every_judged_shape_has_our_size_or_a_little_less() {
        for (shape, judged) in shapes() {
            let bytes = shape.ways * shape.buckets * ENTRY;
            assert!(!judged || (BYTES - 96..=BYTES).contains(&bytes), "{shape:?}");
        }
    }
}
