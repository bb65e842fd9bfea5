//! Lines that are reached far from anything timed.
//!
//! ```text
//! addresses --told apart--> new ones --> last level, one by one
//!                               '------> the latest of them --come_near--> second level
//! ```
//!
//! The last level's order of use need not be known so closely: of lines that were reached within
//! millions of instructions it hears once.

use crate::stream::Reached;
use crate::units::memory::Memory;

/// Lines that are told apart: a part of a last level, in the host's second.
const PLACES: usize = 1 << 16;
/// Pages that are told apart among those whose lines were told before; a power of two.
const PAGES: usize = 64;
/// Instructions after which they are forgotten: few enough that no last level replaces half of what
/// it holds in the meantime.
pub(super) const FORGET: u64 = 1 << 21;

/// The lines, and those of them that the second level has not heard of.
#[derive(Clone, Debug)]
pub(super) struct Far {
    told: Reached<PLACES>,
    /// Pages of lines that were told before, as far as they are about as many as streams there are.
    pages: Reached<PAGES>,
    /// Since how many instructions.
    since: u64,
    /// Lines that are new, and lines of tables that were read for their pages.
    new: Vec<u64>,
    tables: Vec<u64>,
    /// The latest lines as a ring, and how many there were since the second level heard of them.
    latest: Vec<u64>,
    count: usize,
}

impl Far {
    /// Keeps so many of the latest lines.
    pub(super) fn new(latest: usize) -> Far {
        Far {
            told: Reached::default(),
            pages: Reached::default(),
            since: 0,
            new: Vec::new(),
            tables: Vec::new(),
            latest: vec![0; latest],
            count: 0,
        }
    }

    /// The page of data that an address lies in is used.
    #[inline]
    pub(super) fn tell_page(&mut self, memory: &mut Memory, address: u64) {
        self.tables.extend(memory.far_page(address));
    }

    /// Data or code at these addresses is used, after so many instructions.
    pub(super) fn tell(&mut self, memory: &mut Memory, addresses: &[u64], instructions: u64) {
        if instructions.abs_diff(self.since) >= FORGET {
            self.since = instructions;
            self.told.forget();
            memory.forget_far_pages();
        }
        self.new.clear();
        for table in self.tables.drain(..) {
            push(&mut self.told, &mut self.new, table);
        }
        let mut passed = 0;
        for &address in addresses {
            let (line, next) = memory.far_lines_of(address);
            if let Some(line) = line
                && !push(&mut self.told, &mut self.new, line)
            {
                passed += usize::from(self.pages.is_new_line(memory.page_of_line(line)));
            }
            if let Some(next) = next {
                push(&mut self.told, &mut self.new, next);
            }
        }
        memory.pass_pages(passed);
        memory.reach_last(&self.new);
        self.keep();
    }

    /// Keeps what is new among the latest.
    fn keep(&mut self) {
        let places = self.latest.len();
        // No more than there is room for: those before them would be written over.
        let new = &self.new[self.new.len().saturating_sub(places)..];
        let at = self.count % places.max(1);
        let (before, after) = new.split_at(new.len().min(places - at));
        self.latest[at..at + before.len()].copy_from_slice(before);
        self.latest[..after.len()].copy_from_slice(after);
        self.count += new.len();
    }

    /// The second level hears of the latest lines. All are new from here on: it must hear again of what
    /// is in use when it is next told, or it would let go of that first.
    pub(super) fn come_near(&mut self, memory: &mut Memory) {
        if self.count > 0 {
            self.told.forget();
            memory.forget_far_pages();
        }
        let (places, count) = (self.latest.len(), std::mem::take(&mut self.count));
        if count <= places {
            return memory.reach_second(self.latest[..count].iter());
        }
        let (newer, older) = self.latest.split_at(count % places);
        memory.reach_second(older.iter().chain(newer));
    }
}

/// Adds a line if it is new, and says so.
#[inline]
fn push(told: &mut Reached<PLACES>, new: &mut Vec<u64>, line: u64) -> bool {
    let is_new = told.is_new_line(line);
    if is_new {
        new.push(line);
    }
    is_new
}
