//! `whither stat`, checked and completed.

use std::ffi::OsString;
use std::time::Duration;

use counters::{On, Slice};
use model::event::Event as ModelEvent;
use model::machine::Machine;
use pmu::{
    Breakdown, Dictionary, EventList, Metric, event_sets, metrics, modelled_events, nearest,
};
use vocab::{Cpu, Event, EventCode, Mode};

use crate::cli::arguments::StatArguments;
use crate::failure::{Failure, RUN_FAILED};
use crate::host_events;
use crate::modelled_counters::Turn;

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
    pub(crate) seed: u64,
    pub(crate) rotates: bool,
    pub(crate) appends: bool,
    /// The modelled core and the text of its file.
    pub(crate) machine: Option<(Machine, String)>,
}

/// Whose events are counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whom {
    /// The program that is started.
    Program,
    /// Something that runs already; each is counted apart and added up.
    Others(Vec<On>),
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
    Ok(StatJob {
        events,
        metrics: names.metrics,
        is_default,
        whom: whom(&arguments)?,
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
        slice: arguments.slice.as_deref().map(|text| turn(text, machine.is_some())).transpose()?,
        seed: arguments.seed,
        rotates: arguments.rotate,
        appends: arguments.append,
        machine,
        program: arguments.program,
    })
}

fn whom(arguments: &StatArguments) -> Result<Whom, Failure> {
    let cpus = match &arguments.cpu {
        Some(list) => Some(On::Cpus(cpus(list)?)),
        None => arguments.all_cpus.then(|| On::Cpus(Vec::new())),
    };
    let processes = arguments.pid.iter().map(|&pid| On::Process(pid));
    let threads = arguments.tid.iter().map(|&tid| On::Thread(tid));
    let others: Vec<On> = processes.chain(threads).chain(cpus).collect();
    Ok(if others.is_empty() { Whom::Program } else { Whom::Others(others) })
}

/// `0,2-3`.
fn cpus(list: &str) -> Result<Vec<Cpu>, Failure> {
    let bad = || failed(format!("'{list}' is no list of CPUs; they are written 0,2-3"));
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.parse::<u32>(), last.parse::<u32>()) else {
            return Err(bad());
        };
        // No kernel has more; a larger number is not a CPU.
        if first > last || last >= 1 << 16 {
            return Err(bad());
        }
        cpus.extend((first..=last).map(Cpu));
    }
    Ok(cpus)
}

/// The length of a turn; on a modelled core of any of its events.
pub(super) fn turn(text: &str, is_modelled: bool) -> Result<Turn, Failure> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, name) = text.split_at(digits);
    let event = ModelEvent::named(name.trim())
        .filter(|event| !matches!(event, ModelEvent::Cycles | ModelEvent::Instructions));
    match (event, number.parse()) {
        (Some(event), Ok(number @ 1..)) if is_modelled => {
            Ok(Turn::OfEvent(number, event.name().to_owned()))
        }
        _ => slice(text).map(Turn::Of),
    }
}

/// A number of cycles, or of something else that is named behind it.
fn slice(text: &str) -> Result<Slice, Failure> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let bad = || {
        failed(format!("'{text}' is no length of a turn"))
            .remedy("give cycles (200000), or a unit: 10ms, 50us, 100000instructions")
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

    /// Everything that was asked for; what is asked for twice is counted once.
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
        Ok(without_repeats(list))
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
    fn the_modelled_core_takes_turns_of_any_event() {
        assert_eq!(turn("500l2-misses", true).unwrap(), Turn::OfEvent(500, "l2-misses".into()));
        assert_eq!(turn("500cycles", true).unwrap(), Turn::Of(Slice::Cycles(500)));
        assert!(turn("500l2-misses", false).is_err() && turn("0l2-misses", true).is_err());
    }

    #[test]
    fn lists_of_cpus_are_checked() {
        assert_eq!(cpus("0,2-3").unwrap(), [0, 2, 3].map(Cpu));
        for odd in ["", "3-1", "a", "0-99999999", "1,"] {
            assert!(cpus(odd).is_err(), "{odd}");
        }
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
