//! Samples that tell where control went, beside where time was spent.
//!
//! The paper left both to future work. A handler that finds a conditional branch can read its
//! direction off the saved flags ([`Turns`]); two interrupts close together tell what ran between
//! them ([`Doubles`]).

use std::collections::BTreeMap;

/// How often an instruction was met between two interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Passed {
    /// Times that it retired there.
    pub count: u64,
    /// Pairs of interrupts between which it did, once or more.
    pub pairs: u64,
    /// Pairs between which it was the first to retire.
    pub begun: u64,
}

/// Double samples of a profile.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Doubles {
    /// How many runs one passing stands for: the cycles between first interrupts over those from
    /// the first to the second.
    pub period: f64,
    /// What was passed, by virtual address.
    pub at: BTreeMap<u64, Passed>,
    /// Branches and jumps that were passed, with where they went, by virtual address; those that
    /// ran straight on are among them.
    pub ways: BTreeMap<(u64, u64), u64>,
}

/// Which way a conditional branch was about to go when a sample of time found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Turns {
    /// To its target.
    pub taken: u64,
    /// Straight on.
    pub straight: u64,
}

/// What a profile has of both.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EdgeSamples {
    /// Double samples.
    pub doubles: Option<Doubles>,
    /// Directions of sampled branches, by virtual address.
    pub turns: BTreeMap<u64, Turns>,
}
