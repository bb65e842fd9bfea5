//! `whither stat`, checked and completed.

use std::ffi::OsString;
use std::time::Duration;

use counters::Slice;
use model::event::Event as ModelEvent;
use model::machine::Machine;
use pmu::{
    Breakdown, Dictionary, EventList, Metric, event_sets, metrics, modelled_events, nearest,
};
use tracer::launch::EngineChoice;
use vocab::{Event, EventCode, Mode};

use super::engine::engine_choice;
use super::whom::{Whom, must_be_there, whom};
use crate::cli::arguments::{SharesArgument, StatArguments};
use crate::failure::{Failure, RUN_FAILED};
use crate::host_events;
use crate::modelled_counters::{Shares, Turn};

/// A measurement, with every name resolved.
#[derive(Debug)]
pub(crate) struct StatJob {
    /// Empty where something else is counted until it ends.
    pub(crate) program: Vec<OsString>,
    pub(crate) events: EventList,
    /// Measures that may follow from them.
    pub(crate) metrics: Vec<Metric>,
    /// Whether the events are the default ones, of which some may be missing.
    pub(crate) is_default: bool,
    pub(crate) whom: Whom,
    pub(crate) interval: Option<Duration>,
    pub(crate) repeat: u32,
    pub(crate) form: Form,
    pub(crate) inherits: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) delay: Option<Duration>,
    pub(crate) counters: Option<u32>,
    pub(crate) slice: Option<Turn>,
    /// The machine's event that turns are measured in, if they are.
    pub(crate) boundary: Option<Event>,
    pub(crate) seed: u64,
    pub(crate) shares: Shares,
    pub(crate) rotates: bool,
    pub(crate) appends: bool,
    /// The modelled core and the text of its file.
    pub(crate) machine: Option<(Machine, String)>,
    /// What runs the program for it.
    pub(crate) engine: EngineChoice,
}

/// How counts are written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// A report, or whither's own JSON.
    View,
    /// perf's columns.
    Csv(String),
    /// perf's JSON.
    PerfJson,
}

/// No kernel has this kind: the event is counted by a model.
const MODELLED: u32 = u32::MAX;

fn failed(why: impl Into<String>) -> Failure {
    Failure::new(RUN_FAILED, why)
}

pub(super) fn stat_job(arguments: StatArguments) -> Result<StatJob, Failure> {
    must_be_there(&arguments.pid, &arguments.tid)?;
    let machine = match &arguments.machine {
        Some(name) => Some(crate::model::find_machine(Some(name))?),
        None => None,
    };
    let names = match &machine {
        Some(_) => Names::modelled()?,
        None => Names::host()?,
    };
    let is_default =
        arguments.event.is_empty() && arguments.set.is_empty() && arguments.detailed == 0;
    let events = names.asked(&arguments)?;
    let slice = arguments.slice.as_deref().map(|text| names.turn(text)).transpose()?;
    let boundary = names.boundary(slice.as_ref())?;
    Ok(StatJob {
        whom: whom(&arguments, &events)?,
        engine: engine_choice(&arguments.engine)?,
        events,
        metrics: names.metrics,
        is_default,
        interval: arguments.interval_print.map(Duration::from_millis),
        repeat: arguments.repeat.unwrap_or(1),
        form: match (arguments.field_separator, arguments.perf_json) {
            (Some(separator), _) => Form::Csv(separator),
            (None, true) => Form::PerfJson,
            (None, false) => Form::View,
        },
        inherits: !arguments.no_inherit,
        timeout: arguments.timeout.map(Duration::from_millis),
        delay: arguments.delay.map(Duration::from_millis),
        counters: arguments.counters,
        slice,
        boundary,
        seed: arguments.seed,
        shares: match arguments.shares {
            Some(SharesArgument::Spread) => Shares::Spread,
            None if machine.is_some() => Shares::Lumps,
            Some(SharesArgument::Even) | None => Shares::Even,
        },
        rotates: arguments.rotate,
        appends: arguments.append,
        machine,
        program: arguments.program,
    })
}

/// A number of cycles, or of something else that is named behind it.
fn slice(text: &str) -> Result<Slice, Failure> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let bad = || {
        failed(format!("'{text}' is no length of a turn")).remedy(
            "give cycles (200000), or a unit: 10ms, 50us, 100000instructions, 500page-faults",
        )
    };
    let number: u64 = number.parse().ok().filter(|&number| number > 0).ok_or_else(bad)?;
    let time = |factor| number.checked_mul(factor).map(Slice::Nanoseconds).ok_or_else(bad);
    match unit.trim() {
        "" | "cycles" => Ok(Slice::Cycles(number)),
        "instructions" => Ok(Slice::Instructions(number)),
        "ns" => time(1),
        "us" | "µs" => time(1_000),
        "ms" => time(1_000_000),
        "s" => time(1_000_000_000),
        _ => Err(bad()),
    }
}

/// What can be named: on this host, or on the modelled core.
pub(crate) struct Names {
    host: Option<Dictionary>,
    /// Name and events of each set.
    sets: Vec<(String, Vec<String>)>,
    pub(crate) breakdowns: Vec<Breakdown>,
    pub(crate) metrics: Vec<Metric>,
}

impl Names {
    pub(crate) fn host() -> Result<Names, Failure> {
        let table = |error: pmu::TableError| failed(error.to_string());
        let host = host_events::dictionary(RUN_FAILED)?;
        let sets = event_sets().map_err(table)?.into_iter().map(|set| (set.name, set.events));
        let breakdowns = host.core.as_ref().map_or(Vec::new(), |core| core.breakdown.clone());
        Ok(Names {
            sets: sets.collect(),
            breakdowns,
            metrics: metrics().map_err(table)?,
            host: Some(host),
        })
    }

    pub(crate) fn modelled() -> Result<Names, Failure> {
        let modelled = modelled_events().map_err(|error| failed(error.to_string()))?;
        let sets = modelled.set.into_iter().map(|set| (set.name, set.events));
        Ok(Names {
            host: None,
            sets: sets.collect(),
            breakdowns: modelled.breakdown,
            metrics: modelled.metric,
        })
    }

    /// This machine's core, where it is described.
    pub(crate) fn core(&self) -> Option<&pmu::CoreEvents> {
        self.host.as_ref()?.core.as_ref()
    }

    /// The length of a turn: of time, cycles, instructions, or occurrences of any one event.
    pub(crate) fn turn(&self, text: &str) -> Result<Turn, Failure> {
        let bad = match slice(text) {
            Ok(slice) => return Ok(Turn::Of(slice)),
            Err(bad) => bad,
        };
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, name) = text.split_at(digits);
        let name = name.trim();
        match (number.parse(), self.parse(name)) {
            (Ok(number @ 1..), Ok(list)) if list.events.len() == 1 && !name.is_empty() => {
                Ok(Turn::OfEvent(number, name.to_owned()))
            }
            _ => Err(bad),
        }
    }

    /// The event that ends a turn on this machine; a model has it by name.
    pub(crate) fn boundary(&self, slice: Option<&Turn>) -> Result<Option<Event>, Failure> {
        match slice {
            Some(Turn::OfEvent(_, name)) if self.host.is_some() => {
                Ok(self.parse(name)?.events.into_iter().next())
            }
            _ => Ok(None),
        }
    }

    /// Everything that was asked for; what is asked for twice is counted once, unless it is for
    /// different control groups.
    fn asked(&self, arguments: &StatArguments) -> Result<EventList, Failure> {
        let mut list = EventList::default();
        for name in &arguments.set {
            list.extend(self.parse(&self.set(name)?.join(","))?);
        }
        for spelling in &arguments.event {
            list.extend(self.parse(spelling)?);
        }
        if list.events.is_empty() {
            list.extend(self.parse(&self.set("default")?.join(","))?);
        }
        for level in 1..=arguments.detailed.min(3) {
            list.extend(self.parse(&self.set(&format!("detail-{level}"))?.join(","))?);
        }
        let is_once = arguments.cgroup.len() < 2;
        Ok(if is_once { without_repeats(list) } else { list })
    }

    pub(crate) fn parse(&self, spelling: &str) -> Result<EventList, Failure> {
        match &self.host {
            Some(host) => host.parse_list(spelling).map_err(|error| failed(error.to_string())),
            None => modelled_list(spelling),
        }
    }

    fn set(&self, name: &str) -> Result<Vec<String>, Failure> {
        if let Some((_, events)) = self.sets.iter().find(|(known, _)| known == name) {
            return Ok(events.clone());
        }
        if let Some(breakdown) = self.breakdowns.iter().find(|b| b.name == name) {
            return Ok(breakdown.events());
        }
        let known = self.sets.iter().map(|(name, _)| name.as_str());
        let known = known.chain(self.breakdowns.iter().map(|b| b.name.as_str()));
        Err(failed(match nearest(name, known) {
            Some(near) => format!("there is no set '{name}'; did you mean '{near}'?"),
            None => format!("there is no set '{name}'; `whither list sets` shows them all"),
        }))
    }
}

/// What is left of the default set without a PMU.
pub(crate) fn software_set() -> Result<EventList, Failure> {
    let names = Names::host()?;
    names.parse(&names.set("software")?.join(","))
}

/// The modelled core's events have names only.
fn modelled_list(spelling: &str) -> Result<EventList, Failure> {
    let code = |name: &str| {
        let place = ModelEvent::ALL.iter().position(|event| event.name() == name);
        place.map(|place| EventCode::new(MODELLED, place as u64))
    };
    let names = || ModelEvent::ALL.iter().map(|event| event.name());
    let mut list = EventList::default();
    // Braces and commas as elsewhere; a name is looked up here.
    for item in pmu::split_list(spelling).map_err(|error| failed(error.to_string()))? {
        let mut members = Vec::new();
        for typed in &item.members {
            let name = typed.strip_suffix(":u").unwrap_or(typed);
            let code = code(name).ok_or_else(|| {
                if typed.contains(':') {
                    return failed(format!(
                        "'{typed}': the modelled core runs no kernel and counts in user mode only"
                    ));
                }
                failed(match nearest(name, names()) {
                    Some(near) => {
                        format!("the modelled core has no event '{name}'; did you mean '{near}'?")
                    }
                    None => format!(
                        "the modelled core has no event '{name}'; \
                         `whither list events --machine NAME` shows them all"
                    ),
                })
            })?;
            members.push(list.events.len());
            list.events.push(Event { name: name.to_owned(), code, mode: Mode::User });
            list.typed.push(name.to_owned());
        }
        if item.is_braced {
            list.groups.push(members);
        }
    }
    Ok(list)
}

/// Every event once, where it stood first; groups keep their members.
fn without_repeats(list: EventList) -> EventList {
    let mut kept = EventList::default();
    let mut places = Vec::with_capacity(list.events.len());
    for (event, typed) in list.events.iter().zip(&list.typed) {
        let known = kept.typed.iter().position(|other| other == typed);
        places.push(known.unwrap_or_else(|| {
            kept.events.push(event.clone());
            kept.typed.push(typed.clone());
            kept.events.len() - 1
        }));
    }
    for group in list.groups {
        let mut members: Vec<usize> =
            group.iter().filter_map(|&place| places.get(place).copied()).collect();
        members.sort_unstable();
        members.dedup();
        // An event belongs to one group only: the first that names it.
        members.retain(|member| !kept.groups.iter().flatten().any(|other| other == member));
        if members.len() > 1 {
            kept.groups.push(members);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_measured_in_cycles_time_or_instructions() {
        assert_eq!(slice("200000").unwrap(), Slice::Cycles(200_000));
        assert_eq!(slice("10ms").unwrap(), Slice::Nanoseconds(10_000_000));
        assert_eq!(slice("5 us").unwrap(), Slice::Nanoseconds(5_000));
        assert_eq!(slice("7instructions").unwrap(), Slice::Instructions(7));
        for odd in ["", "0", "ms", "5 furlongs", "99999999999999999999s", "18446744073709551615s"] {
            assert!(slice(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn turns_are_measured_in_any_event() {
        let (modelled, host) = (Names::modelled().unwrap(), Names::host().unwrap());
        let misses = modelled.turn("500l2-misses").unwrap();
        assert_eq!(misses, Turn::OfEvent(500, "l2-misses".into()));
        assert_eq!(modelled.boundary(Some(&misses)).unwrap(), None);
        assert_eq!(modelled.turn("500cycles").unwrap(), Turn::Of(Slice::Cycles(500)));
        for odd in ["500l2-mises", "0l2-misses", "5 cycles,loads", "l2-misses"] {
            assert!(modelled.turn(odd).is_err(), "{odd}");
        }
        let faults = host.turn("500 page-faults").unwrap();
        assert_eq!(faults, Turn::OfEvent(500, "page-faults".into()));
        assert_eq!(host.boundary(Some(&faults)).unwrap().unwrap().code, EventCode::new(1, 2));
        assert_eq!(host.boundary(Some(&Turn::Of(Slice::Cycles(5)))).unwrap(), None);
    }

    #[test]
    fn the_modelled_core_has_names_braces_and_no_kernel() {
        let list = modelled_list("{cycles,l2-misses},branches:u").unwrap();
        assert_eq!(list.typed, ["cycles", "l2-misses", "branches"]);
        assert_eq!(list.groups, [[0, 1]]);
        let said = |text: &str| modelled_list(text).unwrap_err().sentence();
        assert!(said("cycles:k").contains("user mode only"));
        assert!(said("l2-mises").contains("did you mean 'l2-misses'?"));
        assert!(said("{cycles").contains("no partner"));
    }

    #[test]
    fn what_is_asked_for_twice_is_counted_once() {
        let names = Names::modelled().unwrap();
        let list = names.parse("cycles,{loads,cycles},{loads,stores}").unwrap();
        let kept = without_repeats(list);
        assert_eq!(kept.typed, ["cycles", "loads", "stores"]);
        assert_eq!(kept.groups, [[0, 1]]);
    }

    #[test]
    fn every_set_and_breakdown_of_the_modelled_core_names_events_that_it_has() {
        let names = Names::modelled().unwrap();
        for (name, events) in &names.sets {
            assert!(names.parse(&events.join(",")).is_ok(), "{name}");
        }
        for breakdown in &names.breakdowns {
            assert!(names.parse(&breakdown.events().join(",")).is_ok(), "{}", breakdown.name);
        }
        for metric in &names.metrics {
            let events = metric.formula.names().iter().filter(|n| pmu::constant(n).is_none());
            for event in events {
                assert!(names.parse(event).is_ok(), "{}: {event}", metric.name);
            }
        }
    }
}
