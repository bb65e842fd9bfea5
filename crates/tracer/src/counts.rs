//! Exact counts of a process, placed in its images.
//!
//! ```text
//! results file: records  +  tallies by thread and block
//!               Mapped, Block, Block, Unmapped, ...
//! counts:       block 7 = /usr/bin/gzip+0x3a10, 12 instructions, ran 40,000 times
//! instructions: /usr/bin/gzip+0x3a10  40,000 + what other blocks over the same bytes ran
//! ```

use std::collections::{BTreeMap, HashMap};

use model::stream::{Code, StaticBlock};

use crate::record::ProcessRecord;
use crate::results::{BlockTally, ProcessFile, ProcessKey, ThreadTally};
use crate::varint::Input;

mod maps;

pub use maps::Maps;

/// Where code is in a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The file's place in [`ProcessCounts::images`].
    pub image: u32,
    /// The offset in the file.
    pub offset: u64,
}

/// A block and where it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedBlock {
    /// Its instructions.
    pub block: StaticBlock,
    /// Where its first instruction is; `None` is memory without a file.
    pub place: Option<Place>,
}

/// An instruction that ran, told apart from others that were at the same address at another time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spot {
    /// Where it is in a file.
    pub place: Option<Place>,
    /// Its address in the process.
    pub pc: u64,
    /// Its bytes; those after `len` are zero.
    pub bytes: [u8; 15],
    /// Its length.
    pub len: u8,
}

/// What a process did in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Instructions that completed.
    pub instructions: u64,
    /// Blocks that ran, to their end or not.
    pub blocks: u64,
    /// Memory reads; `None` if they were not counted.
    pub loads: Option<u64>,
    /// Memory writes; `None` if they were not counted.
    pub stores: Option<u64>,
    /// Conditional branches taken.
    pub taken: u64,
    /// Conditional branches not taken.
    pub not_taken: u64,
}

/// The exact counts of one process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessCounts {
    /// Which process.
    pub key: ProcessKey,
    /// Which process it was forked from.
    pub parent: Option<ProcessKey>,
    /// The program that ran. Untrusted text.
    pub program: String,
    /// The files that its code came from. Untrusted text.
    pub images: Vec<String>,
    /// Its blocks, by number.
    pub blocks: Vec<PlacedBlock>,
    /// What its threads counted.
    pub threads: BTreeMap<u32, ThreadTally>,
    /// The programs that it asked to become, and whether they were followed.
    pub execs: Vec<(String, bool)>,
    /// Whether loads and stores were counted.
    pub counts_accesses: bool,
    /// Whether there was room for everything; if not, counts are missing.
    pub is_complete: bool,
}

/// All records of a process: those that it shares with the process it was forked from, then its own.
pub fn records(files: &BTreeMap<ProcessKey, ProcessFile>, key: ProcessKey) -> Vec<ProcessRecord> {
    let mut bytes = Vec::new();
    gather(files, key, u64::MAX, files.len(), &mut bytes);
    let mut input = Input(&bytes);
    std::iter::from_fn(|| ProcessRecord::decode(&mut input)).collect()
}

/// Gathers up to `limit` bytes of a process's own records after those that it inherited. `depth`
/// bounds how often a file may name another, since they are untrusted.
fn gather(
    files: &BTreeMap<ProcessKey, ProcessFile>,
    key: ProcessKey,
    limit: u64,
    depth: usize,
    out: &mut Vec<u8>,
) {
    let Some(file) = files.get(&key) else { return };
    if let (Some((parent, inherited)), Some(depth)) = (file.inherited, depth.checked_sub(1)) {
        gather(files, parent, inherited, depth, out);
    }
    let own = usize::try_from(limit).unwrap_or(usize::MAX).min(file.records.len());
    out.extend_from_slice(file.records.get(..own).unwrap_or_default());
}

/// The counts of every process that left results. Where there are many, [`count`] takes them one at
/// a time.
pub fn counts(files: &BTreeMap<ProcessKey, ProcessFile>) -> Vec<ProcessCounts> {
    files.keys().filter_map(|key| count(files, *key)).collect()
}

/// The counts of one process.
pub fn count(files: &BTreeMap<ProcessKey, ProcessFile>, key: ProcessKey) -> Option<ProcessCounts> {
    files.get(&key).map(|file| ProcessCounts::new(file, records(files, key)))
}

impl ProcessCounts {
    fn new(file: &ProcessFile, records: Vec<ProcessRecord>) -> ProcessCounts {
        let mut counts = ProcessCounts {
            key: file.key,
            parent: file.inherited.map(|(parent, _)| parent),
            program: String::new(),
            images: Vec::new(),
            blocks: Vec::new(),
            threads: file.threads.clone(),
            execs: Vec::new(),
            counts_accesses: file.counts_accesses,
            is_complete: file.refused == 0,
        };
        let mut maps = Maps::default();
        for record in records {
            match record {
                ProcessRecord::Block(block) => {
                    let place = maps.place(&block);
                    counts.blocks.push(PlacedBlock { block, place });
                }
                ProcessRecord::Mapped(map) => maps.add(&mut counts.images, map),
                ProcessRecord::Unmapped { start, end } => maps.remove(start, end),
                ProcessRecord::Program { path } => counts.program = path,
                ProcessRecord::Exec { path, is_followed } => counts.execs.push((path, is_followed)),
                ProcessRecord::ThreadBegan { .. } | ProcessRecord::ThreadEnded { .. } => {}
            }
        }
        counts
    }

    /// A block's tally over all threads; partial runs are not in it.
    pub fn tally(&self, block: u32) -> BlockTally {
        let tallies = self.threads.values().filter_map(|thread| thread.blocks.get(&block));
        tallies.fold(BlockTally::default(), |sum, tally| BlockTally {
            runs: sum.runs.saturating_add(tally.runs),
            taken: sum.taken.saturating_add(tally.taken),
            not_taken: sum.not_taken.saturating_add(tally.not_taken),
            loads: sum.loads.saturating_add(tally.loads),
            stores: sum.stores.saturating_add(tally.stores),
        })
    }

    /// What the process did in all.
    pub fn totals(&self) -> Totals {
        let each = self.threads.keys().map(|thread| self.thread_totals(*thread));
        let add = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let zero = self.counts_accesses.then_some(0);
        let none = Totals { loads: zero, stores: zero, ..Totals::default() };
        each.fold(none, |sum, thread| Totals {
            instructions: sum.instructions.saturating_add(thread.instructions),
            blocks: sum.blocks.saturating_add(thread.blocks),
            loads: add(sum.loads, thread.loads),
            stores: add(sum.stores, thread.stores),
            taken: sum.taken.saturating_add(thread.taken),
            not_taken: sum.not_taken.saturating_add(thread.not_taken),
        })
    }

    /// What one thread did in all.
    pub fn thread_totals(&self, thread: u32) -> Totals {
        let mut totals = Totals::default();
        let (mut loads, mut stores) = (0u64, 0u64);
        let Some(tally) = self.threads.get(&thread) else { return totals };
        for (block, tally) in &tally.blocks {
            let len = self.len(*block);
            totals.instructions =
                totals.instructions.saturating_add(tally.runs.saturating_mul(len));
            totals.blocks = totals.blocks.saturating_add(tally.runs);
            totals.taken = totals.taken.saturating_add(tally.taken);
            totals.not_taken = totals.not_taken.saturating_add(tally.not_taken);
            loads = loads.saturating_add(tally.loads);
            stores = stores.saturating_add(tally.stores);
        }
        for partial in &tally.partials {
            let ran = partial.times.saturating_mul(u64::from(partial.ran));
            totals.instructions = totals.instructions.saturating_add(ran);
            totals.blocks = totals.blocks.saturating_add(partial.times);
            loads = loads.saturating_add(partial.loads);
            stores = stores.saturating_add(partial.stores);
        }
        totals.loads = self.counts_accesses.then_some(loads);
        totals.stores = self.counts_accesses.then_some(stores);
        totals
    }

    fn len(&self, block: u32) -> u64 {
        self.blocks.get(block as usize).map_or(0, |placed| placed.block.instructions.len() as u64)
    }

    /// How often each instruction completed. Blocks may overlap; instructions do not.
    pub fn instructions(&self) -> BTreeMap<Spot, u64> {
        let mut all = HashMap::new();
        for thread in self.threads.values() {
            for (block, tally) in &thread.blocks {
                self.add_runs(&mut all, *block, usize::MAX, tally.runs);
            }
            for partial in &thread.partials {
                self.add_runs(&mut all, partial.block, usize::from(partial.ran), partial.times);
            }
        }
        all.into_iter().collect()
    }

    fn add_runs(&self, all: &mut HashMap<Spot, u64>, block: u32, ran: usize, times: u64) {
        let Some(placed) = self.blocks.get(block as usize).filter(|_| times > 0) else { return };
        for code in placed.block.instructions.iter().take(ran) {
            let count = all.entry(placed.spot(code)).or_insert(0u64);
            *count = count.saturating_add(times);
        }
    }
}

impl PlacedBlock {
    fn spot(&self, code: &Code) -> Spot {
        let start = self.block.instructions.first().map_or(code.pc, |first| first.pc);
        let shift = code.pc.wrapping_sub(start);
        let place =
            self.place.map(|place| Place { offset: place.offset.wrapping_add(shift), ..place });
        Spot { place, pc: code.pc, bytes: code.bytes, len: code.len }
    }
}

#[cfg(test)]
mod tests;
