//! What this machine's counters can do, found out by trying.
//!
//! No table says how many counters a virtual machine was given or what a watchdog has taken. The
//! kernel does: it refuses a group that can never fit, and a group that opens but finds its
//! counters taken runs for no time at all.

use perf::{Group, GroupOptions, GroupReading, Target};
use pmu::{Counters, Limit, Rule};
use vocab::{Event, EventCode, Mode};

use crate::name::full_name;

/// The kernel's kind of breakpoints, which have slots of their own.
pub(crate) const BREAKPOINT: u32 = 5;
/// The kinds that the core's PMU counts: hardware, cache, raw.
const OF_THE_CORE: [u32; 3] = [0, 3, 4];

/// More counters than any core has.
const COUNTERS_MAX: u32 = 32;
/// Slots for breakpoints on x86; Arm has at least as many.
const BREAKPOINTS: u32 = 4;

/// The name under which the time that a group had its counters is an anchor. It is read with every
/// group, in nanoseconds, and takes no counter.
pub const TIME: &str = "time";

/// What the core's PMU has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacity {
    /// Counters that take most events; none where there is no PMU.
    pub general: u32,
    /// Whether cycles have a counter of their own.
    pub fixed_cycles: bool,
    /// Whether instructions have one.
    pub fixed_instructions: bool,
}

impl Capacity {
    /// Tries on the calling thread, in user mode.
    pub fn probe() -> Capacity {
        let (cycles, instructions, branches) = (hardware(0), hardware(1), hardware(4));
        // An event without a counter of its own, if the machine has one.
        let filler = if runs(std::slice::from_ref(&branches)) { &branches } else { &instructions };
        let general = (1..=COUNTERS_MAX).take_while(|&n| runs(&repeated(filler, n))).count() as u32;
        let beside = |event: &Event| {
            let mut events = repeated(filler, general);
            events.push(event.clone());
            general > 0 && runs(&events)
        };
        let fixed_instructions = filler.code != instructions.code && beside(&instructions);
        Capacity { general, fixed_cycles: beside(&cycles), fixed_instructions }
    }

    /// The counters as grouping wants them, for these events.
    pub(crate) fn counters(self, events: &[Event]) -> Counters {
        let mut counters = Counters::alike(self.general);
        for event in events {
            let name = full_name(event);
            match event.code.kind {
                0 if event.code.config == 0 && self.fixed_cycles => counters.fixed.push(name),
                0 if event.code.config == 1 && self.fixed_instructions => {
                    counters.fixed.push(name);
                }
                kind if OF_THE_CORE.contains(&kind) => {}
                // Software, trace points, and PMUs outside the core, which the kernel judges.
                _ => counters.free.push(name),
            }
        }
        counters.free.push(TIME.to_owned());
        counters.rules.extend(slots(events));
        counters
    }
}

/// Counters for events that would not compete by themselves: every one of them takes one of `n`.
pub(crate) fn rationed(n: u32) -> Counters {
    let mut counters = Counters::alike(n);
    counters.free.push(TIME.to_owned());
    counters
}

/// Breakpoints have a few slots of their own.
fn slots(events: &[Event]) -> Option<Rule> {
    let breakpoints = events.iter().filter(|event| event.code.kind == BREAKPOINT);
    let events: Vec<String> = breakpoints.map(full_name).collect();
    (!events.is_empty()).then(|| Rule {
        events,
        limit: Limit::Together(BREAKPOINTS),
        source: "debug registers".into(),
    })
}

pub(crate) fn hardware(config: u64) -> Event {
    let name = match config {
        0 => "cycles",
        1 => "instructions",
        _ => "branches",
    };
    Event { name: name.into(), code: EventCode::new(0, config), mode: Mode::User }
}

fn repeated(event: &Event, times: u32) -> Vec<Event> {
    (0..times).map(|_| event.clone()).collect()
}

/// Whether the events get their counters together, at once, on this thread.
fn runs(events: &[Event]) -> bool {
    let Ok(group) = Group::open(events, &Target::ThisThread, GroupOptions::default()) else {
        return false;
    };
    let mut reading = GroupReading::default();
    group.enable().is_ok() && group.read(&mut reading).is_ok() && reading.running_ns > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn software_is_free_breakpoints_have_slots_and_a_ration_takes_everything() {
        let clock =
            Event { name: "task-clock".into(), code: EventCode::new(1, 1), mode: Mode::Both };
        let trap = perf::breakpoint(perf::BreakpointKind::Write, 8);
        let events = [clock, trap.clone(), hardware(0)];
        let capacity = Capacity { general: 6, fixed_cycles: true, fixed_instructions: false };
        let counters = capacity.counters(&events);
        assert_eq!(counters.general, 6);
        assert_eq!(counters.fixed, ["cycles:u"]);
        assert_eq!(counters.free, ["task-clock".to_owned(), full_name(&trap), TIME.to_owned()]);
        assert_eq!(counters.rules[0].limit, Limit::Together(4));
        assert_eq!(rationed(2).free, [TIME]);
    }
}
