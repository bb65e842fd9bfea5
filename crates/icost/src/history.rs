//! What is kept of the latest micro-ops for those that come after them.

/// As many micro-ops as an edge may span.
pub(crate) const SPAN: usize = 1 << 12;
/// How much larger an ideal window is. Where that is more than an edge may span, it has no end.
pub(crate) const IDEAL_WINDOW: u32 = 20;

/// What is kept of a life.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Past {
    pub(crate) sequence: u64,
    /// When it could have been dispatched as far as fetch is concerned.
    pub(crate) arrived: u64,
    pub(crate) dispatched: u64,
    pub(crate) issued: u64,
    pub(crate) completed: u64,
    pub(crate) committed: u64,
}

/// The latest micro-ops.
#[derive(Clone, Debug)]
pub(crate) struct History {
    ring: Vec<Past>,
    count: u64,
    slots: Amount,
    loads: Amount,
}

/// Places that may be taken within a span: some micro-ops take two, most of them one or none.
const PLACES: usize = 2 * SPAN;

/// What all micro-ops took so far, and who took each of the latest places.
#[derive(Clone, Debug)]
struct Amount {
    all: u64,
    /// The youngest micro-op that took a place or would have begun with it, by the place's number.
    takers: Box<[u32; PLACES]>,
}

impl Amount {
    fn new() -> Amount {
        Amount { all: 0, takers: Box::new([0; PLACES]) }
    }

    #[inline]
    fn push(&mut self, at: u64, amount: u32) {
        for place in self.all..self.all + u64::from(amount.max(1)) {
            self.takers[place as usize & (PLACES - 1)] = at as u32;
        }
        self.all += u64::from(amount);
    }

    /// The distance to the youngest micro-op that, with all behind it, fills so many places; 0 if
    /// there is none in sight.
    #[inline]
    fn filled(&self, count: u64, enough: u32) -> u32 {
        let enough = u64::from(enough);
        if enough > self.all || enough >= PLACES as u64 || enough == 0 {
            return 0;
        }
        let taker = self.takers[(self.all - enough) as usize & (PLACES - 1)];
        // Numbers may come round; distances do not.
        let distance = (count as u32).wrapping_sub(taker);
        if distance < SPAN as u32 { distance } else { 0 }
    }
}

impl History {
    pub(crate) fn new() -> History {
        let ring = vec![Past::default(); SPAN];
        History { ring, count: 0, slots: Amount::new(), loads: Amount::new() }
    }

    /// The micro-op so many before the next.
    #[inline]
    pub(crate) fn before(&self, distance: u32) -> Option<&Past> {
        let distance = u64::from(distance);
        let is_near = distance > 0 && distance <= self.count.min(SPAN as u64 - 1);
        is_near.then(|| &self.ring[(self.count - distance) as usize & (SPAN - 1)])
    }

    /// How many before the next the micro-op with a number is; 0 if it is out of sight.
    #[inline]
    pub(crate) fn distance(&self, sequence: u64) -> u32 {
        let last = self.before(1).map_or(0, |past| past.sequence);
        let back = last.wrapping_sub(sequence).wrapping_add(1);
        let found = u32::try_from(back).ok().and_then(|back| self.before(back));
        found.filter(|past| past.sequence == sequence).map_or(0, |_| back as u32)
    }

    /// Keeps a micro-op of so many slots.
    pub(crate) fn push(&mut self, past: Past, slots: u8, is_load: bool) {
        self.ring[self.count as usize & (SPAN - 1)] = past;
        self.slots.push(self.count, u32::from(slots));
        self.loads.push(self.count, u32::from(is_load));
        self.count += 1;
    }
}

/// What an amount is counted in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counted {
    Slots,
    Loads,
}

/// The youngest micro-op that, with all behind it, fills a number of places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    places: u32,
    counted: Counted,
}

impl Reach {
    /// So many slots.
    pub(crate) fn slots(places: u32) -> Reach {
        Reach { places, counted: Counted::Slots }
    }

    /// So many loads.
    pub(crate) fn loads(places: u32) -> Reach {
        Reach { places, counted: Counted::Loads }
    }

    /// The distance to the youngest micro-op that has to leave before a new one enters; 0 if there
    /// is none in sight.
    #[inline]
    pub(crate) fn full(self, past: &History) -> u32 {
        self.reach(self.places, past)
    }

    /// The distance to the youngest micro-op that cannot share a cycle with so many more slots; 0
    /// if there is none in sight.
    #[inline]
    pub(crate) fn beside(self, more: u8, past: &History) -> u32 {
        let left = (self.places + 1).saturating_sub(u32::from(more));
        self.reach(left.max(1), past)
    }

    #[inline]
    fn reach(self, enough: u32, past: &History) -> u32 {
        let amount = match self.counted {
            Counted::Slots => &past.slots,
            Counted::Loads => &past.loads,
        };
        amount.filled(past.count, enough)
    }
}

/// What was last known of each key, as far as memory reaches: a newer key takes the place of an
/// older one that falls on it.
#[derive(Clone, Debug)]
pub(crate) struct Latest<T> {
    places: Vec<Option<(u64, T)>>,
}

/// Keys that are kept at a time.
const KEYS: usize = 1 << 13;

impl<T: Copy> Latest<T> {
    pub(crate) fn new() -> Latest<T> {
        Latest { places: vec![None; KEYS] }
    }

    fn place(key: u64) -> usize {
        // A multiplier that spreads neighbouring keys and far ones alike.
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as usize & (KEYS - 1)
    }

    pub(crate) fn get(&self, key: u64) -> Option<T> {
        self.places[Latest::<T>::place(key)]
            .filter(|(held, _)| *held == key)
            .map(|(_, value)| value)
    }

    pub(crate) fn put(&mut self, key: u64, value: T) {
        self.places[Latest::<T>::place(key)] = Some((key, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by counting back.
    fn counted(slots: &[u8], enough: u32) -> u32 {
        let near = slots.len().min(SPAN - 1);
        let mut sum = 0;
        for distance in 1..=near {
            sum += u32::from(slots[slots.len() - distance]);
            if sum >= enough {
                return distance as u32;
            }
        }
        0
    }

    #[test]
    fn a_reach_is_what_counting_back_gives() {
        let mut past = History::new();
        let mut slots = Vec::new();
        for k in 0..9_000_u32 {
            if k < 70 || k % 501 == 0 {
                for places in [1, 4, 6, 64, 320, 1280, 5000] {
                    assert_eq!(
                        Reach::slots(places).full(&past),
                        counted(&slots, places),
                        "{k} {places}"
                    );
                }
                assert_eq!(Reach::slots(6).beside(2, &past), counted(&slots, 5), "{k}");
            }
            let next = [1, 1, 0, 2, 1, 0, 0, 1][(k * 7 / 3 % 8) as usize];
            past.push(Past::default(), next, false);
            slots.push(next);
        }
    }
}
