//! Taken or not.

use super::tage::Tage;
use crate::machine::{BranchFacts, Direction as Kind};

/// Two bits that count up and down; the upper half says taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter(u8);

impl Default for Counter {
    fn default() -> Counter {
        Counter(1)
    }
}

impl Counter {
    #[inline]
    pub(super) fn says(self) -> bool {
        self.0 >= 2
    }

    #[inline]
    pub(super) fn learn(&mut self, up: bool) {
        self.0 = if up { (self.0 + 1).min(3) } else { self.0.saturating_sub(1) };
    }
}

/// A table of two-bit counters by address.
#[derive(Clone, Debug)]
pub(super) struct Bimodal {
    counters: Vec<Counter>,
}

impl Bimodal {
    pub(super) fn new(entries: u32) -> Bimodal {
        Bimodal { counters: vec![Counter::default(); entries.next_power_of_two() as usize] }
    }

    #[inline]
    pub(super) fn at(&mut self, index: u64) -> &mut Counter {
        let mask = self.counters.len() - 1;
        &mut self.counters[index as usize & mask]
    }
}

/// Addresses of neighbouring branches differ in their low bits on x86, so none are dropped.
#[inline]
fn spread(pc: u64) -> u64 {
    pc ^ (pc >> 13)
}

/// The predictor that a machine has.
#[derive(Clone, Debug)]
pub(super) enum Direction {
    Bimodal(Bimodal),
    Tournament(Tournament),
    Tage(Box<Tage>),
}

impl Direction {
    pub(super) fn new(facts: &BranchFacts) -> Direction {
        match facts.direction {
            Kind::Bimodal => Direction::Bimodal(Bimodal::new(facts.base_entries)),
            Kind::Tournament => Direction::Tournament(Tournament::new(facts)),
            Kind::Tage => Direction::Tage(Box::new(Tage::new(facts))),
        }
    }

    /// Predicts, then learns.
    #[inline]
    pub(super) fn observe(&mut self, pc: u64, taken: bool) -> bool {
        match self {
            Direction::Bimodal(table) => {
                let counter = table.at(spread(pc));
                let guess = counter.says();
                counter.learn(taken);
                guess
            }
            Direction::Tournament(both) => both.observe(pc, taken),
            Direction::Tage(tage) => tage.observe(pc, taken),
        }
    }
}

/// Bimodal and gshare, with a table that chooses between them.
#[derive(Clone, Debug)]
pub(super) struct Tournament {
    local: Bimodal,
    global: Bimodal,
    chooser: Bimodal,
    history: u64,
    history_mask: u64,
}

impl Tournament {
    fn new(facts: &BranchFacts) -> Tournament {
        let entries = facts.table_entries.max(1);
        Tournament {
            local: Bimodal::new(facts.base_entries),
            global: Bimodal::new(entries),
            chooser: Bimodal::new(entries),
            history: 0,
            history_mask: (1_u64 << facts.history_bits.min(63)) - 1,
        }
    }

    #[inline]
    fn observe(&mut self, pc: u64, taken: bool) -> bool {
        let place = spread(pc);
        let local = self.local.at(place);
        let by_local = local.says();
        local.learn(taken);
        let global = self.global.at(place ^ self.history);
        let by_global = global.says();
        global.learn(taken);
        let chooser = self.chooser.at(place);
        let guess = if chooser.says() { by_global } else { by_local };
        if by_local != by_global {
            chooser.learn(by_global == taken);
        }
        self.history = ((self.history << 1) | u64::from(taken)) & self.history_mask;
        guess
    }
}
