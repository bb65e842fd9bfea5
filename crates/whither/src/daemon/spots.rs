//! Counts by place, sixteen bytes each.
//!
//! A daemon adds tens of thousands of entries a second here, each at a place of its own in memory.
//! They wait until a few hundred can be added in one go: then the processor looks for many places
//! at once instead of waiting for each in turn.
//!
//! ```text
//! add ─► waiting ─► slots: | offset u64 | image 24 bits, event 8 | count u32 |  open addressing
//! ```

use store::Places;
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

    /// Everything by rising image, event and offset, each once; empty afterwards. Sorted where it
    /// lies: [`Spots::put_back`] or [`Spots::reuse`] takes the memory again.
    pub(super) fn take(&mut self) -> Sorted {
        self.settle();
        let mut slots = std::mem::take(&mut self.slots);
        let room = slots.len();
        slots.retain(|slot| slot.count > 0);
        slots.sort_unstable_by_key(order);
        self.used = 0;
        Sorted { slots, room }
    }

    /// Counts beyond what a slot holds; they are not among those that [`Spots::take`] gives.
    pub(super) fn take_over(&mut self) -> impl Iterator<Item = (Spot, Count)> {
        std::mem::take(&mut self.over).into_iter().map(|slot| counted(&slot))
    }

    /// Counts that could not be kept are counted again.
    pub(super) fn put_back(&mut self, sorted: Sorted) {
        self.waiting.extend(sorted.slots);
        self.settle();
        self.waiting.shrink_to(BLOCK);
    }

    /// The memory is kept: it will be needed again, and fresh pages cost more than sorting.
    pub(super) fn reuse(&mut self, sorted: Sorted) {
        if self.slots.is_empty() {
            self.slots = sorted.slots;
            self.clear(sorted.room);
        }
    }

    fn clear(&mut self, room: usize) {
        self.slots.clear();
        self.slots.resize(room, Slot::default());
        self.used = 0;
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.over.clear();
        if self.used > 0 {
            self.clear(self.slots.len());
        }
    }

    /// Adds those that wait.
    fn settle(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        // Three quarters full at most.
        while (self.used + waiting.len()) * 4 > self.slots.len() * 3 {
            self.grow();
        }
        // One round of looking before any deciding: nothing hangs on what it finds, so that the
        // processor waits for many places in memory at once.
        let seen = waiting.iter().fold(0, |seen, slot| seen ^ self.first(slot.offset, slot.what));
        std::hint::black_box(seen);
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

    /// Where the search for a spot begins.
    #[inline]
    fn home(&self, offset: u64, what: u32) -> usize {
        let mixed = offset.wrapping_add(u64::from(what).wrapping_mul(WHAT_FACTOR));
        let mixed = mixed.wrapping_mul(OFFSET_FACTOR);
        (mixed >> 32) as usize & self.slots.len().wrapping_sub(1)
    }

    /// The count of the first slot that a spot might be in.
    #[inline]
    fn first(&self, offset: u64, what: u32) -> u32 {
        self.slots.get(self.home(offset, what)).map_or(0, |slot| slot.count)
    }

    /// Where a spot is, or where it would go. There is always an empty slot.
    #[inline]
    fn place(&self, offset: u64, what: u32) -> usize {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = self.home(offset, what);
        while let Some(slot) = self.slots.get(place) {
            if slot.count == 0 || (slot.offset == offset && slot.what == what) {
                break;
            }
            place = (place + 1) & mask;
        }
        place
    }
}

/// What [`Spots::take`] gives.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    slots: Vec<Slot>,
    /// Slots of the table that they come from.
    room: usize,
}

impl Places for Sorted {
    fn len(&self) -> usize {
        self.slots.len()
    }

    fn place(&self, row: usize) -> (Spot, Count) {
        counted(&self.slots.get(row).copied().unwrap_or_default())
    }
}

/// By image, event and offset, in one number.
fn order(slot: &Slot) -> u128 {
    u128::from(slot.what) << 64 | u128::from(slot.offset)
}

fn counted(slot: &Slot) -> (Spot, Count) {
    (spot(slot), Count(u64::from(slot.count)))
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

    fn rows(sorted: &Sorted) -> Vec<(Spot, Count)> {
        (0..sorted.len()).map(|row| sorted.place(row)).collect()
    }

    #[test]
    fn counts_are_those_of_an_ordinary_map_by_image_event_and_offset() {
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let mut spots = Spots::default();
        let mut expected: BTreeMap<Spot, Count> = BTreeMap::new();
        for round in 0..4 {
            for _ in 0..40_000 {
                let spot = at(next(600) as u32, 0x40_0000 + 4 * next(50), next(3) as u16);
                let count = next(9) as u32 + 1;
                spots.add(spot, count);
                *expected.entry(spot).or_default() += Count(u64::from(count));
            }
            assert!(spots.contains(*expected.keys().next().unwrap()));
            assert!(!spots.contains(at(601, 0, 0)));
            assert_eq!(spots.len(), expected.len());
            let mut rows_expected: Vec<(Spot, Count)> =
                expected.iter().map(|(&spot, &count)| (spot, count)).collect();
            rows_expected.sort_by_key(|(spot, _)| (spot.image, spot.event, spot.offset));
            let sorted = spots.take();
            assert_eq!(rows(&sorted), rows_expected);
            assert_eq!(spots.len(), 0);
            // Every other time they cannot be kept, and come again with the next.
            if round % 2 == 0 {
                spots.put_back(sorted);
                assert_eq!(spots.len(), expected.len());
            } else {
                spots.reuse(sorted);
                expected.clear();
            }
        }
    }

    #[test]
    fn a_count_beyond_a_slot_is_kept_whole() {
        let mut spots = Spots::default();
        let spot = at(3, u64::MAX, 255);
        (0..3).for_each(|_| spots.add(spot, u32::MAX));
        let sorted = spots.take();
        let all: Vec<(Spot, Count)> = spots.take_over().chain(rows(&sorted)).collect();
        assert!(all.iter().all(|(held, _)| *held == spot));
        let sum: Count = all.iter().map(|(_, count)| *count).sum();
        assert_eq!(sum, Count(3 * u64::from(u32::MAX)));
    }
}
