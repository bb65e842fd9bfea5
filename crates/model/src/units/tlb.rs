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

/// No page: they are shifted addresses.
const NO_PAGE: u64 = u64::MAX;
/// Pages that are known to be the newest without a look into the buffer.
const RECENT: usize = 4;

/// One side's translation: instructions or data.
///
/// The pages used last are kept apart, newest first, and the buffer learns of a use only when a page
/// leaves them: most programs go back and forth between a few.
///
/// ```text
/// recent: stack, heap, table, other      first: the order of all pages but those
/// ```
#[derive(Clone, Debug)]
pub struct Tlb {
    first: Cache<()>,
    second: Option<Cache<()>>,
    second_cycles: u32,
    walk_cycles: u32,
    page_shift: u32,
    recent: [u64; RECENT],
    /// Translations that the first level did not have.
    pub misses: u64,
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
            recent: [NO_PAGE; RECENT],
            misses: 0,
        }
    }

    /// Translates an address.
    #[inline]
    pub fn translate(&mut self, address: u64) -> Translation {
        let page = address >> self.page_shift;
        if self.is_recent(page) || self.is_held(page) {
            return Translation::default();
        }
        self.miss(page)
    }

    /// Whether the first level has an address; if so it is used, if not nothing changes.
    #[inline]
    pub fn hits(&mut self, address: u64) -> bool {
        let page = address >> self.page_shift;
        self.is_recent(page) || self.is_held(page)
    }

    /// Whether a page is one of the few used last; it becomes the newest. Which of them it is the
    /// host could not guess, so that it decides only once.
    #[inline]
    fn is_recent(&mut self, page: u64) -> bool {
        let [a, b, c, d] = self.recent;
        let (is_a, is_b, is_c, is_d) = (page == a, page == b, page == c, page == d);
        if !(is_a | is_b | is_c | is_d) {
            return false;
        }
        let third = if is_a | is_b { c } else { b };
        self.recent = [page, if is_a { b } else { a }, third, if is_d { c } else { d }];
        true
    }

    /// Whether the first level has a page that is none of those; it becomes the newest.
    #[inline(never)]
    fn is_held(&mut self, page: u64) -> bool {
        let is_held = self.first.touch(page).is_some();
        if is_held {
            let [a, b, c, d] = self.recent;
            if d != NO_PAGE {
                self.first.touch(d);
            }
            self.recent = [page, a, b, c];
        }
        is_held
    }

    #[cold]
    fn miss(&mut self, page: u64) -> Translation {
        self.misses += 1;
        self.enter(page);
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

    /// Puts a page into the first level, which must know the order of all to choose who leaves.
    fn enter(&mut self, page: u64) {
        for &used in self.recent.iter().rev().filter(|&&used| used != NO_PAGE) {
            self.first.touch(used);
        }
        let [a, b, c, _] = self.recent;
        self.recent = [page, a, b, c];
        // Of a set with few ways even a recent one may leave.
        if let Some((left, ())) = self.first.insert(page, ()) {
            let gone = self.recent.iter_mut().filter(|recent| **recent == left);
            gone.for_each(|recent| *recent = NO_PAGE);
        }
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

    #[test]
    fn pages_kept_apart_are_held_as_plain_lists_hold_them() {
        let machine = Machine::named("zen4").unwrap();
        for (entries, ways) in [(72, 72), (64, 4), (16, 2), (8, 1), (3, 3), (1, 1)] {
            let first = TlbFacts { entries, ways, ..machine.tlbs.l1d };
            let mut tlb = Tlb::new(&machine.tlbs, &first, None);
            let mut sets = vec![Vec::new(); (entries / ways) as usize];
            let mut dice = crate::testing::Dice::new(u64::from(entries));
            for step in 0..30_000_u64 {
                // A few pages in turn, others now and then.
                let span = if step % 5 == 0 { 2 * u64::from(entries) + 3 } else { 5 };
                let page = dice.next() % span;
                let set: &mut Vec<u64> = &mut sets[page as usize % (entries / ways) as usize];
                let held = set.iter().position(|&other| other == page);
                let asks_only = dice.next().is_multiple_of(3);
                if asks_only {
                    assert_eq!(tlb.hits(page << 12), held.is_some(), "{entries} {ways} {step}");
                } else {
                    let missed = tlb.translate(page << 12).missed_l1;
                    assert_eq!(missed, held.is_none(), "{entries} {ways} {step}");
                }
                if held.is_some() || !asks_only {
                    held.map(|place| set.remove(place));
                    set.insert(0, page);
                    set.truncate(ways as usize);
                }
            }
        }
    }
}
