//! The modelled core's own counters: few, constrained, of limited width, with late interrupts.
//!
//! ```text
//! events wanted --assign--> counters        Counts --CounterBank::read--> what the registers say
//! lives of micro-ops --Sampler--> samples: overflow, then the interrupt `skid` cycles later
//! lives of micro-ops --DoubleSampler--> what ran between two interrupts
//! ```
//!
//! The exact truth stays beside it in `Account` and `Counts`: what a counter says can be held
//! against what happened.

mod assign;
mod double;
mod sampler;

pub use assign::{Assignment, Counter, Unplaceable, assign, counters};
pub use double::{DoubleSample, DoubleSampler, Doubling};
pub use sampler::{Attribution, Sample, Sampler, SamplerError, Sampling};

use crate::event::{Counts, Event};
use crate::machine::Machine;

/// Counters programmed with events.
#[derive(Clone, Debug)]
pub struct CounterBank {
    assignment: Assignment,
    width_mask: u64,
    start: Counts,
}

impl CounterBank {
    /// Programs the counters; they start at what has been counted so far.
    pub fn program(
        machine: &Machine,
        events: &[Event],
        now: &Counts,
    ) -> Result<CounterBank, Unplaceable> {
        let assignment = assign(&machine.pmu, events)?;
        let width = machine.pmu.width_bits;
        let width_mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
        Ok(CounterBank { assignment, width_mask, start: now.clone() })
    }

    /// Which counter counts what.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// What the registers say: a counter wraps at its width.
    pub fn read(&self, now: &Counts) -> Vec<(Event, u64)> {
        let delta = now.since(&self.start);
        let read = |event: Event| (event, delta[event] & self.width_mask);
        self.assignment.places.iter().map(|&(event, _)| read(event)).collect()
    }
}

#[cfg(test)]
mod tests;
