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

/// What a block's successor tells about its branch.
#[derive(Clone, Copy, Debug)]
struct Branch {
    start: u64,
    /// Where it goes if its branch is not taken.
    after: u64,
    /// Where it goes if its branch is taken.
    target: u64,
}

/// Counts one thread's blocks.
#[derive(Debug)]
pub struct Tally {
    current: CurrentResults,
    results: Arc<ResultsFile>,
    thread: u32,
    branches: Vec<(Branch, u16)>,
    slabs: Vec<Option<&'static [AtomicU64]>>,
    /// The block before, whose direction the next block tells.
    previous: Option<(Branch, Cells)>,
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
    let stores = accesses.iter().filter(|access| access.is_store).count();
    ((accesses.len() - stores) as u64, stores as u64)
}

impl Tally {
    /// A listener for thread number `thread`.
    pub fn new(current: CurrentResults, thread: u32) -> Tally {
        let results = self::current(&current);
        Tally {
            current,
            results,
            thread,
            branches: Vec::new(),
            slabs: Vec::new(),
            previous: None,
            partials: HashMap::new(),
            partials_chunk: None,
        }
    }

    /// The cells of a block. Without room in the file there are none, which the file says.
    fn cells(&mut self, block: usize) -> Option<Cells> {
        let slab = match self.slabs.get(block / TALLY_BLOCKS) {
            Some(Some(slab)) => slab,
            _ => self.new_slab(block / TALLY_BLOCKS)?,
        };
        slab.get(block % TALLY_BLOCKS * TALLY_WORDS..)?.first_chunk()
    }

    #[cold]
    fn new_slab(&mut self, number: usize) -> Option<&'static [AtomicU64]> {
        if self.slabs.len() <= number {
            self.slabs.resize(number + 1, None);
        }
        let slab = self.results.tally(self.thread, (number * TALLY_BLOCKS) as u32);
        *self.slabs.get_mut(number)? = slab;
        slab
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
        let branch = match ending(block) {
            Ending::Branches(target) => Branch { start, after: end(block), target },
            _ => Branch { start, after: NOWHERE, target: NOWHERE },
        };
        self.branches.push((branch, block.instructions.len() as u16));
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(&(branch, len)) = self.branches.get(id.0 as usize) else { return };
        if let Some((before, [_, taken, not_taken, ..])) = self.previous.take() {
            // A branch to the instruction after it changes nothing, taken or not.
            if branch.start == before.after {
                bump(not_taken, 1);
            } else if branch.start == before.target {
                bump(taken, 1);
            }
        }
        if ran < len {
            return self.partial(id, ran, accesses);
        }
        let Some(cells) = self.cells(id.0 as usize) else { return };
        let [runs, _, _, load_count, store_count] = cells;
        let (loads, stores) = loads_and_stores(accesses);
        bump(runs, 1);
        bump(load_count, loads);
        bump(store_count, stores);
        self.previous = Some((branch, cells));
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        let Some([_, _, _, load_count, store_count]) = self.cells(id.0 as usize) else { return };
        let (loads, stores) = loads_and_stores(accesses);
        bump(load_count, loads);
        bump(store_count, stores);
    }

    fn interrupted(&mut self) {
        self.previous = None;
    }

    fn forked(&mut self) {
        self.results = current(&self.current);
        self.thread = 0;
        self.slabs.clear();
        self.partials.clear();
        self.partials_chunk = None;
        self.previous = None;
    }
}
