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

/// What all micro-ops took so far, and what all before each of the latest did. Only differences
/// count, so that the numbers may come round.
#[derive(Clone, Debug)]
struct Amount {
    all: u32,
    before: Box<[u32; SPAN]>,
}

impl Amount {
    fn new() -> Amount {
        Amount { all: 0, before: Box::new([0; SPAN]) }
    }

    #[inline]
    fn push(&mut self, at: u64, amount: u32) {
        self.before[at as usize & (SPAN - 1)] = self.all;
        self.all = self.all.wrapping_add(amount);
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
///
/// Micro-ops carry what all before them took, so that nothing moves but one finger, forwards.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    places: u32,
    counted: Counted,
    /// The number of that micro-op.
    at: u64,
}

impl Reach {
    /// So many slots.
    pub(crate) fn slots(places: u32) -> Reach {
        Reach { places, counted: Counted::Slots, at: 0 }
    }

    /// So many loads.
    pub(crate) fn loads(places: u32) -> Reach {
        Reach { places, counted: Counted::Loads, at: 0 }
    }

    /// The distance to the youngest micro-op that has to leave before a new one enters; 0 if there
    /// is none in sight.
    #[inline]
    pub(crate) fn full(&mut self, past: &History) -> u32 {
        self.reach(self.places, past)
    }

    /// The distance to the youngest micro-op that cannot share a cycle with so many more slots; 0
    /// if there is none in sight.
    #[inline]
    pub(crate) fn beside(&mut self, more: u8, past: &History) -> u32 {
        let left = (self.places + 1).saturating_sub(u32::from(more));
        self.reach(left.max(1), past)
    }

    #[inline]
    fn reach(&mut self, enough: u32, past: &History) -> u32 {
        let amount = match self.counted {
            Counted::Slots => &past.slots,
            Counted::Loads => &past.loads,
        };
        if past.count - self.at >= SPAN as u64 {
            self.at = past.count - SPAN as u64 + 1;
        }
        // Places from a micro-op to the last.
        let from = |at: u64| match at < past.count {
            true => amount.all.wrapping_sub(amount.before[at as usize & (SPAN - 1)]),
            false => 0,
        };
        while from(self.at + 1) >= enough {
            self.at += 1;
        }
        if from(self.at) >= enough { (past.count - self.at) as u32 } else { 0 }
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
