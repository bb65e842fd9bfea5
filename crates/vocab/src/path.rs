//! How control came to a place, and what a load waited for: the tables beside the plain counts.

use crate::{Count, EventId, ImageId, Offset};

/// A position in an image.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The image.
    pub image: ImageId,
    /// The position in it.
    pub offset: Offset,
}

/// A chain of calls, the innermost first. A frame that could not be placed is `None`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Stack {
    /// The event that was sampled.
    pub event: EventId,
    /// The frames, the innermost first.
    pub frames: Vec<Option<Place>>,
}

/// A jump that was taken, as the processor's branch record tells it. An end that could not be
/// placed is `None`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Branch {
    /// The event whose samples carried it.
    pub event: EventId,
    /// The jump.
    pub from: Option<Place>,
    /// Where it went.
    pub to: Option<Place>,
}

/// How often a branch was seen, and how it went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BranchTally {
    /// Times it is in a record.
    pub count: Count,
    /// Of these, mispredicted.
    pub mispredicted: Count,
    /// Cycles since the branch before it, summed over those that carry them.
    pub cycles: Count,
    /// How many carry cycles: `cycles` over this is the mean.
    pub timed: Count,
}

impl BranchTally {
    /// Adds what another record says.
    pub fn add(&mut self, other: &BranchTally) {
        self.count += other.count;
        self.mispredicted += other.mispredicted;
        self.cycles += other.cycles;
        self.timed += other.timed;
    }
}

/// What a sample told of where control went from a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Onward {
    /// It was passed between the two interrupts of a double sample.
    Passed,
    /// A branch or jump there was passed so, and went to this place of the same image, straight on
    /// included.
    To(Offset),
    /// A single sample found a conditional branch there that was about to be taken.
    Taken,
    /// A single sample found a conditional branch there that was about to go straight on.
    Straight,
}

/// Where control went from a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Way {
    /// The event whose samples told it.
    pub event: EventId,
    /// The instruction.
    pub place: Place,
    /// What became of it.
    pub onward: Onward,
}

/// How often that was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WayTally {
    /// Times.
    pub count: Count,
    /// Of what was passed: double samples that did, once or more.
    pub pairs: Count,
    /// Of what was passed: double samples that began with it.
    pub begun: Count,
}

impl WayTally {
    /// Adds what other samples say.
    pub fn add(&mut self, other: &WayTally) {
        self.count += other.count;
        self.pairs += other.pairs;
        self.begun += other.begun;
    }
}

/// Where a load found its data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LoadLevel {
    /// The first-level cache.
    L1,
    /// A line that was already on its way.
    FillBuffer,
    /// The second-level cache.
    L2,
    /// The third-level cache.
    L3,
    /// The fourth-level cache.
    L4,
    /// This machine's memory.
    Memory,
    /// Memory of another node.
    RemoteMemory,
    /// A cache of another node.
    RemoteCache,
    /// Not memory at all, or memory that is never cached.
    Uncached,
    /// The processor does not say.
    Unknown,
}

impl LoadLevel {
    /// Every level, in the order of the words.
    pub const ALL: [LoadLevel; 10] = [
        LoadLevel::L1,
        LoadLevel::FillBuffer,
        LoadLevel::L2,
        LoadLevel::L3,
        LoadLevel::L4,
        LoadLevel::Memory,
        LoadLevel::RemoteMemory,
        LoadLevel::RemoteCache,
        LoadLevel::Uncached,
        LoadLevel::Unknown,
    ];

    /// The word that is stored and printed.
    pub fn word(self) -> &'static str {
        match self {
            LoadLevel::L1 => "L1",
            LoadLevel::FillBuffer => "fill buffer",
            LoadLevel::L2 => "L2",
            LoadLevel::L3 => "L3",
            LoadLevel::L4 => "L4",
            LoadLevel::Memory => "memory",
            LoadLevel::RemoteMemory => "remote memory",
            LoadLevel::RemoteCache => "remote cache",
            LoadLevel::Uncached => "uncached",
            LoadLevel::Unknown => "unknown",
        }
    }
}

/// One kind of outcome of one load instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Load {
    /// The event that was sampled.
    pub event: EventId,
    /// The instruction.
    pub place: Place,
    /// Where the data was.
    pub level: LoadLevel,
    /// How long it took. Kept exactly: a mean would hide the shape.
    pub latency_cycles: u64,
}
