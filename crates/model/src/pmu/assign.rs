//! Which event goes on which counter.

use std::fmt;

pub use pmu::Counter;
use pmu::{Counters, Limit, Rule};

use crate::event::Event;
use crate::machine::PmuFacts;

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

/// The counters as `pmu` knows them.
pub fn counters(facts: &PmuFacts) -> Counters {
    let rule = |constraint: &crate::machine::Constraint| Rule {
        events: constraint.events.clone(),
        limit: Limit::Only(constraint.counters.clone()),
        source: constraint.source.clone(),
    };
    Counters {
        general: facts.general,
        fixed: facts.fixed.clone(),
        free: Vec::new(),
        rules: facts.constraints.iter().map(rule).collect(),
    }
}

/// Finds a counter for every event, or says which cannot be placed.
pub fn assign(facts: &PmuFacts, events: &[Event]) -> Result<Assignment, Unplaceable> {
    let names: Vec<&str> = events.iter().map(|event| event.name()).collect();
    match pmu::place(&counters(facts), &names) {
        Ok(places) => Ok(Assignment { places: events.iter().copied().zip(places).collect() }),
        Err(k) => {
            let event = events.get(k).copied().unwrap_or(Event::Cycles);
            Err(Unplaceable { event, general: facts.general })
        }
    }
}
