//! What warming counts that cycles follow from.

use crate::event::{Counts, Event};
use crate::units::memory::Memory;
use crate::warm::BranchCounts;

/// How many there are.
pub(super) const FEATURES: usize = 9;

/// Instructions, and what happened to them that costs time. The units count these the same whether
/// they are warmed or timed.
pub(super) type Features = [f64; FEATURES];

/// All that was counted so far, by a warmer and by a core that exchange one memory.
pub(super) fn features(
    instructions: u64,
    memory: &Memory,
    warmed: BranchCounts,
    timed: &Counts,
) -> Features {
    let of = &memory.counts;
    [
        instructions,
        warmed.mispredicted + timed[Event::BranchMisses],
        warmed.taken + timed[Event::TakenBranches],
        of.l2_data,
        of.l2_code,
        of.l2_misses,
        of.l3_misses,
        of.memory_reads,
        memory.translation_misses(),
    ]
    .map(|count| count as f64)
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
