//! A set-associative memory of numbers with least-recently-used replacement.
//!
//! It serves as cache (numbers are lines), TLB (pages), branch target buffer and micro-op cache.
//! A set of up to 16 keeps its ways in one word, newest first, four bits each: a hit of the newest
//! changes nothing, and the way that must leave is the last. Wider sets keep when each place was used
//! and look for the oldest when one must leave. Small memories remember by the low bits of a number
//! in which way such a number was found last, so that most hits look at one place.
//!
//! ```text
//! tags:   | set 0: way 0 way 1 ... | set 1: way 0 way 1 ... |
//! orders: | 0x...10 (1 is older)   | 0x...01 (0 is older)   |
//! ```

/// No number: marks an empty place. Lines and pages are shifted addresses, so never all ones.
const EMPTY: u64 = u64::MAX;
/// Sets up to this wide keep their order in a word.
const NARROW: usize = 16;
/// The most hints that are kept: more would themselves miss the host's caches.
const HINTS_MAX: usize = 8192;
/// Ways 0, 1, 2 ... 15, the first in the lowest bits.
const IN_ORDER: u64 = 0xfedc_ba98_7654_3210;
/// One in every way's bits.
const ONES: u64 = 0x1111_1111_1111_1111;

/// The memory, holding a value of type `V` beside each number.
#[derive(Clone, Debug)]
pub struct Cache<V> {
    tags: Vec<u64>,
    values: Vec<V>,
    /// The ways of each narrow set, newest first.
    orders: Vec<u64>,
    /// When each place of a wide set was used last.
    used: Vec<u64>,
    clock: u64,
    /// The way in which a number was found last, by its low bits.
    hints: Vec<u8>,
    ways: usize,
    sets: u64,
    /// `sets - 1` where that is a mask, otherwise 0.
    mask: u64,
}

impl<V: Copy + Default> Cache<V> {
    /// An empty memory of `entries` places in sets of `ways`; both at least 1, entries a multiple.
    pub fn new(entries: usize, ways: usize) -> Cache<V> {
        let ways = ways.max(1);
        let sets = (entries / ways).max(1) as u64;
        let places = sets as usize * ways;
        let is_narrow = ways <= NARROW;
        // A way's number must fit; the widest sets are TLBs of about a hundred.
        let hints = if ways <= 256 { places.next_power_of_two().clamp(16, HINTS_MAX) } else { 0 };
        Cache {
            tags: vec![EMPTY; places],
            values: vec![V::default(); places],
            orders: if is_narrow { vec![IN_ORDER; sets as usize] } else { Vec::new() },
            used: if is_narrow { Vec::new() } else { vec![0; places] },
            clock: 0,
            hints: vec![0; hints],
            ways,
            sets,
            mask: if sets.is_power_of_two() { sets - 1 } else { 0 },
        }
    }

    /// How many numbers it can hold.
    pub fn places(&self) -> usize {
        self.tags.len()
    }

    #[inline]
    fn set(&self, number: u64) -> usize {
        let has_mask = self.mask != 0 || self.sets == 1;
        (if has_mask { number & self.mask } else { number % self.sets }) as usize
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
            None => {
                self.clock += 1;
                self.used[set * self.ways + way] = self.clock;
            }
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
        let used = &self.used[set * self.ways..(set + 1) * self.ways];
        let oldest = used.iter().enumerate().min_by_key(|(_, used)| **used);
        oldest.map_or(0, |(way, _)| way)
    }

    /// Puts a number that is not held in as the newest; returns what had to leave.
    #[inline]
    pub fn insert(&mut self, number: u64, value: V) -> Option<(u64, V)> {
        let set = self.set(number);
        let way = self.oldest(set);
        let place = set * self.ways + way;
        let left = (self.tags[place], self.values[place]);
        self.renew(set, way);
        self.tags[place] = number;
        self.values[place] = value;
        let hint = self.hint(number);
        if let Some(hint) = self.hints.get_mut(hint) {
            *hint = way as u8;
        }
        (left.0 != EMPTY).then_some(left)
    }
}

/// An order with one way moved to the front and those before it one back.
#[inline]
fn to_front(order: u64, way: u64) -> u64 {
    // The way's four bits are where this is zero; the lowest such place is certain to be found.
    let differs = order ^ way * ONES;
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
        for (entries, ways) in [(64, 8), (48, 12), (16, 16), (96, 96), (12, 2), (7, 1), (4096, 4)] {
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
    fn sets_that_are_no_power_of_two_still_hold_what_they_can() {
        let mut cache = Cache::new(12, 2);
        assert_eq!(misses(&mut cache, 0..12), 12);
        assert_eq!(misses(&mut cache, 0..12), 0);
    }
}
