//! Address translation: two levels and a walk.

use super::cache::Cache;
use crate::machine::{TlbFacts, Tlbs};

/// What a translation cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Translation {
    /// Cycles added to the access.
    pub cycles: u32,
    /// The first level did not have it.
    pub missed_l1: bool,
    /// Nor did the second, or there is none: the tables were walked.
    pub walked: bool,
}

/// One side's translation: instructions or data.
#[derive(Clone, Debug)]
pub struct Tlb {
    first: Cache<()>,
    second: Option<Cache<()>>,
    second_cycles: u32,
    walk_cycles: u32,
    page_shift: u32,
    latest: u64,
}

impl Tlb {
    /// Of one side of a machine.
    pub fn new(facts: &Tlbs, first: &TlbFacts, second: Option<&TlbFacts>) -> Tlb {
        let buffer = |tlb: &TlbFacts| Cache::new(tlb.entries as usize, tlb.ways as usize);
        Tlb {
            first: buffer(first),
            second: second.map(buffer),
            second_cycles: second.map_or(0, |tlb| tlb.latency_cycles),
            walk_cycles: facts.walk_cycles,
            page_shift: facts.page_bytes.trailing_zeros(),
            latest: u64::MAX,
        }
    }

    /// Translates an address.
    #[inline]
    pub fn translate(&mut self, address: u64) -> Translation {
        let page = address >> self.page_shift;
        if page == self.latest {
            return Translation::default();
        }
        self.latest = page;
        if self.first.touch(page).is_some() {
            return Translation::default();
        }
        self.miss(page)
    }

    /// Whether the first level has an address; if so it is used, if not nothing changes.
    #[inline]
    pub fn hits(&mut self, address: u64) -> bool {
        let page = address >> self.page_shift;
        if page == self.latest {
            return true;
        }
        let hit = self.first.touch(page).is_some();
        if hit {
            self.latest = page;
        }
        hit
    }

    #[cold]
    fn miss(&mut self, page: u64) -> Translation {
        self.first.insert(page, ());
        let Some(second) = &mut self.second else {
            return Translation { cycles: self.walk_cycles, missed_l1: true, walked: true };
        };
        if second.touch(page).is_some() {
            return Translation { cycles: self.second_cycles, missed_l1: true, walked: false };
        }
        second.insert(page, ());
        let cycles = self.second_cycles + self.walk_cycles;
        Translation { cycles, missed_l1: true, walked: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;

    #[test]
    fn pages_beyond_each_level_cost_that_levels_miss() {
        let machine = Machine::named("zen4").unwrap();
        let facts = &machine.tlbs;
        let mut tlb = Tlb::new(facts, &facts.l1d, facts.l2d.as_ref());
        let sweep = |tlb: &mut Tlb, pages: u64| -> (u64, u64) {
            let all = (0..pages).map(|page| tlb.translate(page * 4096));
            all.fold((0, 0), |(l1, walks), t| {
                (l1 + u64::from(t.missed_l1), walks + u64::from(t.walked))
            })
        };
        assert_eq!(sweep(&mut tlb, 72), (72, 72));
        assert_eq!(sweep(&mut tlb, 72), (0, 0));
        // Twice the first level, well inside the second: every page misses the first only.
        assert_eq!(sweep(&mut tlb, 144), (72, 72));
        assert_eq!(sweep(&mut tlb, 144), (144, 0));
        assert_eq!(tlb.translate(1 << 40).cycles, 7 + 14);
    }
}
