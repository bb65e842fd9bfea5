//! What running a command under each peer costs.
//!
//! Each round runs the command bare, then under every peer that can run here, in an order drawn
//! from the seed. A ratio is the geometric mean over rounds of CPU time under the peer, its own
//! included, to the bare run of the same round.

use metrology::{Coverage, geometric_ratio, paired_difference};
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::make::Rng;
use crate::peers::{self, Mca, Peer, block_throughput};
use crate::result::{Figure, RowResult};
use crate::run::{self, Task, Wrap};

/// What is run unless commands are given: one of each kind that a profiler meets.
const PROGRAMS: &[&str] = &["gzip", "mgrid", "sqlite"];
/// The core whose tables llvm-mca is asked for; stated, so that the answer is the same anywhere.
const CORE: &str = "znver3";

const COLUMNS: [Column; 6] = [
    Column::text("program", "program"),
    Column::text("peer", "peer"),
    Column::number("ratio", "CPU time ×"),
    Column::number("adds", "adds"),
    Column::number("rounds", "rounds"),
    Column::text("version", "version"),
];

type Pairs = Vec<(f64, f64)>;

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let rounds = if context.quick { 4 } else { 10 };
    let (tasks, wrong) = context.tasks(PROGRAMS);
    let mut result = RowResult {
        wrong,
        caption: format!("{} size; CPU time against bare; ± at 95 %", context.size_name()),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    result.seeds.insert("order".to_owned(), json!(context.seed));
    let mut here: Vec<(Box<dyn Peer>, String)> = Vec::new();
    for peer in peers::all() {
        match peer.version(context) {
            Ok(version) => {
                result.versions.insert(peer.name().to_owned(), json!(version));
                here.push((peer, version));
            }
            Err(why) => result.notes.push(format!("{} cannot run here: {why}", peer.name())),
        }
    }
    let mut totals: Vec<Pairs> = vec![Pairs::new(); here.len()];
    context.progress.start((tasks.len() * rounds) as u64);
    for task in &tasks {
        let measured = match measure(context, task, &here, rounds) {
            Ok(measured) => measured,
            Err(sentence) => {
                result.wrong.push(format!("{sentence}; left out"));
                continue;
            }
        };
        result.remember(task);
        for (((peer, version), outcome), total) in here.iter().zip(measured).zip(&mut totals) {
            let (times, adds) = match outcome {
                Ok(pairs) => {
                    total.extend(pairs.iter().copied());
                    (ratio(&pairs), difference(&pairs))
                }
                Err(why) => (Cell::NotCounted(why), Cell::Empty),
            };
            let cells = [
                Cell::text(&task.name),
                Cell::text(peer.name()),
                times,
                adds,
                Cell::Number(rounds as f64, Unit::Number),
                Cell::text(version),
            ];
            result.detail.rows.push(Row::Cells(Tone::Plain, cells.to_vec()));
        }
    }
    context.progress.finish();
    for ((peer, _), pairs) in here.iter().zip(&totals) {
        if let Ok((value, interval)) = geometric_ratio(pairs, Coverage::P95) {
            let key = format!("{}_ratio", peer.name().to_lowercase().replace(' ', "_"));
            result.ours.push(Figure::measured(&key, value, interval));
        }
    }
    if context.quick {
        let note =
            "quick: so short a run shows a tool's own start and report more than its watching";
        result.notes.push(note.to_owned());
    }
    static_schedule(&mut result);
    Ok(result)
}

fn ratio(pairs: &[(f64, f64)]) -> Cell {
    match geometric_ratio(pairs, Coverage::P95) {
        Ok((value, interval)) => Cell::Estimate(value, interval, Unit::Ratio),
        Err(too_few) => Cell::NotCounted(too_few.to_string()),
    }
}

fn difference(pairs: &[(f64, f64)]) -> Cell {
    match paired_difference(pairs) {
        Ok(added) => Cell::Estimate(added.value, added.interval(Coverage::P95), Unit::Seconds),
        Err(too_few) => Cell::NotCounted(too_few.to_string()),
    }
}

/// llvm-mca runs nothing: its figure stands apart.
fn static_schedule(result: &mut RowResult) {
    match Mca.version().and_then(|version| Ok((version, block_throughput(CORE)?))) {
        Ok((version, cycles)) => {
            result.versions.insert("llvm-mca".to_owned(), json!(version));
            result.ours.push(Figure::exact("llvm_mca_block_rthroughput", cycles));
            result.notes.push(format!(
                "llvm-mca schedules the loop of the microbenchmark port-mixed on {CORE}, statically"
            ));
        }
        Err(why) => result.notes.push(format!("llvm-mca cannot run here: {why}")),
    }
}

/// Per peer, the pairs of all rounds, or why there is none.
fn measure(
    context: &Context,
    task: &Task,
    here: &[(Box<dyn Peer>, String)],
    rounds: usize,
) -> Result<Vec<Result<Pairs, String>>, String> {
    let tools: Vec<&str> = here.iter().map(|(_, version)| version.as_str()).collect();
    let key = context.key("peers", task, &tools, rounds);
    if let Some(measured) = context.kept.find(&key) {
        (0..rounds).for_each(|_| context.progress.step(&task.name));
        return Ok(measured);
    }
    let mut measured: Vec<Result<Pairs, String>> = here.iter().map(|_| Ok(Vec::new())).collect();
    let mut rng = Rng::new(context.seed);
    // A peer may write to the streams; bare runs are checked, runs under a peer must succeed.
    let unchecked = Task { check: None, ..task.clone() };
    for _ in 0..rounds {
        context.progress.step(&task.name);
        let bare = run::run(task, &Wrap::default(), &context.work.streams()?)?;
        for place in shuffled(&mut rng, here.len()) {
            let (Some((peer, _)), Some(slot)) = (here.get(place), measured.get_mut(place)) else {
                continue;
            };
            let Ok(pairs) = slot else { continue };
            match under(context, &unchecked, peer.as_ref()) {
                Ok(seconds) => pairs.push((seconds, bare.spent.cpu_seconds())),
                Err(why) => *slot = Err(why),
            }
        }
    }
    context.kept.put(&key, &measured)?;
    Ok(measured)
}

fn under(context: &Context, task: &Task, peer: &dyn Peer) -> Result<f64, String> {
    let streams = context.work.streams()?;
    let wrap = peer.wrap(context, &streams)?;
    Ok(run::run(task, &wrap, &streams)?.spent.cpu_seconds())
}

fn shuffled(rng: &mut Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_a_permutation_and_follows_the_seed() {
        let mut order = shuffled(&mut Rng::new(5), 8);
        assert_eq!(order, shuffled(&mut Rng::new(5), 8));
        assert_ne!(order, shuffled(&mut Rng::new(6), 8));
        order.sort_unstable();
        assert_eq!(order, (0..8).collect::<Vec<_>>());
    }
}
