//! The account that a modelled thread left.

use std::collections::BTreeMap;

use metrology::Estimate;
use model::core::{Accounting, Sampling};
use model::event::{Counts, Event, HAPPENING_FIRST, HAPPENINGS};

use super::listener::{row_of, uncertainty};
use super::{CHUNK_ROWS, CHUNK_WAYS, ROW_WORDS, SAMPLED_MOST, SAMPLING_WORDS, WAY_WORDS};

/// What one static instruction cost, exactly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InstructionRow {
    /// Its time, in ticks (`model::core::TICKS` a cycle).
    pub ticks: u64,
    /// How often it ran.
    pub runs: u64,
    /// How many of its runs were timed; ticks and happenings are of those.
    pub timed: u64,
    happenings: [u64; HAPPENINGS],
}

impl InstructionRow {
    /// From the words that a core publishes.
    pub(super) fn from_words(words: &[u64; ROW_WORDS]) -> InstructionRow {
        let mut happenings = [0; HAPPENINGS];
        happenings.copy_from_slice(&words[3..]);
        InstructionRow { ticks: words[0], runs: words[1], timed: words[2], happenings }
    }

    /// Its time over all its runs, in ticks: as measured where all were timed, else at the rate of
    /// those that were. None where it ran and was never timed.
    pub fn ticks_of_all(&self) -> Option<u64> {
        match (self.timed, self.runs) {
            (timed, runs) if timed == runs => Some(self.ticks),
            (0, _) => None,
            (timed, runs) => {
                let scaled = u128::from(self.ticks) * u128::from(runs) / u128::from(timed);
                u64::try_from(scaled).ok()
            }
        }
    }

    /// How many samples of the n-th event fell on it, where samples were asked for.
    pub fn samples(&self, event: usize) -> u64 {
        match event.checked_sub(1) {
            None => self.ticks,
            Some(place) => self.happenings.get(place).copied().unwrap_or(0),
        }
    }

    /// What samples told of where control went from it, where that was asked for.
    pub fn edges(&self) -> EdgeRow {
        let word = |k: usize| self.happenings.get(SAMPLED_MOST - 1 + k).copied().unwrap_or(0);
        EdgeRow {
            taken: word(0),
            straight: word(1),
            passed: word(2),
            pairs: word(3),
            begun: word(4),
        }
    }

    /// How many interrupts its thread lost, where samples were asked for; in one row of a thread.
    pub fn lost(&self) -> u64 {
        self.timed
    }

    /// How often something happened to it in the runs that were timed.
    pub fn happenings(&self, event: Event) -> Option<u64> {
        event.happening().and_then(|place| self.happenings.get(place).copied())
    }
}

/// What samples told of where control went from an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EdgeRow {
    /// Samples of time that found it, a conditional branch, about to be taken.
    pub taken: u64,
    /// About to go straight on.
    pub straight: u64,
    /// Times that it retired between the two interrupts of a double sample.
    pub passed: u64,
    /// Double samples between which it did, once or more.
    pub pairs: u64,
    /// Double samples that began with it.
    pub begun: u64,
}

/// What the core of one thread counted.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ModelledThread {
    /// Every event's total, estimated where not everything was timed.
    pub totals: Counts,
    /// How sure each total is, in the order of the events.
    pub uncertainty: Vec<(f64, f64)>,
    /// How the totals were estimated; none where everything was timed.
    pub sampling: Option<Sampling>,
    /// By static instruction, numbered as the blocks of the process tell them; those that never
    /// ran are left out.
    pub rows: BTreeMap<u32, InstructionRow>,
    /// How often a branch or jump, numbered as rows are, was seen to go on with an instruction,
    /// where double samples were asked for.
    pub ways: BTreeMap<(u32, u32), u64>,
}

impl ModelledThread {
    /// The account of a core that is here.
    pub fn of(core: &dyn Accounting) -> ModelledThread {
        let uncertainty = Event::ALL.iter().map(|&event| uncertainty(core, event)).collect();
        let (runs, timed) = (core.runs(), core.account().runs());
        let ran = runs.into_iter().zip(timed).enumerate().filter(|(_, (runs, _))| *runs > 0);
        let rows = ran.map(|(place, (runs, timed))| {
            let words = row_of(core.account(), place, runs, timed);
            (place as u32, InstructionRow::from_words(&words))
        });
        let sampling = core.sampling();
        ModelledThread {
            totals: core.counts(),
            uncertainty,
            sampling,
            rows: rows.collect(),
            ways: BTreeMap::new(),
        }
    }

    /// Takes the totals that were published; `None` if the bytes are not totals.
    pub(crate) fn set_totals(&mut self, bytes: &[u8]) -> Option<()> {
        let (totals, rest) = bytes.split_at_checked(Event::COUNT * 8)?;
        let (rest, sampling) = rest.split_at_checked(Event::COUNT * 16)?;
        if sampling.len() != SAMPLING_WORDS * 8 {
            return None;
        }
        let word = |bytes: &[u8]| bytes.try_into().map(u64::from_le_bytes).ok();
        for (total, bytes) in self.totals.0.iter_mut().zip(totals.chunks_exact(8)) {
            *total = word(bytes)?;
        }
        let pair = |pair: &[u8]| {
            let (u, dof) = pair.split_at_checked(8)?;
            Some((f64::from_bits(word(u)?), f64::from_bits(word(dof)?)))
        };
        self.uncertainty = rest.chunks_exact(16).map(pair).collect::<Option<_>>()?;
        let words = sampling.chunks_exact(8).map(|bytes| word(bytes).map(f64::from_bits));
        self.sampling = sampling_of(&words.collect::<Option<Vec<_>>>()?);
        Some(())
    }

    /// Takes a chunk of rows that begins with instruction `first`.
    pub(crate) fn add_rows(&mut self, first: u32, payload: &[u8]) {
        for (index, entry) in payload.chunks_exact(ROW_WORDS * 8).take(CHUNK_ROWS).enumerate() {
            let mut words = [0; ROW_WORDS];
            for (word, bytes) in words.iter_mut().zip(entry.chunks_exact(8)) {
                *word = bytes.try_into().map_or(0, u64::from_le_bytes);
            }
            let row = InstructionRow::from_words(&words);
            if row.runs > 0 {
                self.rows.insert(first.saturating_add(index as u32), row);
            }
        }
    }

    /// Takes a chunk of ways.
    pub(crate) fn add_ways(&mut self, payload: &[u8]) {
        for entry in payload.chunks_exact(WAY_WORDS * 8).take(CHUNK_WAYS) {
            let mut words = entry.chunks_exact(8);
            let mut word = || words.next().and_then(|bytes| bytes.try_into().ok());
            let (Some(ends), Some(count)) = (word(), word()) else { continue };
            let (ends, count) = (u64::from_le_bytes(ends), u64::from_le_bytes(count));
            if count > 0 {
                *self.ways.entry(((ends >> 32) as u32, ends as u32)).or_default() += count;
            }
        }
    }

    /// The total of an event with its uncertainty.
    pub fn estimate(&self, event: Event) -> Estimate {
        let value = self.totals[event] as f64;
        match self.uncertainty.get(event as usize) {
            Some(&(standard_uncertainty, degrees_of_freedom)) => {
                Estimate { value, standard_uncertainty, degrees_of_freedom }
            }
            None => Estimate::exact(value),
        }
    }
}

/// How an estimate came about, from the words that a core publishes.
fn sampling_of(words: &[f64]) -> Option<Sampling> {
    let &[windows, timed, value, standard_uncertainty, degrees_of_freedom, taken_off] = words
    else {
        return None;
    };
    let is_known = windows.is_finite() && timed.is_finite() && taken_off.is_finite();
    let longer = Estimate { value, standard_uncertainty, degrees_of_freedom };
    let longer_warming = Some(longer).filter(|_| value.is_finite());
    let (windows, timed) = (windows as u64, timed as u64);
    is_known.then_some(Sampling { windows, timed, longer_warming, taken_off })
}

const _: () = assert!(HAPPENING_FIRST + HAPPENINGS <= Event::COUNT);
