//! What edge samples say.
//!
//! ```text
//! double samples   count × period          of blocks and of ways: a number, whatever stalled
//! turns            taken / (taken + straight) of one branch: a share of what its block ran
//! ```

use image::{Edge, EdgeKind, Flow, FlowGraph};
use metrology::Estimate;

use super::evidence::Evidence;
use super::solve::Seen;
use crate::edge_samples::{Doubles, Passed};

/// Blocks and ways are told of by the same pairs, and neighbours by some of the same: as if there
/// were half as many of them.
const SAID_TWICE: f64 = 2.0;
/// A branch that waits longer before it goes one way is found more often going it: how far a share
/// may be off, relative to the smaller side.
const TURNS_ERROR: f64 = 0.1;

/// The addresses at an edge's ends, where a branch or jump decides it.
fn decided(graph: &FlowGraph, edge: &Edge) -> Option<(u64, u64)> {
    let last = graph.blocks.get(edge.from)?.end.checked_sub(1)?;
    let (from, to) = (graph.steps.get(last)?, graph.blocks.get(edge.to)?);
    let to = graph.steps.get(to.first)?.address;
    (edge.kind != EdgeKind::Fall || from.flow == Flow::Branch).then_some((from.address, to))
}

fn passed(doubles: &Doubles, graph: &FlowGraph, step: usize) -> Passed {
    let at = graph.steps.get(step).and_then(|step| doubles.at.get(&step.address));
    at.copied().unwrap_or_default()
}

impl Evidence<'_> {
    /// How often blocks that run alike ran, by what was passed.
    pub(super) fn by_doubles(&self, blocks: &[usize]) -> Option<Seen> {
        let doubles = self.edge_samples?.doubles.as_ref()?;
        let (mut count, mut steps, mut pairs) = (0, 0_usize, 0);
        for held in blocks.iter().filter_map(|&block| self.graph.blocks.get(block)) {
            for step in held.first..held.end {
                let passed = passed(doubles, self.graph, step);
                count += passed.count;
                steps += 1;
                // A pair met the block at its head, or began inside it.
                pairs += if step == held.first { passed.pairs } else { passed.begun };
            }
        }
        if steps == 0 {
            return None;
        }
        let mean = count as f64 / steps as f64;
        // Every pair that met it told of about as many runs: `pairs` equal parts of the mean, be
        // they whole rounds of a short loop or pieces of a long block.
        let noise = SAID_TWICE * mean * mean / (pairs.max(1)) as f64 + 1.0;
        let each = doubles.period;
        Some(Seen { value: mean * each, variance: noise * each * each })
    }

    /// Whether directions of branches count. By themselves they do not: a share is a share of what
    /// a block ran, and where nothing but time tells that, an edge would be held to an estimate that
    /// flow may have to move by half. Beside double samples, blocks are counted.
    pub(super) fn has_turns(&self) -> bool {
        self.edge_samples.is_some_and(|it| it.doubles.is_some() && !it.turns.is_empty())
    }

    /// How often a way was gone, by what was passed.
    pub(super) fn edge_by_doubles(&self, edge: &Edge) -> Option<Seen> {
        let doubles = self.edge_samples?.doubles.as_ref()?;
        let (from, to) = decided(self.graph, edge)?;
        let count = doubles.ways.get(&(from, to)).copied().unwrap_or(0) as f64;
        // Runs that a pair met together are one piece of news.
        let at = doubles.at.get(&from).copied().unwrap_or_default();
        let together = at.count.max(1) as f64 / at.pairs.max(1) as f64;
        let noise = SAID_TWICE * together * count + 1.0;
        let each = doubles.period;
        Some(Seen { value: count * each, variance: noise * each * each })
    }

    /// How often a way was gone, by the directions of sampled branches and how often its block
    /// ran.
    pub(super) fn edge_by_turns(&self, edge: &Edge, blocks: &[Estimate]) -> Option<Seen> {
        let (from, _) = decided(self.graph, edge)?;
        let turns = self.edge_samples?.turns.get(&from)?;
        let ran = blocks.get(edge.from)?;
        let mine = if edge.kind == EdgeKind::Fall { turns.straight } else { turns.taken };
        let all = (turns.taken + turns.straight) as f64;
        if all <= 0.0 || ran.value <= 0.0 {
            return None;
        }
        // The mean and variance of a share of which nothing was known before (Jeffreys).
        let share = (mine as f64 + 0.5) / (all + 1.0);
        let rules = TURNS_ERROR * share.min(1.0 - share);
        let of_share = share * (1.0 - share) / (all + 2.0) + rules * rules;
        let of_runs = share * ran.standard_uncertainty;
        let variance = ran.value * ran.value * of_share + of_runs * of_runs;
        Some(Seen { value: share * ran.value, variance })
    }
}
