//! A set-associative memory of numbers with least-recently-used replacement.
//!
//! It serves as cache (numbers are lines), TLB (pages), branch target buffer and micro-op cache.
//! Every place keeps when it was used last; only a miss looks for the oldest of its set. Wide sets
//! remember by the low bits of a number where such a number was found last, so that a hit in a
//! fully associative TLB does not search it.
//!
//! ```text
//! tags:  | set 0: way 0 way 1 ... | set 1: way 0 way 1 ... |
//! used:  |        17    3         |        12    90        |
//! ```

/// No number: marks an empty place. Lines and pages are shifted addresses, so never all ones.
const EMPTY: u64 = u64::MAX;
/// Sets wider than this keep hints.
const NARROW: usize = 16;
/// Hints kept by a memory with wide sets.
const HINTS: usize = 256;

/// The memory, holding a value of type `V` beside each number.
#[derive(Clone, Debug)]
pub struct Cache<V> {
    tags: Vec<u64>,
    used: Vec<u64>,
    values: Vec<V>,
    hints: Vec<u32>,
    ways: usize,
    sets: u64,
    /// `sets - 1` where that is a mask, otherwise 0.
    mask: u64,
    clock: u64,
}

impl<V: Copy + Default> Cache<V> {
    /// An empty memory of `entries` places in sets of `ways`; both at least 1, entries a multiple.
    pub fn new(entries: usize, ways: usize) -> Cache<V> {
        let ways = ways.max(1);
        let sets = (entries / ways).max(1) as u64;
        let places = sets as usize * ways;
        Cache {
            tags: vec![EMPTY; places],
            used: vec![0; places],
            values: vec![V::default(); places],
            hints: if ways > NARROW { vec![0; HINTS] } else { Vec::new() },
            ways,
            sets,
            mask: if sets.is_power_of_two() { sets - 1 } else { 0 },
            clock: 0,
        }
    }

    /// How many numbers it can hold.
    pub fn places(&self) -> usize {
        self.tags.len()
    }

    #[inline]
    fn base(&self, number: u64) -> usize {
        let set =
            if self.mask != 0 || self.sets == 1 { number & self.mask } else { number % self.sets };
        set as usize * self.ways
    }

    #[inline]
    fn find(&self, number: u64) -> Option<usize> {
        let base = self.base(number);
        let tags = &self.tags[base..base + self.ways];
        Some(base + tags.iter().position(|&tag| tag == number)?)
    }

    /// Finds a number and makes it the newest of its set.
    #[inline]
    pub fn touch(&mut self, number: u64) -> Option<&mut V> {
        let place =
            if self.hints.is_empty() { self.find(number)? } else { self.find_by_hint(number)? };
        self.clock += 1;
        self.used[place] = self.clock;
        Some(&mut self.values[place])
    }

    /// Finds a number whose value passes a test and makes it the newest of its set; otherwise
    /// nothing changes.
    #[inline]
    pub fn touch_if(&mut self, number: u64, test: impl FnOnce(&V) -> bool) -> Option<&mut V> {
        let place =
            if self.hints.is_empty() { self.find(number)? } else { self.find_by_hint(number)? };
        if !test(&self.values[place]) {
            return None;
        }
        self.clock += 1;
        self.used[place] = self.clock;
        Some(&mut self.values[place])
    }

    #[inline]
    fn find_by_hint(&mut self, number: u64) -> Option<usize> {
        let hint = number as usize & (HINTS - 1);
        let place = self.hints[hint] as usize;
        if self.tags[place] == number {
            return Some(place);
        }
        let place = self.find(number)?;
        self.hints[hint] = place as u32;
        Some(place)
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

    /// Puts a number that is not held in as the newest; returns what had to leave.
    pub fn insert(&mut self, number: u64, value: V) -> Option<(u64, V)> {
        let base = self.base(number);
        let mut place = base;
        for other in base + 1..base + self.ways {
            if self.used[other] < self.used[place] {
                place = other;
            }
        }
        let left = (self.tags[place], self.values[place]);
        self.clock += 1;
        self.used[place] = self.clock;
        self.tags[place] = number;
        self.values[place] = value;
        if !self.hints.is_empty() {
            self.hints[number as usize & (HINTS - 1)] = place as u32;
        }
        (left.0 != EMPTY).then_some(left)
    }
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

    #[test]
    fn sets_that_are_no_power_of_two_still_hold_what_they_can() {
        let mut cache = Cache::new(12, 2);
        assert_eq!(misses(&mut cache, 0..12), 12);
        assert_eq!(misses(&mut cache, 0..12), 0);
    }
}
