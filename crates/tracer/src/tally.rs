//! The listener that only counts: how often each block ran, on each thread, exactly.
//!
//! Counts go straight to the results file, so they are there when the program is killed. Threads
//! count apart and are added up by the reader: a locked addition costs as much as the rest.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use model::stream::{Access, BlockId, CoreListener, StaticBlock};

use crate::ending::{Ending, end, ending};
use crate::results::{Chunk, ResultsFile, TALLY_BLOCKS, TALLY_WORDS};

/// The results file of the process, which a fork replaces.
pub type CurrentResults = Arc<Mutex<Arc<ResultsFile>>>;

/// The results file of the process as it is now.
pub fn current(results: &CurrentResults) -> Arc<ResultsFile> {
    results.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// An address at which no block starts: where a block without a conditional branch does not go.
const NOWHERE: u64 = u64::MAX;

/// The words of a tally.
type Cells = &'static [AtomicU64; TALLY_WORDS];

/// What is kept of a block.
#[derive(Clone, Copy, Debug)]
struct Known {
    start: u64,
    /// Where it goes if the branch at its end is not taken.
    after: u64,
    /// Where it goes if the branch is taken.
    target: u64,
    /// Where it is counted, once it ran.
    cells: Option<Cells>,
    len: u16,
}

/// No block has this number.
const NO_BLOCK: usize = usize::MAX;

/// Counts one thread's blocks.
#[derive(Debug)]
pub struct Tally {
    current: CurrentResults,
    results: Arc<ResultsFile>,
    thread: u32,
    blocks: Vec<Known>,
    slabs: Vec<Option<&'static [AtomicU64]>>,
    /// The block before, whose direction the next block tells.
    previous: usize,
    partials: HashMap<(u32, u16), &'static [AtomicU64]>,
    partials_chunk: Option<Chunk>,
}

/// One more.
fn bump(cell: &AtomicU64, by: u64) {
    // Only this thread writes the cell, so no locked addition is needed.
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

/// How many of the accesses read and how many write.
fn loads_and_stores(accesses: &[Access]) -> (u64, u64) {
    let stores = accesses.iter().fold(0, |stores, access| stores + u64::from(access.is_store));
    (accesses.len() as u64 - stores, stores)
}

impl Tally {
    /// A listener for thread number `thread`.
    pub fn new(current: CurrentResults, thread: u32) -> Tally {
        let results = self::current(&current);
        Tally {
            current,
            results,
            thread,
            blocks: Vec::new(),
            slabs: Vec::new(),
            previous: NO_BLOCK,
            partials: HashMap::new(),
            partials_chunk: None,
        }
    }

    /// Finds the cells of a block that runs for the first time. Without room in the file there are
    /// none, which the file says.
    #[cold]
    fn find_cells(&mut self, block: usize) -> Option<Cells> {
        let number = block / TALLY_BLOCKS;
        if self.slabs.len() <= number {
            self.slabs.resize(number + 1, None);
        }
        let slab = self.slabs.get_mut(number)?;
        if slab.is_none() {
            *slab = self.results.tally(self.thread, (number * TALLY_BLOCKS) as u32);
        }
        let cells = slab.as_ref()?.get(block % TALLY_BLOCKS * TALLY_WORDS..)?.first_chunk();
        self.blocks.get_mut(block)?.cells = cells;
        cells
    }

    /// What this block says about the branch before it. A branch to the instruction after it changes
    /// nothing, taken or not.
    fn settle(&self, start: u64) {
        let Some(&Known { after, target, cells, .. }) = self.blocks.get(self.previous) else {
            return;
        };
        let Some([_, taken, not_taken, ..]) = cells else { return };
        // Added without a branch of our own, which would be as hard to foretell as the program's.
        let falls = start == after;
        bump(not_taken, u64::from(falls));
        bump(taken, u64::from(start == target && !falls));
    }

    #[cold]
    fn partial(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(cells) = self.partial_cells(id.0, ran) else { return };
        let (loads, stores) = loads_and_stores(accesses);
        cells.iter().zip([1, loads, stores]).for_each(|(cell, by)| bump(cell, by));
    }

    /// The counting words of a partial run, made on first sight.
    fn partial_cells(&mut self, block: u32, ran: u16) -> Option<&'static [AtomicU64]> {
        const WORDS: usize = crate::results::PARTIAL_WORDS;
        if let Some(cells) = self.partials.get(&(block, ran)) {
            return Some(cells);
        }
        let room = |chunk: Chunk| chunk.words.get(chunk.used() / 8..).map_or(0, <[_]>::len);
        if self.partials_chunk.is_none_or(|chunk| room(chunk) < WORDS) {
            self.partials_chunk = self.results.partials(self.thread);
        }
        let chunk = self.partials_chunk?;
        let (what, cells) = chunk.words.get(chunk.used() / 8..)?.get(..WORDS)?.split_first()?;
        what.store(u64::from(block) | u64::from(ran) << 32, Relaxed);
        chunk.set_used(chunk.used() + WORDS * 8);
        self.partials.insert((block, ran), cells);
        Some(cells)
    }
}

impl CoreListener for Tally {
    fn translated(&mut self, _id: BlockId, block: &StaticBlock) {
        let start = block.instructions.first().map_or(NOWHERE, |first| first.pc);
        let len = block.instructions.len() as u16;
        let (after, target) = match ending(block) {
            Ending::Branches(target) => (end(block), target),
            _ => (NOWHERE, NOWHERE),
        };
        self.blocks.push(Known { start, after, target, cells: None, len });
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let number = id.0 as usize;
        let Some(&Known { start, mut cells, len, .. }) = self.blocks.get(number) else { return };
        self.settle(start);
        if ran < len {
            self.previous = NO_BLOCK;
            return self.partial(id, ran, accesses);
        }
        if cells.is_none() {
            cells = self.find_cells(number);
        }
        if let Some([runs, _, _, load_count, store_count]) = cells {
            let (loads, stores) = loads_and_stores(accesses);
            bump(runs, 1);
            bump(load_count, loads);
            bump(store_count, stores);
        }
        self.previous = number;
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        let cells = self.blocks.get(id.0 as usize).and_then(|block| block.cells);
        if let Some([_, _, _, load_count, store_count]) = cells {
            let (loads, stores) = loads_and_stores(accesses);
            bump(load_count, loads);
            bump(store_count, stores);
        }
    }

    fn interrupted(&mut self) {
        self.previous = NO_BLOCK;
    }

    fn forked(&mut self) {
        self.results = current(&self.current);
        self.thread = 0;
        self.slabs.clear();
        self.blocks.iter_mut().for_each(|block| block.cells = None);
        self.partials.clear();
        self.partials_chunk = None;
        self.previous = NO_BLOCK;
    }
}
