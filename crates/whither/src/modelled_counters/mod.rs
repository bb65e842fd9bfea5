//! The modelled core's counters, as a stream of counter-log records.
//!
//! ```text
//! program ─► engine: a core a thread, its counters taking turns
//!                     └─ a log a process, in a folder of ours ─► followed here ─► Record
//! ```
//!
//! What comes out is what the core's few counters saw, slice by slice, as a kernel would read
//! them, while the program runs. User mode only: no engine runs the kernel.

mod folder;

use std::ffi::OsString;
use std::thread;
use std::time::Duration;

use counters::Slice;
use model::core::Settings;
use model::machine::Machine;
use pmu::log::{Header, Record};
use pmu::schedule::Plan;
use pmu::{EventList, Grouping, Limit, Rule, group};
use tracer::launch::{EngineChoice, Finished, Launch, LaunchError};
use tracer::modelled::counting::{CountError, MODE, SLICE_CYCLES, SOURCE};
use tracer::modelled::{CoreAsk, CountAsk, ModelAsk};
use tracer::settings::Listener;

use self::folder::LogFolder;
use crate::failure::{Failure, RUN_FAILED};

/// What is to be counted on which core.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) program: &'a [OsString],
    pub(crate) machine: &'a Machine,
    /// The text of the machine's file.
    pub(crate) machine_text: &'a str,
    pub(crate) events: &'a EventList,
    /// Fewer general counters than the machine has.
    pub(crate) counters: Option<u32>,
    pub(crate) slice: Option<Turn>,
    pub(crate) seed: u64,
    pub(crate) shares: Shares,
    /// What runs the program.
    pub(crate) engine: &'a EngineChoice,
}

/// How many turns groups get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shares {
    /// As many as each other.
    Even,
    /// More where events come in lumps, as is known of the modelled core's.
    Lumps,
    /// More where events are seen to vary more.
    Spread,
}

/// How long a turn is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// As on the machine itself.
    Of(Slice),
    /// So many occurrences of an event of the modelled core.
    OfEvent(u64, String),
}

/// The anchors of every group.
const ANCHORS: [&str; 2] = ["cycles", "instructions"];
/// No event happens more often than this in a cycle, nor in an instruction.
const PER_CYCLE_MAX: u64 = 16;
/// How often the logs are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How turns are taken, decided before anything runs.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    pub(crate) grouping: Grouping,
    pub(crate) header: Header,
    /// Which anchor ends a slice.
    boundary: usize,
    plan: Plan,
}

fn failed(what: impl Into<String>) -> Failure {
    Failure::new(RUN_FAILED, what)
}

impl Turns {
    /// Groups the events for the machine's counters.
    pub(crate) fn plan(ask: &Ask<'_>) -> Result<Turns, Failure> {
        let facts = &ask.machine.pmu;
        // The longest slice in which no register can wrap.
        let longest = match facts.width_bits {
            width @ 0..=63 => ((1_u64 << width) - 1) / PER_CYCLE_MAX,
            _ => u64::MAX,
        };
        let clock_mhz = u64::from(ask.machine.identity.clock_mhz);
        let (boundary, slice) = match &ask.slice {
            None => ("cycles", SLICE_CYCLES.min(longest)),
            Some(Turn::Of(Slice::Cycles(cycles))) => ("cycles", *cycles),
            Some(Turn::Of(Slice::Instructions(count) | Slice::Occurrences(count))) => {
                ("instructions", *count)
            }
            Some(Turn::Of(Slice::Nanoseconds(ns))) => {
                ("cycles", (ns.saturating_mul(clock_mhz) / 1000).max(1))
            }
            Some(Turn::OfEvent(count, event)) => (event.as_str(), *count),
        };
        if slice > longest {
            let error = CountError::Wraps { slice, width_bits: facts.width_bits };
            return Err(failed(error.to_string()));
        }
        let mut anchors = ANCHORS.to_vec();
        if !anchors.contains(&boundary) {
            anchors.push(boundary);
        }
        let counters = rationed(ask.machine, ask.counters)?;
        let mut units = units(ask.events, &anchors);
        let modelled = pmu::modelled_events().map_err(|error| failed(error.to_string()))?;
        if ask.shares != Shares::Even {
            modelled.order(&mut units);
        }
        let grouping =
            group(&counters, &anchors, &units).map_err(|error| failed(error.to_string()))?;
        let header = Header {
            source: SOURCE.into(),
            machine: ask.machine.name.clone(),
            mode: MODE.into(),
            boundary: boundary.into(),
            slice,
            events: grouping.events.clone(),
            anchors: grouping.anchors,
            groups: grouping.groups.iter().map(|group| group.events.clone()).collect(),
        };
        let boundary = grouping.find(boundary).unwrap_or(0);
        let even = Plan::even(grouping.groups.len(), slice, ask.seed);
        let shares = match ask.shares {
            Shares::Even => even.shares.clone(),
            Shares::Lumps | Shares::Spread => modelled.shares(&grouping),
        };
        // Cold caches are a matter of cycles; occurrences of an event say nothing of them.
        let is_early = ask.shares == Shares::Lumps && matches!(ask.slice, None | Some(Turn::Of(_)));
        let early = is_early.then(|| modelled.early(&grouping));
        let plan = Plan { shares, adapts: ask.shares == Shares::Spread, early, ..even };
        Ok(Turns { grouping, header, boundary, plan })
    }
}

/// Braces stay together; anchors are in every group already.
fn units(events: &EventList, anchors: &[&str]) -> Vec<Vec<String>> {
    let mut units = Vec::new();
    for place in 0..events.events.len() {
        let group = events.groups.iter().find(|group| group.contains(&place));
        let members = group.cloned().unwrap_or_else(|| vec![place]);
        if members.first() != Some(&place) {
            continue;
        }
        let names = members.iter().filter_map(|member| events.events.get(*member));
        let names: Vec<String> = names
            .map(|event| event.name.clone())
            .filter(|name| !anchors.contains(&name.as_str()))
            .collect();
        if !names.is_empty() {
            units.push(names);
        }
    }
    units
}

/// The machine's counters, or the first few of them.
fn rationed(machine: &Machine, asked: Option<u32>) -> Result<pmu::Counters, Failure> {
    let mut counters = model::pmu::counters(&machine.pmu);
    let Some(asked) = asked else { return Ok(counters) };
    if asked > counters.general {
        let (name, has) = (&machine.name, counters.general);
        return Err(failed(format!("{name} has {has} general counters, not {asked}")));
    }
    counters.general = asked;
    let within = |rule: &mut Rule| {
        if let Limit::Only(places) = &mut rule.limit {
            places.retain(|place| *place < asked);
        }
    };
    counters.rules.iter_mut().for_each(within);
    Ok(counters)
}

/// What is heard of a run.
#[derive(Clone, Debug)]
pub(crate) enum Received {
    /// A record of the counter log.
    Record(Record),
    /// Something is missing, in a sentence.
    Damage(String),
}

/// Runs the program on modelled cores; `take` hears every record as it comes.
pub(crate) fn run(
    ask: &Ask<'_>,
    turns: &Turns,
    mut take: impl FnMut(Received) -> Result<(), Failure>,
) -> Result<Finished, Failure> {
    let (name, arguments) =
        ask.program.split_first().ok_or_else(|| failed("no program was named"))?;
    let mut folder = LogFolder::create()
        .map_err(|error| failed(format!("no place for the counters' logs: {error}")))?;
    let listener = Listener::Count(Box::new(CountAsk {
        model: ModelAsk {
            name: ask.machine.name.clone(),
            machine: ask.machine_text.to_owned(),
            core: CoreAsk::Fast,
            settings: Settings::default(),
        },
        grouping: turns.grouping.clone(),
        plan: turns.plan.clone(),
        boundary: turns.boundary,
        logs: folder.path().to_owned(),
    }));
    let engine = ask.engine.clone();
    let launch = Launch { arguments: arguments.to_vec(), listener, engine, ..Launch::new(name) };
    take(Received::Record(Record::Header(turns.header.clone())))?;
    let finished = thread::scope(|scope| {
        let player = scope.spawn(|| launch.run(&crate::model::ENGINES));
        while !player.is_finished() {
            folder.look(&mut take)?;
            thread::sleep(LOOK);
        }
        let finished: Result<Finished, LaunchError> =
            player.join().map_err(|_| failed("the thread that waits for the program died"))?;
        finished.map_err(crate::model::failure)
    })?;
    folder.look(&mut take)?;
    if let Some(sentence) = finished.missing_instruction() {
        take(Received::Damage(sentence.to_owned()))?;
    }
    Ok(finished)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &str) -> EventList {
        let mut list = EventList::default();
        for name in names.split(',') {
            let code = vocab::EventCode::new(u32::MAX, 0);
            let mode = vocab::Mode::User;
            list.events.push(vocab::Event { name: name.into(), code, mode });
            list.typed.push(name.into());
        }
        list
    }

    fn ask<'a>(machine: &'a Machine, events: &'a EventList, counters: Option<u32>) -> Ask<'a> {
        let machine_text = "";
        let (slice, seed, shares, engine) = (None, 3, Shares::Even, &EngineChoice::Best);
        Ask { program: &[], machine, machine_text, events, counters, slice, seed, shares, engine }
    }

    #[test]
    fn what_cannot_be_counted_together_is_named() {
        let machine = Machine::named("ppc970").unwrap();
        let mut events = list("uops,loads,stores,branches,calls,returns,flops");
        let plan = |events: &EventList, counters| Turns::plan(&ask(&machine, events, counters));
        // Eight counters, two of them for the anchors.
        assert_eq!(plan(&events, None).unwrap().grouping.groups.len(), 2);
        assert_eq!(plan(&events, Some(4)).unwrap().grouping.groups.len(), 4);
        events.groups = vec![(0..7).collect()];
        let error = plan(&events, None).unwrap_err().sentence();
        assert!(error.contains("cannot be counted within {uops,loads"), "{error}");
        assert!(plan(&events, Some(9)).unwrap_err().sentence().contains("has 8 general counters"));
    }

    #[test]
    fn slices_are_of_anything_that_is_counted_and_never_wrap_a_register() {
        let events = list("uops");
        let plan = |name: &str, slice: Option<Turn>| {
            let machine = Machine::named(name).unwrap();
            let ask = Ask { slice, ..ask(&machine, &events, None) };
            Turns::plan(&ask).map(|turns| (turns.header.boundary, turns.header.slice))
        };
        assert_eq!(plan("zen4", None).unwrap(), ("cycles".into(), SLICE_CYCLES));
        let branches = Turn::OfEvent(700, "branches".into());
        assert_eq!(plan("zen4", Some(branches)).unwrap(), ("branches".into(), 700));
        // Sixteen bits, sixteen events a cycle.
        assert_eq!(plan("alpha21164", None).unwrap().1, 4095);
        let long = Turn::Of(Slice::Cycles(200_000));
        assert!(plan("alpha21164", Some(long)).unwrap_err().sentence().contains("16 bits"));
    }
}
