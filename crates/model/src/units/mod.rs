//! The parts of a core that remember: caches, translation, prefetchers, branch predictors.
//!
//! They are the same objects whether the core is warming, timed in one pass or stepped cycle by
//! cycle. Time is an argument, never a state: an access says when it happens and is told when its
//! data is there. Accesses may come out of order in time, because a one-pass core visits
//! instructions in program order.
//!
//! ```text
//! pc --------> Code side: L1I, ITLB, micro-op cache --\
//!                                                      >-- L2 -- L3 -- memory channel
//! address ---> Data side: L1D, DTLB, prefetchers -----/
//! branch ----> Predictor: direction, targets, returns
//! ```

mod ahead;
pub mod branch;
pub mod cache;
pub mod memory;
pub mod misses;
mod newest;
pub(crate) mod ordering;
pub mod prefetch;
pub mod tlb;

/// Where an access found its line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// The first cache.
    L1,
    /// The second.
    L2,
    /// The third.
    L3,
    /// Behind all caches.
    Memory,
}

impl Level {
    /// Every level, in order of its number.
    pub(crate) const ALL: [Level; 4] = [Level::L1, Level::L2, Level::L3, Level::Memory];
}
