//! Blocks that are only noted when they begin, and looked at many at a time.
//!
//! While a listener wants nothing but how often blocks ran, a callback that does more than put the
//! block on a list is most of what running the program costs.

use crate::block::LiveBlock;

/// How many blocks are noted at most before they are looked at; a power of two.
const NOTED_MAX: usize = 512;

/// The blocks that began since they were last looked at.
pub(super) struct Noted {
    blocks: [Option<&'static LiveBlock>; NOTED_MAX],
    filled: usize,
    /// How many are noted before they are looked at; 0 when blocks are told one by one.
    limit: usize,
    /// Instructions of the longest block seen.
    longest: u16,
}

impl Default for Noted {
    fn default() -> Noted {
        Noted { blocks: [None; NOTED_MAX], filled: 0, limit: 0, longest: 16 }
    }
}

impl Noted {
    #[inline]
    pub(super) fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Notes from now on, for about so many instructions: few blocks at a time when few are left, so
    /// that no more run unseen than may.
    pub(super) fn begin(&mut self, instructions: u64) {
        let blocks = instructions / u64::from(self.longest);
        self.limit = (blocks as usize).clamp(1, NOTED_MAX);
    }

    pub(super) fn end(&mut self) {
        self.limit = 0;
    }

    /// A block begins; whether it is time to look at what was noted.
    #[inline]
    pub(super) fn note(&mut self, block: &'static LiveBlock) -> bool {
        self.blocks[self.filled % NOTED_MAX] = Some(block);
        self.filled += 1;
        self.filled >= self.limit
    }

    /// How many were noted; the list begins anew.
    pub(super) fn take(&mut self) -> usize {
        std::mem::take(&mut self.filled)
    }

    /// The n-th of the list.
    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<&'static LiveBlock> {
        self.blocks.get(place).copied().flatten()
    }

    /// There are blocks of so many instructions.
    pub(super) fn lengthen(&mut self, instructions: u16) {
        self.longest = self.longest.max(instructions);
    }
}
