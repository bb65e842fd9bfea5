//! One CPU's tables, seen from this process.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use perf::{Refusal, SharedArray};

use super::entry::Entry;
use super::geometry::{ENTRY_BYTES, Geometry, head};

/// What one half held when it was drained.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Drained {
    /// Samples of which the handler's own count says that they left with this drain or were lost:
    /// all it was entered for, less those that earlier drains took and those that stay in a table.
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

/// How much a drain takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taking {
    /// What fell out of the table. Entries that are hit again and again stay and go on counting.
    Spill,
    /// Everything.
    All,
}

/// The tables of one CPU.
#[derive(Debug)]
pub struct CpuTable {
    shared: SharedArray,
    geometry: Geometry,
    /// Samples of the active table that have left it through the spill or were lost.
    left: AtomicU64,
}

impl CpuTable {
    /// Empty tables.
    pub fn new(geometry: Geometry) -> Result<CpuTable, Refusal> {
        let geometry = geometry.checked().map_err(|_| Refusal::NotUnderstood)?;
        let shared = SharedArray::new(geometry.total_bytes())?;
        Ok(CpuTable { shared, geometry, left: AtomicU64::new(0) })
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

    /// Takes a counter that handlers do not write any more.
    fn take_counter(&self, byte: usize) -> u64 {
        self.word(byte).map_or(0, |word| word.swap(0, Ordering::AcqRel))
    }

    /// Times a handler has begun here, ever.
    pub fn begun(&self) -> u64 {
        self.read(head::BEGUN as usize)
    }

    /// Samples that were counted here and no drain has taken yet.
    pub fn waiting(&self) -> u64 {
        let entered = |half| self.read(counters(head::TABLES, half) + head::ENTRIES as usize);
        (entered(0) + entered(1)).saturating_sub(self.left.load(Ordering::Relaxed))
    }

    /// How full the active spill is, as entries.
    pub fn spill_fill(&self) -> u64 {
        let half = (self.read(head::ACTIVE as usize) >> 1 & 1) as usize;
        self.read(counters(head::SPILLS, half) + head::SPILLED as usize)
    }

    /// Turns handlers to the other spill, and for everything to the other table.
    /// [`CpuTable::drain`] then takes what they left.
    pub fn flip(&self, taking: Taking) {
        let bits = match taking {
            Taking::Spill => 0b10,
            Taking::All => 0b11,
        };
        if let Some(active) = self.word(head::ACTIVE as usize) {
            active.fetch_xor(bits, Ordering::SeqCst);
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

    /// Hands out what was flipped away from, and empties it.
    pub fn drain(&self, taking: Taking, mut each: impl FnMut(Entry)) -> Drained {
        self.wait_for_handlers();
        let idle = (self.read(head::ACTIVE as usize) ^ 0b11) as usize;
        let (table, spill) = (idle & 1, idle >> 1 & 1);
        let counter = |at: i16| self.take_counter(counters(head::SPILLS, spill) + at as usize);
        let mut drained = Drained {
            inserted: counter(head::INSERTED),
            spilled: counter(head::SPILLED),
            lost: counter(head::LOST),
            ..Drained::default()
        };
        let spilled_samples = counter(head::SPILLED_SAMPLES);
        let bytes = (drained.spilled as u32).min(self.geometry.spill_entries) * ENTRY_BYTES;
        self.hand_out(self.geometry.spill_at(spill as u32), bytes, &mut drained, &mut each);
        let left = spilled_samples + drained.lost;
        match taking {
            Taking::Spill => {
                self.left.fetch_add(left, Ordering::Relaxed);
                drained.entries = left;
            }
            Taking::All => {
                let from = self.geometry.table_at(table as u32);
                self.hand_out(from, self.geometry.table_bytes(), &mut drained, &mut each);
                let entered =
                    self.take_counter(counters(head::TABLES, table) + head::ENTRIES as usize);
                // What spills took before was entered into this same table.
                drained.entries = entered.wrapping_sub(self.left.swap(0, Ordering::Relaxed));
            }
        }
        drained
    }

    fn hand_out(&self, from: u32, bytes: u32, drained: &mut Drained, each: &mut impl FnMut(Entry)) {
        let range = (from / 8) as usize..((from + bytes) / 8) as usize;
        for place in self.shared.words().get(range).unwrap_or_default().chunks_exact(2) {
            if let Some(entry) = take(place) {
                drained.samples += u64::from(entry.count);
                drained.handed += 1;
                each(entry);
            }
        }
    }
}

/// Where the counters of a table or spill begin.
fn counters(area: i32, half: usize) -> usize {
    area as usize + (half << head::HALF_SHIFT)
}

/// The entry at a place, which is empty afterwards.
fn take(place: &[AtomicU64]) -> Option<Entry> {
    let [pc, rest] = place else { return None };
    let entry = Entry::unpack(pc.load(Ordering::Relaxed), rest.load(Ordering::Relaxed))?;
    pc.store(0, Ordering::Relaxed);
    rest.store(0, Ordering::Relaxed);
    Some(entry)
}
