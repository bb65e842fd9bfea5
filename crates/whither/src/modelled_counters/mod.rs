//! The modelled core's counters, as a stream of counter-log records.
//!
//! ```text
//! program ─► qemu-user ─► blocks, accesses ─► FastCore, one a thread ──► Multiplexer ─► Record
//!                                             exact counts of every event  few counters
//! ```
//!
//! The core knows every count exactly; what comes out is what its few counters saw, slice by
//! slice, as a kernel would read them. User mode only: qemu-user runs no kernel.

mod core;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use counters::Slice;
use model::machine::{Machine, PmuFacts};
use pmu::log::{Header, Record};
use pmu::schedule::{Plan, SLICE_CYCLES};
use pmu::{Counters, EventList, Grouping, Limit, Multiplexer, Rule, group};
use tracer::launch::{Finished, Launch};
use tracer::record::ProcessRecord;
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Live, StreamError};
use tracer::trace::Audience;

use self::core::CountedCore;
use crate::failure::{Failure, RUN_FAILED};

/// What is to be counted on which core.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) program: &'a [OsString],
    pub(crate) machine: &'a Machine,
    pub(crate) events: &'a EventList,
    /// Instead of the machine's own number.
    pub(crate) counters: Option<u32>,
    pub(crate) slice: Option<Slice>,
    pub(crate) seed: u64,
}

/// The anchors of every group: what a slice is measured in.
const ANCHORS: [&str; 2] = ["cycles", "instructions"];

/// How turns are taken, decided before anything runs.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    pub(crate) grouping: Grouping,
    pub(crate) header: Header,
    /// Which anchor ends a slice.
    boundary: usize,
    seed: u64,
}

impl Turns {
    /// Groups the events for the machine's counters.
    pub(crate) fn plan(ask: &Ask<'_>) -> Result<Turns, Failure> {
        let units = units(ask.events);
        let counters = counters(&ask.machine.pmu, ask.counters);
        let grouping = group(&counters, &ANCHORS, &units)
            .map_err(|error| Failure::new(RUN_FAILED, error.to_string()))?;
        let clock_mhz = u64::from(ask.machine.identity.clock_mhz);
        let (boundary, slice) = match ask.slice {
            None => (0, SLICE_CYCLES),
            Some(Slice::Cycles(cycles)) => (0, cycles),
            Some(Slice::Instructions(count)) => (1, count),
            Some(Slice::Nanoseconds(ns)) => (0, (ns.saturating_mul(clock_mhz) / 1000).max(1)),
        };
        let header = Header {
            source: "modelled core".into(),
            machine: ask.machine.name.clone(),
            mode: "user".into(),
            boundary: ANCHORS.get(boundary).copied().unwrap_or_default().into(),
            slice,
            events: grouping.events.clone(),
            anchors: grouping.anchors,
            groups: grouping.groups.iter().map(|group| group.events.clone()).collect(),
        };
        Ok(Turns { grouping, header, boundary, seed: ask.seed })
    }

    fn multiplexer(&self, thread: u64) -> Multiplexer {
        let groups = self.grouping.groups.len();
        let plan = Plan::even(groups, self.header.slice, self.seed.wrapping_add(thread));
        Multiplexer::new(self.grouping.clone(), plan, self.boundary)
    }
}

/// Braces stay together; anchors are in every group already.
fn units(events: &EventList) -> Vec<Vec<String>> {
    let is_anchor = |name: &str| ANCHORS.contains(&name);
    let mut units = Vec::new();
    for (place, event) in events.events.iter().enumerate() {
        let group = events.groups.iter().find(|group| group.contains(&place));
        let members = group.cloned().unwrap_or_else(|| vec![place]);
        if members.first() != Some(&place) {
            continue;
        }
        let names = members.iter().filter_map(|member| events.events.get(*member));
        let names: Vec<String> =
            names.map(|event| event.name.clone()).filter(|name| !is_anchor(name)).collect();
        if !names.is_empty() {
            units.push(names);
        }
        let _ = event;
    }
    units
}

/// The machine's counters as grouping wants them.
fn counters(facts: &PmuFacts, asked: Option<u32>) -> Counters {
    let rules = facts.constraints.iter().map(|constraint| Rule {
        events: constraint.events.clone(),
        limit: Limit::Only(constraint.counters.clone()),
        source: String::new(),
    });
    Counters {
        general: asked.unwrap_or(facts.general),
        fixed: facts.fixed.clone(),
        free: Vec::new(),
        // A ration of one's own knows no such limits: the counters that they name may be gone.
        rules: if asked.is_some() { Vec::new() } else { rules.collect() },
    }
}

/// Runs the program on modelled cores; `take` hears every record as it comes.
pub(crate) fn run(
    ask: &Ask<'_>,
    turns: &Turns,
    mut take: impl FnMut(Received) -> Result<(), Failure>,
) -> Result<Finished, Failure> {
    let (name, arguments) = ask
        .program
        .split_first()
        .ok_or_else(|| Failure::new(RUN_FAILED, "no program was named"))?;
    let launch = Launch { arguments: arguments.to_vec(), ..Launch::new(name) };
    let live = Live { launch, plugin: crate::model::PLUGIN };
    let (to, from) = channel();
    let mut cores = Cores::new(ask.machine, turns, to);
    thread::scope(|scope| {
        let player = scope.spawn(move || live.play(&mut cores));
        take(Received::Record(Record::Header(turns.header.clone())))?;
        listen(&from, &mut take)?;
        let played =
            player.join().map_err(|_| Failure::new(RUN_FAILED, "the modelled core failed"))?;
        let (replayed, finished) = played.map_err(failure)?;
        if !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
            let what = "a part of the program's instructions was lost on the way".to_owned();
            take(Received::Damage(what))?;
        }
        if let Some(sentence) = finished.missing_instruction() {
            take(Received::Damage(sentence.to_owned()))?;
        }
        Ok(finished)
    })
}

/// What is heard of a run.
#[derive(Clone, Debug)]
pub(crate) enum Received {
    /// A record of the counter log.
    Record(Record),
    /// Something is missing, in a sentence.
    Damage(String),
}

fn listen(
    from: &Receiver<Record>,
    take: &mut impl FnMut(Received) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Ends when the last core and the audience are gone.
    for record in from {
        take(Received::Record(record))?;
    }
    Ok(())
}

fn failure(error: StreamError) -> Failure {
    match error {
        StreamError::Launch(error) => crate::model::failure(error),
        other => Failure::new(RUN_FAILED, other.to_string()),
    }
}

/// A core for every thread.
struct Cores {
    machine: Arc<Machine>,
    turns: Turns,
    to: Sender<Record>,
    /// The programs that are known; a process becomes another one by exec.
    names: BTreeMap<ProcessKey, String>,
    threads: u64,
}

impl Cores {
    fn new(machine: &Machine, turns: &Turns, to: Sender<Record>) -> Cores {
        Cores {
            machine: Arc::new(machine.clone()),
            turns: turns.clone(),
            to,
            names: BTreeMap::new(),
            threads: 0,
        }
    }
}

impl Audience for Cores {
    type Core = CountedCore;

    fn thread(&mut self, process: ProcessKey, thread: u32) -> CountedCore {
        let turns = self.turns.multiplexer(self.threads);
        self.threads += 1;
        CountedCore::new(
            &self.machine,
            turns,
            self.turns.boundary,
            (process.pid, thread),
            self.to.clone(),
        )
    }

    fn record(&mut self, process: ProcessKey, record: &ProcessRecord) {
        let ProcessRecord::Program { path } = record else { return };
        let is_new = self.names.insert(process, path.clone()).is_none_or(|known| known != *path);
        if is_new {
            let record = Record::Process { pid: process.pid, parent: 0, name: path.clone() };
            // Nobody listens any more: then nobody is told.
            let _ = self.to.send(record);
        }
    }

    fn ended(&mut self, _: ProcessKey, _: u32, core: CountedCore) {
        core.finish();
    }
}

#[cfg(test)]
mod tests;
