//! MPX's loops on the modelled core, counted in full and by turns.
//!
//! ```text
//! loops.c ──► engine ┬► FastCore, one a thread ──► counts per 10,000 cycles ─┬─ sums: the truth
//!                   │                                                       └─ turns ─► estimates
//!                   └► the same with our switches' own misses (switched) ────── turns ─► estimates
//! ```
//! A longer run begins as a shorter one, so that one log tells every length: a length ends where its
//! operations are done.

pub mod pollution;
mod switched;

use std::path::Path;

use model::core::Settings;
use model::event::Event;
use model::fast::FastCore;
use model::machine::Machine;
use model::slices::Sliced;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use pmu::estimate::{Counted, linear, totals};
use pmu::schedule::{Plan, Scheduler};
use pmu::{Counters, Grouping, Reading};
use tracer::launch::Launch;
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Live};
use tracer::trace::Audience;

use crate::context::Context;
use crate::hear::ENGINES;
use crate::smoke::compile;
use switched::Switched;

/// Stated, so that the answer is the same on any host.
pub const MACHINE: &str = "zen4";
/// MPX's slice: 10 ms of a 332 MHz processor. Its loops of 2^17 iterations took 5.3 to 8.6 million
/// cycles, between one and three slices; ours take about as many.
pub const SLICE_CYCLES: u64 = 3_320_000;
/// The log's slices.
const LOG_CYCLES: u64 = 10_000;
/// Floating-point operations in an iteration: eight multiplications, sixteen additions.
const FLOPS: u64 = 24;

/// The loops.
pub const KINDS: [&str; 3] = ["tiled", "untiled", "indirect"];

/// What is counted; the first two in every group.
pub const EVENTS: [Event; 5] =
    [Event::Cycles, Event::Instructions, Event::L1dLoadMisses, Event::Flops, Event::Loads];
/// The place of the misses.
pub const MISSES: usize = 2;

/// A thread's counts, slice by slice.
pub type Log = Vec<[u64; EVENTS.len()]>;

/// A thread's log, and what it would have been with our switches at the ends of slices.
#[derive(Debug)]
pub struct Logged {
    /// Nobody switched.
    pub alone: Log,
    /// A handler threw lines out of the first-level cache after every slice of turns.
    pub switched: Log,
}

/// Runs the loop; a log a thread that worked. A switch throws out so many lines.
///
/// # Errors
///
/// It cannot be compiled or run.
pub fn logged(
    context: &Context,
    directory: &Path,
    kind: &str,
    power: u32,
    threads: usize,
    lines: u64,
) -> Result<Vec<Logged>, String> {
    compile(context, "kernels/loops.c", directory)?;
    let arguments = [kind.to_owned(), power.to_string(), threads.to_string()];
    let launch = Launch {
        arguments: arguments.map(Into::into).to_vec(),
        is_repeatable: true,
        drops_output: true,
        ..Launch::new(directory.join("program"))
    };
    let machine = machine()?;
    let mut logs = Logs { machine, lines, logs: Vec::new() };
    let live = Live { launch, engines: ENGINES };
    let (replayed, finished) = live.play(&mut logs).map_err(|e| e.to_string())?;
    if !finished.status.success() || !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
        return Err(format!("loops {kind}: {}", finished.status));
    }
    Ok(logs.logs)
}

/// The machine without prefetches of data: MPX's had none, and with them a sweep hardly misses.
fn machine() -> Result<Machine, String> {
    let text = model::machine::text_of(MACHINE).ok_or("the machine is not there")?;
    let off = |key| (key, "false");
    let overrides = ["prefetch.l1_next_line", "prefetch.l1_stride", "prefetch.l2_stream"].map(off);
    Machine::load(MACHINE, text, &overrides).map_err(|e| e.to_string())
}

struct Logs {
    machine: Machine,
    lines: u64,
    logs: Vec<Logged>,
}

/// One thread, on a core of its own and on one that is switched.
struct Both {
    alone: Sliced,
    switched: Switched,
}

impl CoreListener for Both {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.alone.translated(id, block);
        self.switched.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.alone.executed(id, ran, accesses);
        self.switched.executed(id, ran, accesses);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.alone.continued(id, accesses);
        self.switched.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.alone.interrupted();
        self.switched.interrupted();
    }
}

impl Audience for Logs {
    type Core = Both;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Both {
        let core = || FastCore::new(&self.machine, Settings::default());
        Both {
            alone: Sliced::new(core(), LOG_CYCLES),
            switched: Switched::new(core(), self.lines, SLICE_CYCLES),
        }
    }

    fn ended(&mut self, _: ProcessKey, _: u32, mut core: Both) {
        core.alone.finish();
        core.switched.finish();
        let alone = core.alone.slices().iter().map(|s| EVENTS.map(|event| s[event])).collect();
        self.logs.push(Logged { alone, switched: core.switched.log });
    }
}

/// The part of a log in which so many iterations are done.
pub fn first(log: &Log, power: u32) -> &[[u64; EVENTS.len()]] {
    let (mut flops, wanted) = (0, FLOPS << power);
    let enough = |slice: &[u64; EVENTS.len()]| {
        flops += slice[3];
        flops >= wanted
    };
    let length = log.iter().position(enough).map_or(log.len(), |last| last + 1);
    &log[..length]
}

/// Three groups of one event each beside cycles and instructions, which have counters of their own.
///
/// # Errors
///
/// Never: the counters suffice.
pub fn grouping() -> Result<Grouping, String> {
    let names = EVENTS.map(Event::name);
    let fixed = names[..2].iter().map(|&name| name.to_owned()).collect();
    let counters = Counters { fixed, ..Counters::alike(1) };
    let units: Vec<Vec<String>> = names[2..].iter().map(|&name| vec![name.to_owned()]).collect();
    pmu::group(&counters, &names[..2], &units).map_err(|e| e.to_string())
}

/// What the counters read when the groups take turns.
pub fn by_turns(log: &[[u64; EVENTS.len()]], grouping: &Grouping, seed: u64) -> Vec<Reading> {
    let plan = Plan { opening: None, ..Plan::even(grouping.groups.len(), SLICE_CYCLES, seed) };
    let mut scheduler = Scheduler::new(plan);
    let mut turn = scheduler.start(0);
    let mut readings = Vec::new();
    let (mut sums, mut cycles) = ([0_u64; EVENTS.len()], 0);
    for (place, slice) in log.iter().enumerate() {
        sums.iter_mut().zip(slice).for_each(|(sum, count)| *sum += count);
        cycles += slice[0];
        if cycles >= turn.until || place + 1 == log.len() {
            let events = grouping.groups.get(turn.group).map_or(&[][..], |group| &group.events);
            let counts = events.iter().filter_map(|&event| sums.get(event)).copied().collect();
            readings.push(Reading { group: turn.group, round: turn.round, counts });
            sums = [0; EVENTS.len()];
            turn = scheduler.advance(cycles);
        }
    }
    readings
}

/// An event's estimate over several threads, by linear scaling and by ours; none where a thread has
/// none.
pub fn estimates(
    grouping: &Grouping,
    threads: &[Vec<Reading>],
    event: usize,
) -> (Option<f64>, Option<f64>) {
    let value = |counted: Option<Counted>| counted.map(|counted| counted.estimate.value);
    let ours = |readings: &Vec<Reading>| {
        value(totals(grouping, readings).into_iter().nth(event).flatten())
    };
    let scaled = threads.iter().map(|readings| value(linear(grouping, readings, event))).sum();
    (scaled, threads.iter().map(ours).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(slices: u64) -> Log {
        (0..slices).map(|_| [10_000, 20_000, 50, 480, 700]).collect()
    }

    #[test]
    fn a_steady_log_is_estimated_exactly() {
        let (log, grouping) = (steady(3320), grouping().unwrap());
        let turns = [by_turns(&log, &grouping, 1)];
        assert_eq!(turns[0].len(), 10);
        for event in 2..5 {
            let (linear, ours) = estimates(&grouping, &turns, event);
            let truth = log.iter().map(|slice| slice[event]).sum::<u64>() as f64;
            assert!((linear.unwrap() / truth - 1.0).abs() < 1e-9);
            assert!((ours.unwrap() / truth - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn too_short_a_run_leaves_events_uncounted_and_a_prefix_holds_its_iterations() {
        let (log, grouping) = (steady(400), grouping().unwrap());
        let turns = [by_turns(&log, &grouping, 1)];
        let counted = (2..5).filter(|&e| estimates(&grouping, &turns, e).0.is_some()).count();
        assert_eq!(counted, 2);
        assert_eq!(first(&log, 4).len(), 1);
        assert_eq!(first(&log, 30).len(), 400);
    }
}
