//! Address translation: two levels and a walk.

use super::cache::{Cache, Place};
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
/// Pages whose place is known without a search; a power of two, and several times what a first level
/// holds, so that few share a place.
const NEAR: usize = 256;
/// Pages that are told apart from afar where there is no second level, about what a first one holds; a
/// power of two.
const FAR: usize = 64;

/// A page, and where the first level holds it.
#[derive(Clone, Copy, Debug)]
struct Near {
    page: u64,
    place: Place,
}

/// One side's translation: instructions or data.
///
/// The place of a page that was found is kept by its low bits, so that most uses note in that place
/// that it was used, and no more. Whoever leaves the buffer leaves these too.
///
/// ```text
/// near: page & 255 -> page and place     first: all pages, with the order of their use
/// ```
#[derive(Clone, Debug)]
pub struct Tlb {
    first: Cache<()>,
    second: Option<Cache<()>>,
    second_cycles: u32,
    walk_cycles: u32,
    page_shift: u32,
    near: [Near; NEAR],
    /// Pages told from afar, the last of each low bits: about what the second level would hold, or the
    /// first where it is the only one.
    far: Vec<u64>,
    /// The latest of them as a ring, and how many there were since the second level heard of them.
    latest: Vec<u64>,
    told: usize,
    /// Translations that the first level did not have.
    pub misses: u64,
}

impl Tlb {
    /// Of one side of a machine.
    pub fn new(facts: &Tlbs, first: &TlbFacts, second: Option<&TlbFacts>) -> Tlb {
        let buffer = |tlb: &TlbFacts| Cache::new(tlb.entries as usize, tlb.ways as usize);
        let second_pages = second.map_or(0, |tlb| tlb.entries as usize);
        Tlb {
            first: buffer(first),
            second: second.map(buffer),
            second_cycles: second.map_or(0, |tlb| tlb.latency_cycles),
            walk_cycles: facts.walk_cycles,
            page_shift: facts.page_bytes.trailing_zeros(),
            near: [Near { page: NO_PAGE, place: Place::default() }; NEAR],
            far: vec![NO_PAGE; second_pages.next_power_of_two().max(FAR)],
            // They do not fall evenly.
            latest: vec![NO_PAGE; 2 * second_pages],
            told: 0,
            misses: 0,
        }
    }

    /// Translates an address.
    #[inline]
    pub fn translate(&mut self, address: u64) -> Translation {
        let page = address >> self.page_shift;
        if self.is_near(page) || self.is_held(page) {
            return Translation::default();
        }
        self.miss(page)
    }

    /// Whether the first level has an address; if so it is used, if not nothing changes.
    #[inline]
    pub fn hits(&mut self, address: u64) -> bool {
        self.has(address >> self.page_shift)
    }

    /// The same of a page.
    #[inline]
    pub(super) fn has(&mut self, page: u64) -> bool {
        self.is_near(page) || self.is_held(page)
    }

    /// Whether a page's place is known; it becomes the newest.
    #[inline]
    fn is_near(&mut self, page: u64) -> bool {
        let near = self.near[page as usize % NEAR];
        if near.page != page {
            return false;
        }
        self.first.renew_place(near.place);
        true
    }

    /// Whether the first level has a page whose place is not known; it becomes the newest.
    #[inline(never)]
    fn is_held(&mut self, page: u64) -> bool {
        let Some(place) = self.first.touch_place(page) else { return false };
        self.near[page as usize % NEAR] = Near { page, place };
        true
    }

    /// Brings a page that the first level does not have.
    #[cold]
    pub(super) fn miss(&mut self, page: u64) -> Translation {
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

    /// A page is used by something that nobody follows: whether the tables are walked for it. The
    /// second level hears only of what the first one lacks, here too: otherwise it would keep pages in
    /// use that it forgets in truth.
    #[inline]
    pub fn refresh(&mut self, address: u64) -> bool {
        if self.hits(address) {
            return false;
        }
        let translation = self.miss(address >> self.page_shift);
        self.misses -= 1;
        translation.walked
    }

    /// The same long before anything is timed. The first level does not remember for so long, and what
    /// the second one would have, which has yet to hear of it (`come_near`), is taken to be the last page
    /// of each low bits.
    #[inline]
    pub fn refresh_far(&mut self, address: u64) -> bool {
        let page = address >> self.page_shift;
        let place = page as usize & (self.far.len() - 1);
        if self.far[place] == page {
            return false;
        }
        self.far[place] = page;
        if !self.latest.is_empty() {
            let places = self.latest.len();
            self.latest[self.told % places] = page;
            self.told += 1;
        }
        true
    }

    /// Pages told from afar are told anew from here on, so that those in use stay among the latest.
    pub fn forget_far(&mut self) {
        self.far.fill(NO_PAGE);
    }

    /// The second level hears of the pages told last from afar.
    pub fn come_near(&mut self) {
        let Some(second) = &mut self.second else { return };
        let (places, told) = (self.latest.len(), std::mem::take(&mut self.told));
        let (newer, older) = self.latest.split_at(if told > places { told % places } else { 0 });
        for &page in older.iter().chain(newer).take(told) {
            if second.touch(page).is_none() {
                second.insert(page, ());
            }
        }
    }

    /// Puts a page into the first level.
    fn enter(&mut self, page: u64) {
        let Some((left, ())) = self.first.insert(page, ()) else { return };
        let near = &mut self.near[left as usize % NEAR];
        if near.page == left {
            near.page = NO_PAGE;
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
    fn pages_that_nobody_follows_are_known_and_were_not_waited_for() {
        let machine = Machine::named("zen4").unwrap();
        let facts = &machine.tlbs;
        let pages = u64::from(2 * facts.l1d.entries);
        for (second, walks) in [(facts.l2d.as_ref(), 1), (None, pages + 1)] {
            let mut tlb = Tlb::new(facts, &facts.l1d, second);
            let told = (0..pages).filter(|page| tlb.refresh(page * 4096)).count();
            assert_eq!(told as u64, pages, "each is walked for once");
            assert_eq!(tlb.misses, 0, "nobody waited");
            let walked = (0..=pages).filter(|page| tlb.translate(page * 4096).walked).count();
            assert_eq!(walked as u64, walks, "the page that was not told of, or those that left");
            assert_eq!(tlb.misses, pages + 1, "a sweep over twice the first level");
        }
    }

    #[test]
    fn pages_told_from_afar_reach_the_second_level_alone() {
        let facts = &Machine::named("zen4").unwrap().tlbs;
        let mut tlb = Tlb::new(facts, &facts.l1d, facts.l2d.as_ref());
        let held = u64::from(facts.l2d.as_ref().unwrap().entries);
        let pages = u64::from(2 * facts.l1d.entries);
        // More than the ring holds, of which nothing is left; then some, each of them once.
        let many = (0..9 * held).filter(|page| tlb.refresh_far((1000 + page) * 4096)).count();
        assert_eq!(many as u64, 9 * held);
        for walks in [pages, 0] {
            let told = (0..pages).filter(|page| tlb.refresh_far(page * 4096)).count();
            assert_eq!(told as u64, walks, "once");
        }
        tlb.come_near();
        let missed = (0..pages).map(|page| tlb.translate(page * 4096));
        let missed: Vec<Translation> = missed.collect();
        assert!(missed.iter().all(|t| t.missed_l1 && !t.walked));
        let mut alone = Tlb::new(facts, &facts.l1d, None);
        let told = |tlb: &mut Tlb, page: u64| tlb.refresh_far(page * 4096);
        assert!(told(&mut alone, 3) && !told(&mut alone, 3) && told(&mut alone, 4));
    }

    #[test]
    fn pages_whose_place_is_known_are_held_as_plain_lists_hold_them() {
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
