//! Counts by place, sixteen bytes each.
//!
//! A daemon adds tens of thousands of entries a second here, each at a place of its own in memory.
//! They wait until a few hundred can be added in one go: then the processor looks for many places
//! at once instead of waiting for each in turn.
//!
//! ```text
//! add ─► waiting ─► slots: | offset u64 | image 24 bits, event 8 | count u32 |  open addressing
//! ```

use vocab::{Count, EventId, ImageId, Offset, Spot};

/// Entries that are added in one go.
const BLOCK: usize = 512;
const FEWEST_SLOTS: usize = 1 << 12;
const EVENT_BITS: u32 = 8;
/// The golden ratio's, and another odd number.
const OFFSET_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
const WHAT_FACTOR: u64 = 0xc2b2_ae3d_27d4_eb4f;

/// One place; a count of 0 is an empty slot.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    offset: u64,
    what: u32,
    count: u32,
}

/// Counts by spot.
#[derive(Debug, Default)]
pub(super) struct Spots {
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    used: usize,
    waiting: Vec<Slot>,
    /// Counts that no longer fit into their slots.
    over: Vec<Slot>,
}

impl Spots {
    /// Adds samples at a spot.
    pub(super) fn add(&mut self, spot: Spot, count: u32) {
        self.waiting.push(Slot { offset: spot.offset.0, what: what(spot), count });
        if self.waiting.len() >= BLOCK {
            self.settle();
        }
    }

    /// Distinct spots, or a few more: some that wait may be known.
    pub(super) fn len(&self) -> usize {
        self.used + self.waiting.len()
    }

    /// Whether a spot is counted already.
    pub(super) fn contains(&mut self, spot: Spot) -> bool {
        self.settle();
        let (offset, what) = (spot.offset.0, what(spot));
        let place = self.place(offset, what);
        self.slots.get(place).is_some_and(|slot| slot.count > 0)
    }

    /// Everything by rising spot, each once; empty afterwards.
    pub(super) fn take(&mut self) -> Vec<(Spot, Count)> {
        self.settle();
        let counted = self.slots.iter().filter(|slot| slot.count > 0).chain(&self.over);
        let mut all: Vec<(Spot, Count)> = Vec::with_capacity(self.used + self.over.len());
        all.extend(counted.map(|slot| (spot(slot), Count(u64::from(slot.count)))));
        *self = Spots { waiting: std::mem::take(&mut self.waiting), ..Spots::default() };
        all.sort_unstable_by_key(|&(spot, _)| spot);
        all.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { Count::ZERO };
            same
        });
        all
    }

    /// Adds those that wait.
    fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        // Three quarters full at most.
        while (self.used + waiting.len()) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        for slot in &waiting {
            self.put(*slot);
        }
        self.waiting = waiting;
        self.waiting.clear();
    }

    fn grow(&mut self) {
        let slots = vec![Slot::default(); (self.slots.len() * 2).max(FEWEST_SLOTS)];
        let old = std::mem::replace(&mut self.slots, slots);
        self.used = 0;
        old.into_iter().filter(|slot| slot.count > 0).for_each(|slot| self.put(slot));
    }

    #[inline]
    fn put(&mut self, new: Slot) {
        let place = self.place(new.offset, new.what);
        let Some(slot) = self.slots.get_mut(place) else { return };
        if slot.count == 0 {
            *slot = new;
            self.used += 1;
        } else if let Some(sum) = slot.count.checked_add(new.count) {
            slot.count = sum;
        } else {
            self.over.push(std::mem::replace(slot, new));
        }
    }

    /// Where a spot is, or where it would go. There is always an empty slot.
    #[inline]
    fn place(&self, offset: u64, what: u32) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let mixed = offset.wrapping_add(u64::from(what).wrapping_mul(WHAT_FACTOR));
        let mixed = mixed.wrapping_mul(OFFSET_FACTOR);
        let mut place = (mixed >> 32) as usize & mask;
        while let Some(slot) = self.slots.get(place) {
            if slot.count == 0 || (slot.offset == offset && slot.what == what) {
                break;
            }
            place = (place + 1) & mask;
        }
        place
    }
}

fn what(spot: Spot) -> u32 {
    spot.image.0 << EVENT_BITS | u32::from(spot.event.0)
}

fn spot(slot: &Slot) -> Spot {
    Spot {
        image: ImageId(slot.what >> EVENT_BITS),
        offset: Offset(slot.offset),
        event: EventId((slot.what & ((1 << EVENT_BITS) - 1)) as u16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn at(image: u32, offset: u64, event: u16) -> Spot {
        Spot { image: ImageId(image), offset: Offset(offset), event: EventId(event) }
    }

    #[test]
    fn counts_are_those_of_an_ordinary_map_in_its_order() {
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut spots = Spots::default();
        for _ in 0..3 {
            let mut expected: BTreeMap<Spot, Count> = BTreeMap::new();
            for _ in 0..40_000 {
                let spot = at(next(600) as u32, 0x40_0000 + 4 * next(50), next(3) as u16);
                let count = next(9) as u32 + 1;
                spots.add(spot, count);
                *expected.entry(spot).or_default() += Count(u64::from(count));
            }
            assert!(spots.contains(*expected.keys().next().unwrap()));
            assert!(!spots.contains(at(601, 0, 0)));
            assert_eq!(spots.len(), expected.len());
            assert_eq!(spots.take(), expected.into_iter().collect::<Vec<_>>());
            assert_eq!(spots.len(), 0);
        }
    }

    #[test]
    fn a_count_beyond_a_slot_is_kept_whole() {
        let mut spots = Spots::default();
        let spot = at(3, u64::MAX, 255);
        (0..3).for_each(|_| spots.add(spot, u32::MAX));
        assert_eq!(spots.take(), [(spot, Count(3 * u64::from(u32::MAX)))]);
    }
}
