//! One CPU's tables, seen from this process.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use perf::{Refusal, SharedArray};

use super::entry::Entry;
use super::geometry::{ENTRY_BYTES, Geometry, head};

/// What one half held when it was drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Times the handler was entered.
    pub entries: u64,
    /// Of those, samples that found no entry of theirs in the table.
    pub inserted: u64,
    /// Entries that fell into the spill.
    pub spilled: u64,
    /// Samples that fell out of a full spill.
    pub lost: u64,
    /// Samples handed out.
    pub samples: u64,
    /// Entries handed out: what reaches this process.
    pub handed: u64,
}

impl Drained {
    /// `entries = samples + lost`, exactly.
    pub fn adds_up(&self) -> bool {
        self.entries == self.samples + self.lost
    }

    /// Adds another CPU's or an earlier drain's.
    pub fn add(&mut self, other: &Drained) {
        self.entries += other.entries;
        self.inserted += other.inserted;
        self.spilled += other.spilled;
        self.lost += other.lost;
        self.samples += other.samples;
        self.handed += other.handed;
    }
}

/// The tables of one CPU.
#[derive(Debug)]
pub struct CpuTable {
    shared: SharedArray,
    geometry: Geometry,
}

impl CpuTable {
    /// Empty tables.
    pub fn new(geometry: Geometry) -> Result<CpuTable, Refusal> {
        let geometry = geometry.checked().map_err(|_| Refusal::NotUnderstood)?;
        Ok(CpuTable { shared: SharedArray::new(geometry.total_bytes())?, geometry })
    }

    /// For [`super::Handler`].
    pub fn raw_fd(&self) -> i32 {
        self.shared.raw_fd()
    }

    fn word(&self, byte: usize) -> Option<&AtomicU64> {
        self.shared.words().get(byte / 8)
    }

    fn read(&self, byte: usize) -> u64 {
        self.word(byte).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Times a handler has begun here, ever.
    pub fn begun(&self) -> u64 {
        self.read(head::BEGUN as usize)
    }

    /// How full the active spill is, as entries.
    pub fn spill_fill(&self) -> u64 {
        let half = self.read(head::ACTIVE as usize) & 1;
        self.read(self.counters(half as usize) + head::SPILLED as usize)
    }

    fn counters(&self, half: usize) -> usize {
        head::HALVES as usize + (half << head::HALF_SHIFT)
    }

    /// Turns handlers to the other half. [`CpuTable::drain`] then takes what they left.
    pub fn flip(&self) {
        if let Some(active) = self.word(head::ACTIVE as usize) {
            active.fetch_xor(1, Ordering::SeqCst);
        }
    }

    /// Waits until every handler that may work on the old half has ended. A handler takes a
    /// fraction of a microsecond, but a virtual CPU may be stopped inside one.
    fn wait_for_handlers(&self) {
        fence(Ordering::SeqCst);
        let begun = self.begun();
        let mut tries = 0;
        while self.read(head::ENDED as usize) < begun {
            tries += 1;
            match tries {
                0..100 => std::hint::spin_loop(),
                _ => std::thread::sleep(Duration::from_micros(50)),
            }
        }
    }

    /// Hands out everything of the half that is not active, and empties it.
    pub fn drain(&self, mut each: impl FnMut(Entry)) -> Drained {
        self.wait_for_handlers();
        let half = (self.read(head::ACTIVE as usize) & 1 ^ 1) as usize;
        let counters = self.counters(half);
        let counter = |offset: i16| match self.word(counters + offset as usize) {
            Some(word) => word.swap(0, Ordering::AcqRel),
            None => 0,
        };
        let mut drained = Drained {
            entries: counter(head::ENTRIES),
            inserted: counter(head::INSERTED),
            spilled: counter(head::SPILLED),
            lost: counter(head::LOST),
            ..Drained::default()
        };
        let table = self.geometry.table_at(half as u32);
        let spill = self.geometry.spill_at(half as u32);
        let spilled = (drained.spilled as u32).min(self.geometry.spill_entries) * ENTRY_BYTES;
        for (from, bytes) in [(table, self.geometry.table_bytes()), (spill, spilled)] {
            let range = (from / 8) as usize..((from + bytes) / 8) as usize;
            for place in self.shared.words().get(range).unwrap_or_default().chunks_exact(2) {
                if let Some(entry) = take(place) {
                    drained.samples += u64::from(entry.count);
                    drained.handed += 1;
                    each(entry);
                }
            }
        }
        drained
    }
}

/// The entry at a place, which is empty afterwards.
fn take(place: &[AtomicU64]) -> Option<Entry> {
    let [pc, rest] = place else { return None };
    let entry = Entry::unpack(pc.load(Ordering::Relaxed), rest.load(Ordering::Relaxed))?;
    pc.store(0, Ordering::Relaxed);
    rest.store(0, Ordering::Relaxed);
    Some(entry)
}
