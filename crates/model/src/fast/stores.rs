//! Stores between execution and the cache, and loads that meet them there.
//!
//! A store's line is asked for as soon as its address is known; it is written in program order
//! after the store has retired. When that address was known is remembered, for
//! machines whose loads may go ahead without knowing it.
//!
//! ```text
//! newest   by place of a grain -> the latest store there
//! log      a ring of stores, each with the one before it at the same place
//! ```
//!
//! Stores are written in order, so once the newest of a place is written all of them are: most
//! loads ask once.

use super::group::WaitingStore;
use crate::core::Writing;

/// Places for stores by address; more than any store queue holds.
const PLACES: usize = 1024;
/// Stores remembered; a power of two, and more than are ever in flight.
const LOG: usize = 4096;
/// Bytes a place stands for, as a power of two.
const GRAIN_SHIFT: u32 = 3;

/// A store's share of one grain.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    grain: u64,
    /// When the data is there.
    data: u64,
    /// When it is written to the cache.
    written: u64,
    /// The store's number.
    sequence: u64,
    /// The number in the log of the store before it at the same place.
    before: u64,
    /// Which bytes of the grain were written.
    bytes: u8,
    /// Where the store begins, if renaming may pass its value on; `NOT_PLAIN` otherwise.
    start: u64,
    /// When its address was known.
    addressed: u64,
}

/// No place where a store that renaming may pass on could begin: none is at the very last byte.
const NOT_PLAIN: u64 = u64::MAX;

/// The latest store at a place.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    /// When it is written to the cache.
    written: u64,
    /// Its number in the log.
    number: u64,
}

/// What a load met in the store queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meeting {
    /// The number of the store.
    pub(crate) store: u64,
    /// When its address was known.
    pub(crate) addressed: u64,
    pub(crate) data: Data,
}

/// When a load has the data of a store that it met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Data {
    /// It is there at a time; whether renaming may join the two.
    Forwarded(u64, bool),
    /// Only part of it is: the load waits until the store is written.
    Blocked(u64),
}

/// The stores in flight.
#[derive(Clone, Debug)]
pub(crate) struct Stores {
    newest: Vec<Newest>,
    /// Made with the first store: a schedule has none, and would pay for the room.
    log: Vec<Entry>,
    /// Numbers given in the log; the first is 1.
    logged: u64,
    /// The cycle of the latest write to the cache, writes in it, and where they go.
    cycle: u64,
    writes: u64,
    place: u64,
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
        Stores {
            newest: vec![Newest::default(); PLACES],
            log: Vec::new(),
            logged: 0,
            cycle: 0,
            writes: 0,
            place: 0,
        }
    }

    fn place(grain: u64) -> usize {
        (grain ^ (grain >> 10)) as usize & (PLACES - 1)
    }

    /// When a store may be written that retired at a time and has its line from `line` on.
    #[inline]
    pub(crate) fn write(
        &mut self,
        writing: &Writing,
        (address, size): (u64, u64),
        retired: u64,
        line: u64,
    ) -> u64 {
        let from = (retired + 1).max(line);
        let place = writing.place(address);
        let is_twice = writing.is_twice(address, size);
        let is_alone = is_twice && writing.halves_go_alone();
        if from > self.cycle {
            self.cycle = from;
            self.writes = 0;
        } else if self.writes >= writing.per_cycle || place != self.place || is_alone {
            self.cycle += 1;
            self.writes = 0;
        }
        self.place = place;
        self.writes += 1;
        if is_alone {
            self.cycle += 1;
            self.writes = writing.per_cycle;
        } else if is_twice {
            self.write_second_half(writing);
        }
        self.cycle
    }

    /// The other half of a store, beside the first where there is room.
    fn write_second_half(&mut self, writing: &Writing) {
        if self.writes >= writing.per_cycle {
            self.cycle += 1;
            self.writes = 0;
        }
        self.writes += 1;
    }

    /// Remembers a store for the loads after it.
    #[inline]
    pub(crate) fn remember(&mut self, store: &WaitingStore, written: u64) {
        if self.log.is_empty() {
            self.log = vec![Entry::default(); LOG];
        }
        let &WaitingStore { address, data, sequence, addressed, .. } = store;
        let start = if store.is_plain { address } else { NOT_PLAIN };
        for (grain, bytes) in grains(address, store.size) {
            self.logged += 1;
            let newest = &mut self.newest[Stores::place(grain)];
            let before = newest.number;
            *newest = Newest { written, number: self.logged };
            self.log[self.logged as usize & (LOG - 1)] =
                Entry { grain, data, written, sequence, before, bytes, start, addressed };
        }
    }

    /// What a load that issues at a time meets.
    #[inline]
    pub(crate) fn meet(&self, address: u64, size: u64, at: u64) -> Option<Meeting> {
        let is_within_grain = (address & 7) + size <= 8;
        let first = &self.newest[Stores::place(address >> GRAIN_SHIFT)];
        if is_within_grain && first.written <= at {
            return None;
        }
        self.meet_slowly(address, size, at)
    }

    /// The latest store in flight that wrote any of some bytes of a grain.
    fn latest(&self, grain: u64, bytes: u8, at: u64) -> Option<&Entry> {
        let mut number = self.newest[Stores::place(grain)].number;
        while number > 0 && number + LOG as u64 > self.logged {
            let entry = &self.log[number as usize & (LOG - 1)];
            if entry.written <= at {
                return None;
            }
            if entry.grain == grain && entry.bytes & bytes != 0 {
                return Some(entry);
            }
            number = entry.before;
        }
        None
    }

    /// A load takes its value from the latest store that wrote any of its bytes, if that store
    /// wrote them all; otherwise it waits for that store.
    #[inline(never)]
    fn meet_slowly(&self, address: u64, size: u64, at: u64) -> Option<Meeting> {
        let latest = grains(address, size)
            .filter_map(|(grain, bytes)| self.latest(grain, bytes, at))
            .max_by_key(|entry| entry.sequence)?;
        let is_whole = grains(address, size).all(|(grain, bytes)| {
            let entry = self.latest(grain, bytes, at);
            entry.is_some_and(|e| e.sequence == latest.sequence && e.bytes & bytes == bytes)
        });
        let data = match is_whole {
            true => Data::Forwarded(latest.data, latest.start == address),
            false => Data::Blocked(latest.written),
        };
        Some(Meeting { store: latest.sequence, addressed: latest.addressed, data })
    }

    /// When everything retired so far is written.
    pub(crate) fn drained(&self) -> u64 {
        self.cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{Settings, Shape};
    use crate::machine::Machine;

    /// Remembers a store whose data is there at one time and is written at another; its address was
    /// known ten cycles before its data.
    fn remember(
        stores: &mut Stores,
        (address, size): (u64, u64),
        (data, written): (u64, u64),
        sequence: u64,
    ) {
        let addressed = data - 10;
        let is_plain = size <= 8;
        let store = WaitingStore { address, size, line: 0, data, sequence, is_plain, addressed };
        stores.remember(&store, written);
    }

    fn forwarded(data: u64, store: u64, joins: bool) -> Option<Meeting> {
        let addressed = data - 10;
        Some(Meeting { store, addressed, data: Data::Forwarded(data, joins) })
    }

    fn blocked(written: u64, store: u64, addressed: u64) -> Option<Meeting> {
        Some(Meeting { store, addressed, data: Data::Blocked(written) })
    }

    #[test]
    fn a_covered_load_is_forwarded_and_a_partly_covered_one_is_blocked() {
        let mut stores = Stores::new();
        remember(&mut stores, (0x1000, 8), (50, 100), 7);
        assert_eq!(stores.meet(0x1000, 8, 20), forwarded(50, 7, true));
        // Not from where the store begins.
        assert_eq!(stores.meet(0x1004, 4, 20), forwarded(50, 7, false));
        assert_eq!(stores.meet(0x1004, 8, 20), blocked(100, 7, 40));
        assert_eq!(stores.meet(0x1008, 8, 20), None);
        assert_eq!(stores.meet(0x1000, 8, 100), None);
        remember(&mut stores, (0x2000, 32), (60, 100), 8);
        assert_eq!(stores.meet(0x2000, 16, 20), forwarded(60, 8, false));
        assert_eq!(stores.meet(0x2010, 16, 20), forwarded(60, 8, false));
        remember(&mut stores, (0x2018, 4), (70, 100), 9);
        assert_eq!(stores.meet(0x2010, 16, 20), blocked(100, 9, 60));
    }

    #[test]
    fn a_younger_store_beside_it_does_not_hide_a_store() {
        let mut stores = Stores::new();
        remember(&mut stores, (0x1000, 4), (50, 100), 7);
        remember(&mut stores, (0x1004, 4), (60, 101), 9);
        assert_eq!(stores.meet(0x1000, 4, 20), forwarded(50, 7, true));
        assert_eq!(stores.meet(0x1004, 4, 20), forwarded(60, 9, true));
        assert_eq!(stores.meet(0x1000, 8, 20), blocked(101, 9, 50));
        // Once the older is written, its bytes come from the cache.
        assert_eq!(stores.meet(0x1000, 4, 100), None);
    }

    #[test]
    fn writes_keep_order_and_rate() {
        let mut stores = Stores::new();
        let zen4 = Shape::new(&Machine::named("zen4").unwrap(), Settings::default()).writing;
        let mut write =
            |address: u64, retired, line| stores.write(&zen4, (address, 8), retired, line);
        let times: Vec<u64> = (0..5).map(|k| write(8 * (k % 2), 10, 0)).collect();
        assert_eq!(times, [11, 11, 12, 12, 13]);
        assert_eq!(write(0, 20, 400), 400);
        assert_eq!(write(0, 21, 0), 400);
        // Another line does not go along, and what crosses 32 bytes takes two cycles alone.
        assert_eq!((write(64, 21, 0), write(0, 21, 0)), (401, 402));
        assert_eq!((write(28, 21, 0), write(0, 21, 0)), (404, 405));
    }
}
