//! Which loads may go ahead of older stores whose addresses are not known yet.
//!
//! ```text
//! counter of a load   0 ......... trust      the top: it goes ahead, below: it waits
//!                     ^             |
//!                     |  would have |  came to no harm: one up
//!                     +- come to ---+
//!                        harm
//! ```
//!
//! The counters are found by the load's address alone, so that loads may share one: at worst one of
//! them waits in vain.

use crate::machine::Window;

/// What a machine's core does about such loads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Disambiguation {
    entries: u32,
    trust: u8,
    /// Cycles from a store's address to the dispatch of a load that has overtaken it.
    pub(crate) restart: u64,
}

impl Disambiguation {
    /// None where loads know without error whom they depend on.
    pub(crate) fn of(window: &Window) -> Option<Disambiguation> {
        (window.disambiguation_entries > 0).then(|| Disambiguation {
            entries: window.disambiguation_entries,
            trust: window.disambiguation_trust.min(u32::from(u8::MAX)) as u8,
            restart: u64::from(window.disambiguation_restart_cycles),
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    count: u8,
    /// When it came to the top: what retires later does not count yet.
    since: u64,
}

/// What loads have done so far.
#[derive(Clone, Debug)]
pub(crate) struct Ordering {
    counters: Vec<Counter>,
    trust: u8,
}

impl Ordering {
    pub(crate) fn new(facts: Disambiguation) -> Ordering {
        Ordering { counters: vec![Counter::default(); facts.entries as usize], trust: facts.trust }
    }

    fn place(&self, pc: u64) -> usize {
        // A power of two, as the check of machine files has it.
        (pc ^ (pc >> 8)) as usize & (self.counters.len() - 1)
    }

    /// From when on a load may go ahead, if it may.
    pub(crate) fn trusts_from(&self, pc: u64) -> Option<u64> {
        let counter = self.counters[self.place(pc)];
        (counter.count >= self.trust).then_some(counter.since)
    }

    /// A load has retired at a time: whether a store that it needed had, or would have had, no
    /// address yet.
    pub(crate) fn learn(&mut self, pc: u64, harmed: bool, retired: u64) {
        let (place, trust) = (self.place(pc), self.trust);
        let counter = &mut self.counters[place];
        if harmed {
            *counter = Counter::default();
        } else if counter.count < trust {
            *counter = Counter { count: counter.count + 1, since: retired };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn a_load_is_trusted_after_a_row_of_harmless_runs_and_no_longer_after_one_that_was_not() {
        let machine = Machine::named("icelake-server").unwrap();
        let facts = Disambiguation::of(&machine.window).unwrap();
        let mut ordering = Ordering::new(facts);
        for k in 0..machine.window.disambiguation_trust {
            assert_eq!(ordering.trusts_from(0x1234), None);
            ordering.learn(0x1234, false, 100 + u64::from(k));
        }
        let last = 99 + u64::from(machine.window.disambiguation_trust);
        assert_eq!(ordering.trusts_from(0x1234), Some(last));
        assert_eq!(ordering.trusts_from(0x1235), None);
        ordering.learn(0x1234, false, 500);
        assert_eq!(ordering.trusts_from(0x1234), Some(last));
        ordering.learn(0x1234, true, 600);
        assert_eq!(ordering.trusts_from(0x1234), None);
        assert_eq!(Disambiguation::of(&Machine::named("zen4").unwrap().window), None);
    }
}
