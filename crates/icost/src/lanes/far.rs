//! How far back an ideal window reaches, for the lanes that have one.
//!
//! The retirements of twenty windows in every lane would drive all else out of the caches, and in a
//! lane whose window is as it was nobody asks for them. Lanes with an ideal window stand together,
//! so that few blocks of lanes keep any.

use crate::chunk::Chunk;
use crate::history::SPAN;

/// Lanes that are looked at as one: as many as the widest chunk has.
pub(super) const BLOCK: usize = 16;

/// The retirements of the latest micro-ops in some blocks of lanes.
#[derive(Clone, Debug)]
pub(super) struct Far {
    words: Vec<u32>,
    /// Where a block's lanes lie in a row; none where no lane has an ideal window.
    columns: Vec<Option<usize>>,
    /// Words of a row.
    width: usize,
    mask: usize,
}

impl Far {
    /// Of at least so many micro-ops; of every lane, whether its window is ideal.
    pub(super) fn new(places: u32, is_ideal: &[bool]) -> Far {
        let places = (places as usize).next_power_of_two().min(SPAN);
        let mut width = 0;
        let mut column = |block: &[bool]| {
            let is_asked = block.contains(&true);
            let column = is_asked.then_some(width);
            width += if is_asked { BLOCK } else { 0 };
            column
        };
        let columns = is_ideal.chunks(BLOCK).map(&mut column).collect();
        Far { words: vec![0; places * width], columns, width, mask: places - 1 }
    }

    /// The row of the micro-op so many before the one with a number, if it is in sight.
    #[inline(always)]
    pub(super) fn before(&self, count: usize, distance: u32) -> Option<usize> {
        let distance = distance as usize;
        let is_near = distance > 0 && distance <= count.min(self.mask);
        is_near.then(|| ((count - distance) & self.mask) * self.width)
    }

    /// No earlier than that micro-op retired, in the lanes that are kept.
    #[inline(always)]
    pub(super) fn later<C: Chunk>(&self, row: usize, at: C, lane: usize) -> C {
        let Some(&Some(column)) = self.columns.get(lane / BLOCK) else { return at };
        let from = row + column + lane % BLOCK;
        at.max(C::load(self.words.get(from..).unwrap_or_default()))
    }

    /// Keeps when a micro-op retired.
    #[inline(always)]
    pub(super) fn put<C: Chunk>(&mut self, count: usize, committed: &[u32]) {
        let row = (count & self.mask) * self.width;
        for (block, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let lanes = committed.get(block * BLOCK..).unwrap_or_default();
            for lane in (0..BLOCK.min(lanes.len())).step_by(C::LANES) {
                if let Some(to) = self.words.get_mut(row + column + lane..) {
                    C::load(&lanes[lane..]).store(to);
                }
            }
        }
    }

    /// Takes so many cycles off the times of a lane.
    pub(super) fn lower(&mut self, lane: usize, cycles: u32) {
        let Some(&Some(column)) = self.columns.get(lane / BLOCK) else { return };
        for row in self.words.chunks_exact_mut(self.width) {
            let at = &mut row[column + lane % BLOCK];
            *at = at.saturating_sub(cycles);
        }
    }
}
