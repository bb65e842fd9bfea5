//! The account that a modelled thread left.

use std::collections::BTreeMap;

use model::event::{Counts, Event, HAPPENING_FIRST, HAPPENINGS};

use super::{CHUNK_ROWS, ROW_WORDS};

/// What one static instruction cost, exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstructionRow {
    /// Its time, in ticks (`model::core::TICKS` a cycle).
    pub ticks: u64,
    /// How often it ran.
    pub runs: u64,
    happenings: [u64; HAPPENINGS],
}

impl InstructionRow {
    /// How often something happened to it.
    pub fn happenings(&self, event: Event) -> Option<u64> {
        event.happening().and_then(|place| self.happenings.get(place).copied())
    }
}

/// What the core of one thread counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelledThread {
    /// Every event's total.
    pub totals: Counts,
    /// By static instruction, numbered as the blocks of the process tell them; those that never
    /// ran are left out.
    pub rows: BTreeMap<u32, InstructionRow>,
}

impl ModelledThread {
    /// Takes the totals that were published; `None` if the bytes are not totals.
    pub(crate) fn set_totals(&mut self, bytes: &[u8]) -> Option<()> {
        let words = bytes.chunks_exact(8);
        if words.len() != Event::COUNT || !words.remainder().is_empty() {
            return None;
        }
        for (total, word) in self.totals.0.iter_mut().zip(words) {
            *total = u64::from_le_bytes(word.try_into().ok()?);
        }
        Some(())
    }

    /// Takes a chunk of rows that begins with instruction `first`.
    pub(crate) fn add_rows(&mut self, first: u32, payload: &[u8]) {
        for (index, entry) in payload.chunks_exact(ROW_WORDS * 8).take(CHUNK_ROWS).enumerate() {
            let mut words = [0; ROW_WORDS];
            for (word, bytes) in words.iter_mut().zip(entry.chunks_exact(8)) {
                *word = bytes.try_into().map_or(0, u64::from_le_bytes);
            }
            let mut happenings = [0; HAPPENINGS];
            happenings.copy_from_slice(&words[2..]);
            let row = InstructionRow { ticks: words[0], runs: words[1], happenings };
            if row.runs > 0 {
                self.rows.insert(first.saturating_add(index as u32), row);
            }
        }
    }

    /// Adds up threads of one process.
    pub fn add(&mut self, other: &ModelledThread) {
        for (total, more) in self.totals.0.iter_mut().zip(other.totals.0) {
            *total = total.saturating_add(more);
        }
        for (&place, row) in &other.rows {
            let empty = InstructionRow { ticks: 0, runs: 0, happenings: [0; HAPPENINGS] };
            let sum = self.rows.entry(place).or_insert(empty);
            sum.ticks = sum.ticks.saturating_add(row.ticks);
            sum.runs = sum.runs.saturating_add(row.runs);
            for (sum, more) in sum.happenings.iter_mut().zip(row.happenings) {
                *sum = sum.saturating_add(more);
            }
        }
    }
}

const _: () = assert!(HAPPENING_FIRST + HAPPENINGS <= Event::COUNT);
