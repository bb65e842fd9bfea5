//! What is counted beside the windows that cycles follow from.

use std::ops::Range;

use crate::event::{Counts, Event};
use crate::units::memory::Memory;
use crate::warm::BranchCounts;

/// How many there are.
pub(super) const FEATURES: usize = 10;

/// Instructions, and what happened to them that costs time. The units count these the same whether
/// they are warmed or timed.
pub(super) type Features = [f64; FEATURES];

/// What caches and translation lacked.
pub(super) const LACKED: Range<usize> = 3..9;

/// How long the blocks that ran usually take.
pub(super) const USUAL: usize = 9;

/// All that was counted so far, by a warmer and by a core that exchange one memory; and how long the
/// blocks that ran usually take.
pub(super) fn features(
    instructions: u64,
    memory: &Memory,
    warmed: BranchCounts,
    timed: &Counts,
    usual_cycles: f64,
) -> Features {
    let of = &memory.counts;
    let counted = [
        instructions,
        warmed.mispredicted + timed[Event::BranchMisses],
        warmed.taken + timed[Event::TakenBranches],
        of.l2_data,
        of.l2_code,
        of.l2_misses,
        of.l3_misses,
        of.memory_reads,
        memory.translation_misses(),
    ];
    let mut all = [usual_cycles; FEATURES];
    all.iter_mut().zip(counted).for_each(|(to, count)| *to = count as f64);
    all
}

/// Which features are known of a stratum as a whole.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Known {
    /// Which blocks ran: the stratum was skipped.
    Code,
    /// And what the outer caches missed: all that was skipped reached them.
    Outer,
    /// All: it was warmed.
    All,
}

impl Known {
    pub(super) const KINDS: [Known; 3] = [Known::Code, Known::Outer, Known::All];

    /// Features with those that are not known left out.
    pub(super) fn of(self, features: &Features) -> Features {
        let is_known = |k: usize| match k {
            0 | USUAL => true,
            6 | 7 => self >= Known::Outer,
            _ => self == Known::All,
        };
        std::array::from_fn(|k| if is_known(k) { features[k] } else { 0.0 })
    }

    /// How many there are.
    pub(super) fn count(self) -> f64 {
        self.of(&[1.0; FEATURES]).iter().sum()
    }
}

/// What was counted since, an instruction each.
pub(super) fn rates(now: &Features, before: &Features) -> Features {
    let instructions = (now[0] - before[0]).max(1.0);
    std::array::from_fn(|k| (now[k] - before[k]) / instructions)
}

/// Σ of products.
pub(super) fn product(a: &Features, b: &Features) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
