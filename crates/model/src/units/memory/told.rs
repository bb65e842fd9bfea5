//! What the memory says of an access, and counts besides.

use crate::units::Level;
use crate::units::tlb::Translation;

/// What an access met.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Cycles from issue to data.
    pub cycles: u32,
    /// Where the line was.
    pub level: Level,
    /// Whence what it waited for comes: beyond where the line was, if it was still on its way there.
    pub from: Level,
    /// What the translation cost; it is part of `cycles`.
    pub translation: Translation,
    /// The line was on its way already.
    pub joined: bool,
    /// A prefetch had brought it.
    pub guessed: bool,
    /// The access touched two lines.
    pub split: bool,
}

/// Things that happen beside instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryCounts {
    /// Requests to the second level, data side.
    pub l2_data: u64,
    /// Requests to the second level, code side.
    pub l2_code: u64,
    /// Of all of them, those that missed.
    pub l2_misses: u64,
    /// Requests to the third level.
    pub l3: u64,
    /// Of them, those that missed.
    pub l3_misses: u64,
    /// Lines fetched into the first level on a guess.
    pub prefetches_l1: u64,
    /// Lines fetched into the second level on a guess.
    pub prefetches_l2: u64,
    /// Guesses that were asked for.
    pub prefetches_useful: u64,
    /// Guesses that left unasked.
    pub prefetches_useless: u64,
    /// Dirty lines that left the first level.
    pub writebacks_l1: u64,
    /// Dirty lines that left the last level.
    pub writebacks_memory: u64,
    /// Lines that left the first-level data cache.
    pub evictions_l1: u64,
    /// Cycles in which a miss waited for a register; several at once count once.
    pub wait_cycles: u64,
    /// Lines brought from memory.
    pub memory_reads: u64,
}
