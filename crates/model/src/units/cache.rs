//! A set-associative memory of numbers with least-recently-used replacement.
//!
//! It serves as cache (numbers are lines), TLB (pages), branch target buffer and micro-op cache.
//! A set of up to 16 keeps its ways in one word, newest first, four bits each: a hit of the newest
//! changes nothing, and the way that must leave is the last. Wider sets stamp each use, which is cheap
//! for hits, and look for the oldest stamp when one must leave; they count what they hold by low bits,
//! so that most of what they do not hold is known without a search.
//! Small memories remember by the low bits of a number in which way such a number was found last, so
//! that most hits look at one place.
//!
//! ```text
//! tags:   | set 0: way 0 way 1 ... | set 1: way 0 way 1 ... |
//! orders: | 0x...10 (1 is older)   | 0x...01 (0 is older)   |
//! ```

use super::ahead::bring;

/// No number: marks an empty place. Lines and pages are shifted addresses, so never all ones.
const EMPTY: u64 = u64::MAX;
/// Sets up to this wide keep their order in a word.
const NARROW: usize = 16;
/// Ways that sets most often have.
const USUAL: usize = 8;
/// Low bits by which wide sets count what they hold, as a mask.
const HELD_MASK: u64 = 1023;
/// Low bits of a stamp that tell the way, and their mask.
const WAY_BITS: u32 = 16;
const WAY_MASK: u64 = (1 << WAY_BITS) - 1;
/// The most hints that are kept: more would themselves miss the host's caches.
const HINTS_MAX: usize = 8192;
/// Ways 0, 1, 2 ... 15, the first in the lowest bits.
const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;
/// One in every way's bits.
const ONES: u64 = 0x1111_1111_1111_1111;

/// Tags that share a line of the host's memory.
const HOST_LINE: usize = 8;

/// Where a number is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    set: u32,
    place: u32,
}

/// The memory, holding a value of type `V` beside each number.
#[derive(Clone, Debug)]
pub struct Cache<V> {
    tags: Vec<u64>,
    values: Vec<V>,
    /// The ways of each narrow set, newest first.
    orders: Vec<u64>,
    /// When each place of wide sets was used last, with its way in the low bits, and the latest of all,
    /// above those bits too.
    stamps: Vec<u64>,
    latest: u64,
    /// How many numbers wide sets hold, by low bits.
    held: Vec<u8>,
    /// The way in which a number was found last, by its low bits.
    hints: Vec<u8>,
    ways: usize,
    sets: u64,
    /// `sets - 1` where that is a mask, otherwise 0.
    mask: u64,
    /// 2^128 / sets, rounded up: a remainder is two products instead of a slow division.
    inverse: u128,
    /// The power of two of the numbers that stay together; 64 where all do.
    together: u32,
}

impl<V: Copy + Default> Cache<V> {
    /// An empty memory of `entries` places in sets of `ways`; both at least 1, entries a multiple.
    pub fn new(entries: usize, ways: usize) -> Cache<V> {
        let ways = ways.clamp(1, usize::from(u16::MAX));
        let sets = (entries / ways).max(1) as u64;
        let places = sets as usize * ways;
        let is_narrow = ways <= NARROW;
        // A way's number must fit; the widest sets are TLBs of about a hundred.
        let hints = if ways <= 256 { places.next_power_of_two().clamp(16, HINTS_MAX) } else { 0 };
        Cache {
            tags: vec![EMPTY; places],
            values: vec![V::default(); places],
            orders: if is_narrow { vec![IN_ORDER; sets as usize] } else { Vec::new() },
            stamps: if is_narrow { Vec::new() } else { unused(places, ways) },
            latest: stamp(ways as u64, 0),
            held: if is_narrow { Vec::new() } else { vec![0; HELD_MASK as usize + 1] },
            hints: vec![0; hints],
            ways,
            sets,
            mask: if sets.is_power_of_two() { sets - 1 } else { 0 },
            inverse: (u128::MAX / u128::from(sets)).wrapping_add(1),
            together: u64::BITS,
        }
    }

    /// The same, with numbers in sets by chance: lines of pages that lie anywhere. So many of them, a
    /// power of two, lie in a row.
    pub(super) fn scattered(self, row: u64) -> Cache<V> {
        Cache { together: row.trailing_zeros(), ..self }
    }

    /// Empties it, as it was made.
    pub fn clear(&mut self) {
        self.tags.fill(EMPTY);
        self.values.fill(V::default());
        self.orders.fill(IN_ORDER);
        if !self.stamps.is_empty() {
            self.stamps = unused(self.tags.len(), self.ways);
        }
        self.latest = stamp(self.ways as u64, 0);
        self.held.fill(0);
        self.hints.fill(0);
    }

    /// How many sets there are.
    pub(super) fn sets(&self) -> u64 {
        self.sets
    }

    /// How many numbers it can hold.
    pub fn places(&self) -> usize {
        self.tags.len()
    }

    #[inline]
    fn set(&self, number: u64) -> usize {
        let number = if self.together == u64::BITS { number } else { self.elsewhere(number) };
        if self.mask != 0 || self.sets == 1 {
            return (number & self.mask) as usize;
        }
        // The fraction of number / sets in 128 bits, times sets: exact for every number.
        let fraction = self.inverse.wrapping_mul(u128::from(number));
        let (high, low) = (fraction >> 64, fraction & u128::from(u64::MAX));
        let sets = u128::from(self.sets);
        ((high * sets + ((low * sets) >> 64)) >> 64) as usize
    }

    /// Where the row of a number came to lie, and the number in it.
    #[inline]
    fn elsewhere(&self, number: u64) -> u64 {
        let row = (number >> self.together).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (row ^ row >> 32) << self.together | number & ((1 << self.together) - 1)
    }

    #[inline]
    fn hint(&self, number: u64) -> usize {
        number as usize & self.hints.len().wrapping_sub(1)
    }

    /// The way that holds a number. Every way is looked at: that is faster than deciding after each
    /// whether to go on.
    #[inline]
    fn scan(&self, base: usize, number: u64) -> Option<usize> {
        let tags = &self.tags[base..base + self.ways];
        if let Ok(tags) = <&[u64; USUAL]>::try_from(tags) {
            return scan_usual(tags, number);
        }
        let mut found = usize::MAX;
        for (way, &tag) in tags.iter().enumerate() {
            found = if tag == number { way } else { found };
        }
        (found != usize::MAX).then_some(found)
    }

    #[inline]
    fn find(&self, number: u64) -> Option<usize> {
        let base = self.set(number) * self.ways;
        let hinted = base + usize::from(self.hints.get(self.hint(number)).copied().unwrap_or(0));
        if self.tags.get(hinted) == Some(&number) {
            return Some(hinted);
        }
        self.scan(base, number).map(|way| base + way)
    }

    /// Finds a number's place, and remembers the way.
    #[inline]
    fn find_again(&mut self, set: usize, number: u64) -> Option<usize> {
        let base = set * self.ways;
        let hint = self.hint(number);
        let hinted = self.hints.get(hint).copied().map_or(0, usize::from);
        if self.tags.get(base + hinted) == Some(&number) {
            return Some(hinted);
        }
        if self.held.get((number & HELD_MASK) as usize) == Some(&0) {
            return None;
        }
        let way = self.scan(base, number)?;
        if let Some(hint) = self.hints.get_mut(hint) {
            *hint = way as u8;
        }
        Some(way)
    }

    /// Makes a way the newest of its set.
    #[inline]
    fn renew(&mut self, set: usize, way: usize) {
        match self.orders.get_mut(set) {
            Some(order) if *order & 15 == way as u64 => {}
            Some(order) => *order = to_front(*order, way as u64),
            None => self.stamp_now(set * self.ways + way),
        }
    }

    /// Stamps a place of a wide set, which keeps its way.
    #[inline]
    fn stamp_now(&mut self, place: usize) {
        self.latest += 1 << WAY_BITS;
        if let Some(stamp) = self.stamps.get_mut(place) {
            *stamp = *stamp & WAY_MASK | self.latest;
        }
    }

    /// Finds a number and makes it the newest of its set.
    #[inline]
    pub fn touch(&mut self, number: u64) -> Option<&mut V> {
        let set = self.set(number);
        let way = self.find_again(set, number)?;
        self.renew(set, way);
        Some(&mut self.values[set * self.ways + way])
    }

    /// Finds a number and makes it the newest of its set; says where it is.
    #[inline]
    pub(super) fn touch_place(&mut self, number: u64) -> Option<Place> {
        let set = self.set(number);
        let way = self.find_again(set, number)?;
        self.renew(set, way);
        Some(Place { set: set as u32, place: (set * self.ways + way) as u32 })
    }

    /// Makes the newest of its set what was found in a place and has not left it.
    #[inline]
    pub(super) fn renew_place(&mut self, at: Place) {
        if self.orders.is_empty() {
            return self.stamp_now(at.place as usize);
        }
        self.renew(at.set as usize, at.place as usize - at.set as usize * self.ways);
    }

    /// Finds a number whose value passes a test and makes it the newest of its set; otherwise
    /// nothing changes.
    #[inline]
    pub fn touch_if(&mut self, number: u64, test: impl FnOnce(&V) -> bool) -> Option<&mut V> {
        let set = self.set(number);
        let way = self.find_again(set, number)?;
        if !test(&self.values[set * self.ways + way]) {
            return None;
        }
        self.renew(set, way);
        Some(&mut self.values[set * self.ways + way])
    }

    /// Has the host bring what a use of a number will look at first: the tags of its set and their order.
    #[inline]
    pub(super) fn bring(&self, number: u64) {
        let set = self.set(number);
        let places = set * self.ways..(set + 1) * self.ways;
        let tags = self.tags.get(places).unwrap_or_default();
        tags.iter().step_by(HOST_LINE).for_each(bring);
        self.orders.get(set).into_iter().for_each(bring);
    }

    /// The same with the values of its set, one of which leaves for a number that is not there.
    #[inline]
    pub(super) fn bring_all(&self, number: u64) {
        self.bring(number);
        let set = self.set(number);
        let values = self.values.get(set * self.ways..(set + 1) * self.ways).unwrap_or_default();
        values.iter().step_by(HOST_LINE).for_each(bring);
    }

    /// Finds a number and leaves the order alone.
    #[inline]
    pub fn peek(&self, number: u64) -> Option<&V> {
        self.find(number).map(|place| &self.values[place])
    }

    /// Finds a number, leaves the order alone, and lets its value be changed.
    pub fn peek_mut(&mut self, number: u64) -> Option<&mut V> {
        self.find(number).map(|place| &mut self.values[place])
    }

    /// The way that was used longest ago.
    #[inline]
    fn oldest(&self, set: usize) -> usize {
        if let Some(order) = self.orders.get(set) {
            return (order >> (4 * (self.ways - 1))) as usize & 15;
        }
        let stamps = &self.stamps[set * self.ways..][..self.ways];
        // Four at a time: each comparison waits for one before it in its own lane only.
        let (fours, rest) = stamps.as_chunks::<4>();
        let mut least = [u64::MAX; 4];
        for four in fours {
            least = std::array::from_fn(|lane| least[lane].min(four[lane]));
        }
        let oldest = least.iter().chain(rest).fold(u64::MAX, |a, &b| a.min(b));
        (oldest & WAY_MASK) as usize
    }

    /// Puts a number that is not held in as the newest; returns what had to leave.
    #[inline]
    pub fn insert(&mut self, number: u64, value: V) -> Option<(u64, V)> {
        let set = self.set(number);
        let way = self.oldest(set);
        let place = set * self.ways + way;
        let left = (self.tags[place], self.values[place]);
        self.renew(set, way);
        if !self.held.is_empty() {
            // A slot that is full stays full: it only says that a search is needed.
            let slot = &mut self.held[(number & HELD_MASK) as usize];
            *slot = slot.saturating_add(1);
            let slot = &mut self.held[(left.0 & HELD_MASK) as usize];
            *slot -= u8::from(left.0 != EMPTY && *slot != u8::MAX);
        }
        self.tags[place] = number;
        self.values[place] = value;
        let hint = self.hint(number);
        if let Some(hint) = self.hints.get_mut(hint) {
            *hint = way as u8;
        }
        (left.0 != EMPTY).then_some(left)
    }
}

/// The same of a set of usual width, which the host compares at once.
#[inline]
fn scan_usual(tags: &[u64; USUAL], number: u64) -> Option<usize> {
    let found = tags.iter().rev().fold(0_u32, |found, &tag| found << 1 | u32::from(tag == number));
    (found != 0).then_some(found.trailing_zeros() as usize)
}

/// Stamps of places that were never used: the last way of each set leaves first.
fn unused(places: usize, ways: usize) -> Vec<u64> {
    (0..places).map(|place| place % ways).map(|way| stamp((ways - 1 - way) as u64, way)).collect()
}

/// A moment, with the way that was used then.
#[inline]
fn stamp(moment: u64, way: usize) -> u64 {
    moment << WAY_BITS | way as u64
}

/// The places of a table, each linked with the next newer and the next older.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    newer: Vec<u16>,
    older: Vec<u16>,
    newest: u16,
    oldest: u16,
}

impl Chain {
    pub(super) fn new(ways: usize) -> Chain {
        let last = ways.saturating_sub(1) as u16;
        Chain {
            newer: (0..=last).map(|way| way.wrapping_sub(1)).collect(),
            older: (0..=last).map(|way| way + 1).collect(),
            newest: 0,
            oldest: last,
        }
    }

    pub(super) fn oldest(&self) -> usize {
        usize::from(self.oldest)
    }

    #[inline]
    pub(super) fn renew(&mut self, way: usize) {
        let way = way as u16;
        if way == self.newest {
            return;
        }
        let (newer, older) = (self.newer[usize::from(way)], self.older[usize::from(way)]);
        self.older[usize::from(newer)] = older;
        if way == self.oldest {
            self.oldest = newer;
        } else {
            self.newer[usize::from(older)] = newer;
        }
        self.newer[usize::from(self.newest)] = way;
        self.older[usize::from(way)] = self.newest;
        self.newest = way;
    }
}

/// An order with one way moved to the front and those before it one back.
#[inline]
fn to_front(order: u64, way: u64) -> u64 {
    // The way's four bits are where this is zero; the lowest such place is certain to be found.
    let differs = order ^ (way * ONES);
    let zeros = differs.wrapping_sub(ONES) & !differs & (ONES << 3);
    let shift = zeros.trailing_zeros() & 60;
    let through = u64::MAX >> (60 - shift);
    let before = through >> 4;
    order & !through | (order & before) << 4 | way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misses(cache: &mut Cache<()>, numbers: impl Iterator<Item = u64>) -> usize {
        numbers
            .filter(|&number| {
                let miss = cache.touch(number).is_none();
                if miss {
                    cache.insert(number, ());
                }
                miss
            })
            .count()
    }

    #[test]
    fn a_sweep_over_twice_the_cache_misses_every_line_every_time() {
        let mut cache = Cache::new(512, 8);
        for _ in 0..5 {
            assert_eq!(misses(&mut cache, 0..1024), 1024);
        }
    }

    #[test]
    fn a_sweep_over_exactly_the_cache_misses_only_the_first_time() {
        let mut cache = Cache::new(512, 8);
        assert_eq!(misses(&mut cache, 0..512), 512);
        for _ in 0..5 {
            assert_eq!(misses(&mut cache, 0..512), 0);
        }
    }

    #[test]
    fn one_more_line_than_ways_in_one_set_thrashes_that_set_alone() {
        let mut cache = Cache::new(512, 8);
        let conflict = || (0..9).map(|k| k * 64);
        misses(&mut cache, conflict());
        assert_eq!(misses(&mut cache, conflict()), 9);
        assert_eq!(misses(&mut cache, 1..2), 1);
        assert_eq!(misses(&mut cache, 1..2), 0);
    }

    #[test]
    fn the_least_recently_used_leaves_first() {
        let mut cache = Cache::new(3, 3);
        misses(&mut cache, [10, 11, 12].into_iter());
        cache.touch(10);
        assert_eq!(cache.insert(13, ()), Some((11, ())));
        assert!(cache.peek(10).is_some() && cache.peek(12).is_some());
    }

    /// The memory as a list a set, newest first.
    struct Plainly {
        sets: Vec<Vec<u64>>,
        ways: usize,
    }

    impl Plainly {
        /// Whether a number was held, and what left for it.
        fn use_of(&mut self, number: u64) -> (bool, Option<u64>) {
            let place = number as usize % self.sets.len();
            let set = &mut self.sets[place];
            let held = set.iter().position(|&other| other == number);
            if let Some(place) = held {
                set.remove(place);
            }
            set.insert(0, number);
            (held.is_some(), (set.len() > self.ways).then(|| set.pop()).flatten())
        }
    }

    #[test]
    fn shortcuts_hold_what_plain_lists_hold() {
        for (entries, ways) in [(64, 8), (48, 12), (16, 16), (96, 96), (72, 24), (7, 1), (4096, 4)]
        {
            let mut cache = Cache::new(entries, ways);
            let mut plainly = Plainly { sets: vec![Vec::new(); entries / ways], ways };
            let mut dice = crate::testing::Dice::new(entries as u64);
            for step in 0..20_000 {
                let span = if step % 7 == 0 { 4 * entries } else { entries / 2 + 1 };
                let number = dice.next() % span as u64;
                let is_held = cache.touch_if(number, |value| *value == number).is_some();
                let left = if is_held { None } else { cache.insert(number, number) };
                assert_eq!((is_held, left.map(|left| left.0)), plainly.use_of(number));
                assert_eq!(cache.peek(number), Some(&number));
            }
        }
    }

    #[test]
    fn remainders_are_those_of_division() {
        let mut dice = crate::testing::Dice::new(5);
        for sets in [3, 5, 7, 96, 1000, 1023, 100_003] {
            let cache = Cache::<()>::new(sets, 1);
            for _ in 0..2000 {
                let number = dice.next() << 33 ^ dice.next();
                assert_eq!(cache.set(number) as u64, number % sets as u64);
            }
            assert_eq!(cache.set(u64::MAX - 1) as u64, (u64::MAX - 1) % sets as u64);
        }
    }

    #[test]
    fn a_way_moves_to_the_front_of_its_order_and_the_others_keep_theirs() {
        for order in [IN_ORDER, 0x0123_4567_89ab_cdef] {
            for way in 0..16 {
                let ways = |order: u64| (0..16).map(|k| order >> (4 * k) & 15).collect::<Vec<_>>();
                let mut expected = ways(order);
                expected.retain(|&other| other != way);
                expected.insert(0, way);
                assert_eq!(ways(to_front(order, way)), expected);
            }
        }
    }

    #[test]
    fn scattered_pages_fill_sets_unevenly_and_none_is_lost() {
        let rounds = |pages: u64| {
            let mut cache = Cache::new(4096, 16).scattered(4);
            assert_eq!(misses(&mut cache, 0..4 * pages), 4 * pages as usize);
            misses(&mut cache, 0..4 * pages) as f64 / (4 * pages) as f64
        };
        // As many lines as it holds do not fit, though half of them do.
        assert_eq!(rounds(256), 0.0);
        assert!((0.3..0.7).contains(&rounds(1024)), "{}", rounds(1024));
        assert!(rounds(2048) > 0.95);
    }

    #[test]
    fn sets_that_are_no_power_of_two_still_hold_what_they_can() {
        let mut cache = Cache::new(12, 2);
        assert_eq!(misses(&mut cache, 0..12), 12);
        assert_eq!(misses(&mut cache, 0..12), 0);
    }
}
