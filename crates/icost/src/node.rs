//! A node's times in every lane.

use crate::history::SPAN;

/// Words of a cache line: rows begin with one, so that no vector straddles two.
const LINE_WORDS: usize = 16;

/// Times of one node of the last micro-ops, a row of lanes each.
#[derive(Clone, Debug)]
pub(crate) struct Node<const L: usize> {
    words: Vec<u32>,
    /// Where the first row begins.
    start: usize,
    mask: usize,
}

impl<const L: usize> Node<L> {
    /// A row of nothing.
    pub(crate) const NOTHING: [u32; L] = [0; L];

    /// Of at least so many micro-ops, as far as edges may span. What need not be kept would drive
    /// out of the caches what is needed.
    pub(crate) fn new(places: u32) -> Node<L> {
        let places = (places as usize).next_power_of_two().min(SPAN);
        let words = vec![0; places * L + LINE_WORDS];
        let start = words.as_ptr().align_offset(LINE_WORDS * size_of::<u32>()).min(LINE_WORDS);
        Node { words, start, mask: places - 1 }
    }

    /// The row at a place.
    #[inline(always)]
    pub(crate) fn at(&self, place: usize) -> &[u32; L] {
        let from = self.start + (place & self.mask) * L;
        let row = self.words.get(from..).and_then(|rest| rest.first_chunk());
        row.unwrap_or(&Self::NOTHING)
    }

    /// The row of the micro-op so many before the one with a number, if it is in sight.
    #[inline(always)]
    pub(crate) fn before(&self, count: usize, distance: u32) -> Option<&[u32; L]> {
        let distance = distance as usize;
        let is_near = distance > 0 && distance <= count.min(self.mask);
        is_near.then(|| self.at(count - distance))
    }

    /// Writes a row.
    #[inline(always)]
    pub(crate) fn put(&mut self, place: usize, times: &[u32; L]) {
        let from = self.start + (place & self.mask) * L;
        if let Some(row) = self.words.get_mut(from..).and_then(|rest| rest.first_chunk_mut()) {
            *row = *times;
        }
    }

    /// Takes so many cycles off the times of a lane.
    pub(crate) fn lower(&mut self, lane: usize, cycles: u32) {
        for row in self.words.get_mut(self.start..).unwrap_or_default().chunks_exact_mut(L) {
            row[lane] = row[lane].saturating_sub(cycles);
        }
    }
}
