//! A set-associative memory of numbers with least-recently-used replacement.
//!
//! It serves as cache (numbers are lines), TLB (pages), branch target buffer and micro-op cache.
//! Each set is kept in order of use, so the common hit is one comparison:
//!
//! ```text
//! tags: | newest ... oldest | newest ... oldest | ...
//! ```

/// No number: marks an empty place. Lines and pages are shifted addresses, so never all ones.
const EMPTY: u64 = u64::MAX;

/// The memory, holding a value of type `V` beside each number.
#[derive(Clone, Debug)]
pub struct Cache<V> {
    tags: Vec<u64>,
    values: Vec<V>,
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
        let mask = if sets.is_power_of_two() { sets - 1 } else { 0 };
        let places = sets as usize * ways;
        Cache { tags: vec![EMPTY; places], values: vec![V::default(); places], ways, sets, mask }
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

    /// Finds a number and makes it the newest of its set.
    #[inline]
    pub fn touch(&mut self, number: u64) -> Option<&mut V> {
        let base = self.base(number);
        let tags = &mut self.tags[base..base + self.ways];
        if tags[0] == number {
            return Some(&mut self.values[base]);
        }
        let place = tags.iter().position(|&tag| tag == number)?;
        make_newest(&mut tags[..=place]);
        make_newest(&mut self.values[base..=base + place]);
        Some(&mut self.values[base])
    }

    /// Finds a number and leaves the order alone.
    #[inline]
    pub fn peek(&self, number: u64) -> Option<&V> {
        let base = self.base(number);
        let place = self.tags[base..base + self.ways].iter().position(|&tag| tag == number)?;
        Some(&self.values[base + place])
    }

    /// Finds a number, leaves the order alone, and lets its value be changed.
    pub fn peek_mut(&mut self, number: u64) -> Option<&mut V> {
        let base = self.base(number);
        let place = self.tags[base..base + self.ways].iter().position(|&tag| tag == number)?;
        Some(&mut self.values[base + place])
    }

    /// Puts a number that is not held in as the newest; returns what had to leave.
    #[inline]
    pub fn insert(&mut self, number: u64, value: V) -> Option<(u64, V)> {
        let base = self.base(number);
        let last = base + self.ways - 1;
        let left = (self.tags[last], self.values[last]);
        make_newest(&mut self.tags[base..=last]);
        make_newest(&mut self.values[base..=last]);
        self.tags[base] = number;
        self.values[base] = value;
        (left.0 != EMPTY).then_some(left)
    }
}

/// Moves the last to the front. Sets are short, so a plain loop beats a call to move memory.
#[inline]
fn make_newest<T: Copy>(places: &mut [T]) {
    let Some(&newest) = places.last() else { return };
    let mut carried = newest;
    for place in places.iter_mut() {
        std::mem::swap(place, &mut carried);
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
