//! Stores between execution and the cache, and loads that meet them there.
//!
//! A store's line is asked for as soon as its address is known; it is written in program order
//! after the store has retired. Which store a load depends on is known without error.

/// Places for stores by address; more than any store queue holds.
const PLACES: usize = 1024;
/// Bytes a place stands for, as a power of two.
const GRAIN_SHIFT: u32 = 3;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    grain: u64,
    /// When the data is there.
    data: u64,
    /// When it is written to the cache.
    written: u64,
    /// The store's number.
    sequence: u64,
    /// Which bytes of the grain were written.
    bytes: u8,
    /// How its address is spelt.
    spelling: u16,
}

/// What a load met in the store queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meeting {
    /// The data is there at a time, from a store whose address is spelt in some way.
    Forwarded(u64, u64, u16),
    /// Only part of it is: the load waits until the store is written.
    Blocked(u64, u64),
}

/// The stores in flight.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    entries: Vec<Entry>,
    /// The cycle of the latest write to the cache, and writes in it.
    cycle: u64,
    writes: u64,
}

/// The grains that an access touches, with the bytes of each.
fn grains(address: u64, size: u64) -> impl Iterator<Item = (u64, u8)> {
    let from = address & 7;
    let end = from + size.clamp(1, 64);
    (0..end.div_ceil(8)).map(move |k| {
        let first = if k == 0 { from } else { 0 };
        let last = (end - 8 * k).min(8);
        let mask = ((1_u32 << last) - (1 << first)) as u8;
        ((address >> GRAIN_SHIFT).wrapping_add(k), mask)
    })
}

impl Stores {
    pub(crate) fn new() -> Stores {
        Stores { entries: vec![Entry::default(); PLACES], cycle: 0, writes: 0 }
    }

    fn place(grain: u64) -> usize {
        (grain ^ (grain >> 10)) as usize & (PLACES - 1)
    }

    /// When a retired store is written, its line being there from `line`.
    #[inline]
    pub(crate) fn write(&mut self, per_cycle: u64, retired: u64, line: u64) -> u64 {
        let from = (retired + 1).max(line);
        if from > self.cycle {
            self.cycle = from;
            self.writes = 0;
        } else if self.writes >= per_cycle {
            self.cycle += 1;
            self.writes = 0;
        }
        self.writes += 1;
        self.cycle
    }

    /// Remembers a store for the loads after it.
    #[inline]
    pub(crate) fn remember(
        &mut self,
        address: u64,
        size: u64,
        data: u64,
        written: u64,
        sequence: u64,
        spelling: u16,
    ) {
        for (grain, bytes) in grains(address, size) {
            self.entries[Stores::place(grain)] =
                Entry { grain, data, written, sequence, bytes, spelling };
        }
    }

    /// What a load that issues at a time meets.
    #[inline]
    pub(crate) fn meet(&self, address: u64, size: u64, at: u64) -> Option<Meeting> {
        let first = &self.entries[Stores::place(address >> GRAIN_SHIFT)];
        let is_within_grain = (address & 7) + size <= 8;
        if is_within_grain && (first.grain != address >> GRAIN_SHIFT || first.written <= at) {
            return None;
        }
        self.meet_slowly(address, size, at)
    }

    #[inline(never)]
    fn meet_slowly(&self, address: u64, size: u64, at: u64) -> Option<Meeting> {
        let (mut data, mut written, mut sequence, mut spelling) = (0, 0, 0, 0);
        let (mut met, mut whole) = (false, true);
        for (grain, bytes) in grains(address, size) {
            let entry = &self.entries[Stores::place(grain)];
            let overlaps = entry.grain == grain && entry.written > at && entry.bytes & bytes != 0;
            if overlaps {
                data = data.max(entry.data);
                written = written.max(entry.written);
                whole &= entry.bytes & bytes == bytes && (!met || entry.sequence == sequence);
                sequence = sequence.max(entry.sequence);
                spelling = entry.spelling;
                met = true;
            } else {
                whole = false;
            }
        }
        match (met, whole) {
            (false, _) => None,
            (true, true) => Some(Meeting::Forwarded(data, sequence, spelling)),
            (true, false) => Some(Meeting::Blocked(written, sequence)),
        }
    }

    /// When everything retired so far is written.
    pub(crate) fn drained(&self) -> u64 {
        self.cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_covered_load_is_forwarded_and_a_partly_covered_one_is_blocked() {
        let mut stores = Stores::new();
        stores.remember(0x1000, 8, 50, 100, 7, 3);
        assert_eq!(stores.meet(0x1000, 8, 20), Some(Meeting::Forwarded(50, 7, 3)));
        assert_eq!(stores.meet(0x1004, 4, 20), Some(Meeting::Forwarded(50, 7, 3)));
        assert_eq!(stores.meet(0x1004, 8, 20), Some(Meeting::Blocked(100, 7)));
        assert_eq!(stores.meet(0x1008, 8, 20), None);
        assert_eq!(stores.meet(0x1000, 8, 100), None);
        stores.remember(0x2000, 32, 60, 100, 8, 3);
        assert_eq!(stores.meet(0x2010, 16, 20), Some(Meeting::Forwarded(60, 8, 3)));
        stores.remember(0x2018, 4, 70, 100, 9, 3);
        assert_eq!(stores.meet(0x2010, 16, 20), Some(Meeting::Blocked(100, 9)));
    }

    #[test]
    fn writes_keep_order_and_rate() {
        let mut stores = Stores::new();
        let times: Vec<u64> = (0..5).map(|_| stores.write(2, 10, 0)).collect();
        assert_eq!(times, [11, 11, 12, 12, 13]);
        assert_eq!(stores.write(2, 20, 400), 400);
        assert_eq!(stores.write(2, 21, 0), 400);
    }
}
