//! Which event goes on which counter.

use std::fmt;

use crate::event::Event;
use crate::machine::PmuFacts;

/// A counter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Counter {
    /// One that only ever counts one event.
    Fixed(u32),
    /// One that takes most events.
    General(u32),
}

/// Every event's counter, in the order in which the events were asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assignment {
    /// Event and counter.
    pub places: Vec<(Event, Counter)>,
}

/// The events do not fit at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unplaceable {
    /// The first event without a counter.
    pub event: Event,
    /// How many general counters there are.
    pub general: u32,
}

impl fmt::Display for Unplaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unplaceable { event, general } = self;
        write!(
            f,
            "no counter is left for {} beside the others ({general} general counters)",
            event.name()
        )
    }
}

impl std::error::Error for Unplaceable {}

/// The general counters that can count an event, as a mask.
fn allowed(facts: &PmuFacts, event: Event) -> u64 {
    let all = if facts.general >= 64 { u64::MAX } else { (1 << facts.general) - 1 };
    let limits = facts.constraints.iter().filter(|c| c.events.iter().any(|n| n == event.name()));
    limits.fold(all, |mask, c| mask & c.counters.iter().fold(0, |m, &k| m | 1 << k))
}

/// Finds a counter for every event, or says which cannot be placed.
///
/// Fixed counters are used first; the rest is a matching of events to general counters, grown by
/// moving earlier events where that makes room.
pub fn assign(facts: &PmuFacts, events: &[Event]) -> Result<Assignment, Unplaceable> {
    let mut places: Vec<Option<Counter>> = vec![None; events.len()];
    let mut fixed_taken = vec![false; facts.fixed.len()];
    for (place, event) in places.iter_mut().zip(events) {
        let fixed = facts.fixed.iter().position(|name| name == event.name());
        if let Some(fixed) = fixed.filter(|&k| !fixed_taken[k]) {
            fixed_taken[fixed] = true;
            *place = Some(Counter::Fixed(fixed as u32));
        }
    }
    let mut owner: Vec<Option<usize>> = vec![None; facts.general as usize];
    for (k, &event) in events.iter().enumerate() {
        if places[k].is_some() {
            continue;
        }
        let mut tried = vec![false; owner.len()];
        if !place(facts, events, k, &mut owner, &mut tried) {
            return Err(Unplaceable { event, general: facts.general });
        }
    }
    for (counter, owner) in owner.iter().enumerate() {
        if let Some(k) = *owner {
            places[k] = Some(Counter::General(counter as u32));
        }
    }
    let placed = events.iter().zip(places);
    Ok(Assignment { places: placed.filter_map(|(&event, at)| at.map(|at| (event, at))).collect() })
}

fn place(
    facts: &PmuFacts,
    events: &[Event],
    k: usize,
    owner: &mut [Option<usize>],
    tried: &mut [bool],
) -> bool {
    let mask = allowed(facts, events[k]);
    for counter in 0..owner.len() {
        if mask >> counter & 1 == 0 || tried[counter] {
            continue;
        }
        tried[counter] = true;
        let is_free = match owner[counter] {
            None => true,
            Some(other) => place(facts, events, other, owner, tried),
        };
        if is_free {
            owner[counter] = Some(k);
            return true;
        }
    }
    false
}
