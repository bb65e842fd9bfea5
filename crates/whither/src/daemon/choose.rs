//! What to sample on this machine, and how often.

use collect::{Geometry, Sampled};
use perf::Refusal;
use vocab::{Event, EventCode, Mode};

use crate::cli::{ConfigArgument, StartJob, What};
use crate::failure::{ERROR, Failure};

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const CACHE: u32 = 3;
/// Prime, so that they beat with no timer of the kernel.
const HERTZ_IN_A_GUEST: u64 = 997;
const HERTZ: u64 = 3989;
/// A guess where the system does not tell the clock: only the rate depends on it, not the result.
const CORE_HERTZ: u64 = 3_000_000_000;

/// What was decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Choice {
    pub(super) events: Vec<Sampled>,
    pub(super) geometry: Geometry,
    pub(super) hertz: u64,
    /// What was wished for and is not there.
    pub(super) notes: Vec<String>,
}

/// What the decision depends on, as values.
pub(super) struct Machine<'a> {
    pub(super) probe: &'a dyn Fn(&Event) -> Result<(), Refusal>,
    pub(super) in_a_guest: bool,
    pub(super) core_hertz: Option<u64>,
    pub(super) max_hertz: Option<u64>,
}

pub(super) fn choose(job: &StartJob, machine: &Machine<'_>) -> Result<Choice, Failure> {
    let mut notes = Vec::new();
    let there = |event: &Event| (machine.probe)(event).is_ok();
    let has_pmu = there(&event("cycles", HARDWARE, 0));
    let picked: Vec<(Event, bool)> = match &job.what {
        What::Events(events) => events.iter().map(|event| (event.clone(), false)).collect(),
        What::Config(config) => configured(*config, has_pmu, &there, &mut notes),
    };
    let slow = !has_pmu || machine.in_a_guest;
    let hertz = job.hertz.unwrap_or(if slow { HERTZ_IN_A_GUEST } else { HERTZ });
    if let Some(max) = machine.max_hertz.filter(|&max| hertz > max) {
        let what = format!("{hertz} samples a second are more than this kernel allows ({max})");
        let remedy = format!("ask for less, or `sysctl kernel.perf_event_max_sample_rate={hertz}`");
        return Err(Failure::new(ERROR, what).kept("nothing was started").remedy(remedy));
    }
    let core_hertz = machine.core_hertz.unwrap_or(CORE_HERTZ);
    let sampled = |(event, in_turn): (Event, bool)| {
        let period = period(&event, hertz, core_hertz);
        Sampled { event, period, in_turn }
    };
    let events: Vec<Sampled> = picked.into_iter().map(sampled).collect();
    let geometry = Geometry::for_rate(hertz.saturating_mul(events.len() as u64));
    Ok(Choice { events, geometry, hertz, notes })
}

/// The paper's three configurations; the second of each pair says whether it takes turns.
fn configured(
    config: ConfigArgument,
    has_pmu: bool,
    there: &dyn Fn(&Event) -> bool,
    notes: &mut Vec<String>,
) -> Vec<(Event, bool)> {
    if !has_pmu {
        notes.push("there is no PMU: the timer (cpu-clock) stands in for cycles".to_owned());
    }
    let main = if has_pmu { event("cycles", HARDWARE, 0) } else { event("cpu-clock", SOFTWARE, 0) };
    let mut events = vec![(main, false)];
    let instruction_misses = event("L1-icache-load-misses", CACHE, 0x1_0001);
    match config {
        ConfigArgument::Cycles => {}
        ConfigArgument::Default if there(&instruction_misses) => {
            events.push((instruction_misses, false));
        }
        ConfigArgument::Default if has_pmu => {
            notes.push("this processor does not count instruction-cache misses".to_owned());
        }
        ConfigArgument::Default => {}
        ConfigArgument::Mux if has_pmu => {
            let others = [
                instruction_misses,
                event("L1-dcache-load-misses", CACHE, 0x1_0000),
                event("branch-misses", HARDWARE, 5),
            ];
            events.extend(others.into_iter().filter(|e| there(e)).map(|event| (event, true)));
        }
        ConfigArgument::Mux => {
            notes.push("page faults and context switches take turns in place of misses".to_owned());
            let others =
                [event("page-faults", SOFTWARE, 2), event("context-switches", SOFTWARE, 3)];
            events.extend(others.into_iter().filter(|e| there(e)).map(|event| (event, true)));
        }
    }
    events
}

fn event(name: &str, kind: u32, config: u64) -> Event {
    Event { name: name.into(), code: EventCode::new(kind, config), mode: Mode::Both }
}

/// Occurrences between samples. A clock counts nanoseconds, cycles come at the core's clock, and
/// misses are rarer: every hundredth cycle at most, in code that misses all the time.
fn period(event: &Event, hertz: u64, core_hertz: u64) -> u64 {
    let a_second = match (event.code.kind, event.code.config) {
        (SOFTWARE, 0 | 1) => 1_000_000_000,
        // Few enough that each may count.
        (SOFTWARE, _) => return 1,
        (HARDWARE, 0 | 1) => core_hertz,
        _ => core_hertz / 100,
    };
    (a_second / hertz).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    fn job(config: ConfigArgument) -> StartJob {
        StartJob {
            database: PathBuf::new(),
            what: What::Config(config),
            hertz: None,
            drain: Duration::from_secs(300),
            merge: Duration::from_secs(600),
            per_process: false,
            slice: None,
            keep_ns: None,
            keep_bytes: None,
            chains: false,
            ring: false,
            foreground: true,
            apart: false,
        }
    }

    fn names(choice: &Choice) -> Vec<(&str, bool)> {
        choice.events.iter().map(|s| (s.event.name.as_str(), s.in_turn)).collect()
    }

    #[test]
    fn without_a_pmu_the_timer_stands_in_at_a_guests_rate() {
        let probe = |event: &Event| match event.code.kind {
            SOFTWARE => Ok(()),
            _ => Err(Refusal::NoSuchEvent),
        };
        let machine = Machine {
            probe: &probe,
            in_a_guest: false,
            core_hertz: None,
            max_hertz: Some(100_000),
        };
        let choice = choose(&job(ConfigArgument::Default), &machine).unwrap();
        assert_eq!(names(&choice), [("cpu-clock", false)]);
        assert_eq!((choice.hertz, choice.events[0].period), (997, 1_003_009));
        assert!(choice.notes[0].contains("no PMU"));
        let choice = choose(&job(ConfigArgument::Mux), &machine).unwrap();
        let expected = [("cpu-clock", false), ("page-faults", true), ("context-switches", true)];
        assert_eq!(names(&choice), expected);
    }

    #[test]
    fn with_a_pmu_the_papers_events_are_sampled() {
        let machine = Machine {
            probe: &|_| Ok(()),
            in_a_guest: false,
            core_hertz: Some(2_000_000_000),
            max_hertz: None,
        };
        let choice = choose(&job(ConfigArgument::Default), &machine).unwrap();
        assert_eq!(names(&choice), [("cycles", false), ("L1-icache-load-misses", false)]);
        assert_eq!(choice.events[0].period, 2_000_000_000 / 3989);
        let choice = choose(&job(ConfigArgument::Mux), &machine).unwrap();
        assert_eq!(names(&choice).iter().filter(|(_, in_turn)| *in_turn).count(), 3);
    }

    #[test]
    fn a_rate_that_the_kernel_would_refuse_is_refused_first() {
        let machine = Machine {
            probe: &|_| Ok(()),
            in_a_guest: true,
            core_hertz: None,
            max_hertz: Some(1000),
        };
        let job = StartJob { hertz: Some(5000), ..job(ConfigArgument::Cycles) };
        let refused = choose(&job, &machine).unwrap_err().sentence();
        assert!(refused.contains("5000") && refused.contains("1000"), "{refused}");
    }
}
