//! What each set of a cache used last.
//!
//! To use the newest of a set once more changes nothing, and programs mostly do that. One look here
//! answers it where the cache itself would take four: hint, tag, value and order.
//!
//! ```text
//! cache, set 3:  newest 0x83 (dirty), then 0x43, 0xc3 ...      slot 3: 0x83, dirty
//! ```
//!
//! Whoever changes a set through the cache notes what it did here, else a slot would lie.

/// The newest of each set, with as much of its state as decides whether a use changes anything.
#[derive(Clone, Debug)]
pub(super) struct Newest<K> {
    slots: Vec<K>,
    mask: u64,
    none: K,
}

impl<K: Copy> Newest<K> {
    /// Of a cache of so many sets. Where they are no power of two one slot serves all: the last
    /// that was used is the newest of its set, whichever that is.
    pub(super) fn new(sets: u64, none: K) -> Newest<K> {
        let slots = if sets.is_power_of_two() { sets } else { 1 };
        Newest { slots: vec![none; slots as usize], mask: slots - 1, none }
    }

    /// What was noted last of a number's set.
    #[inline]
    pub(super) fn of(&self, number: u64) -> K {
        self.slots.get((number & self.mask) as usize).copied().unwrap_or(self.none)
    }

    /// The newest of a number's set is this from now on.
    #[inline]
    pub(super) fn note(&mut self, number: u64, key: K) {
        if let Some(slot) = self.slots.get_mut((number & self.mask) as usize) {
            *slot = key;
        }
    }
}
