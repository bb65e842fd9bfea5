//! What the samples say about each class, before flow has its say.
//!
//! Time says `frequency × cycles`, and only where nothing stalled are the cycles known. Retired
//! instructions say the frequency itself, with nothing but the noise of counting. Branches that
//! were seen say how often an edge was taken. Each is weighed by its precision:
//!
//! ```text
//! class ── time ─────────► clusters of S/M        value ± counting ± how far rules can be trusted
//!       ── retired ──────► N / instructions       value ± counting
//!       ── doubled ──────► N / instructions       value ± counting
//! edge  ── taken, stacks, doubled ► N             value ± counting
//!       ── turns ────────► share of its block     value ± counting ± its block's
//! ```

use std::collections::BTreeMap;

use image::{EdgeKind, FlowGraph};

use super::classes::Classes;
use super::cluster::{ClassMember, Confidence, in_order_frequency};
use super::solve::Seen;
use crate::edge_samples::EdgeSamples;
use crate::plan::Least;

/// Counts by step, and what one of them stands for.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) by_step: Vec<u64>,
    pub(crate) period: f64,
}

/// Branches that were seen being taken, by where they stand and go to.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    pub(crate) period: f64,
    pub(crate) seen: BTreeMap<(u64, u64), u64>,
}

/// Everything that is known of a procedure's runs.
#[derive(Debug)]
pub(crate) struct Evidence<'a> {
    pub(crate) graph: &'a FlowGraph,
    pub(crate) classes: &'a Classes,
    pub(crate) time: Option<Counted>,
    pub(crate) retired: Option<Counted>,
    pub(crate) taken: Option<Counted>,
    pub(crate) branches: Option<Ways>,
    pub(crate) edge_samples: Option<&'a EdgeSamples>,
    pub(crate) is_in_order: bool,
    pub(crate) longest_stall_cycles: f64,
}

/// How far the rules of a cluster can be believed, relative to the value, by how far they said they
/// trusted it. Chosen by hand with modelled runs of the suite in view, so that the suite alone cannot
/// say how well it is chosen.
fn rule_error(confidence: Confidence) -> f64 {
    match confidence {
        Confidence::High => 0.03,
        Confidence::Medium => 0.1,
        Confidence::Low => 0.4,
    }
}

/// Who is seldom alone at the head of the queue is no issue point: what it takes depends on where
/// control came from more than on itself.
const ISSUE_CYCLES_MIN: f64 = 0.2;

/// What may be hidden at the head of every block: an issue group shared with the block before, and
/// the bubble of a taken branch.
const BRIEF_CYCLES: f64 = 2.5;
/// As many samples as make it worth a word.
const BRIEF_SAMPLES: u64 = 40;
/// What fewer of them leave open, as a share of what runs most often.
const FAINT: f64 = 0.1;
/// How far that word may be off.
const BRIEF_ERROR: f64 = 1.5;

/// Blocks that run out of order: least cycles are a bound that is rarely met.
const OUT_OF_ORDER_ERROR: f64 = 0.6;

/// How far the rules are believed where runs were counted as well, relative to the value.
const RULES_BESIDE_COUNTS: f64 = 0.1;
/// As many standard deviations are a contradiction.
const CONTRADICTS: f64 = 2.0;

impl Evidence<'_> {
    /// What is known of every block, each class being told of once, and of every edge.
    pub(crate) fn seen(&self, least: &[Least]) -> (Vec<Option<Seen>>, Vec<Option<Seen>>) {
        let mut members: Vec<Vec<usize>> = vec![Vec::new(); self.classes.count];
        for (block, &class) in self.classes.of_block.iter().enumerate() {
            members[class].push(block);
        }
        let faint = FAINT * self.densest(least);
        let mut blocks = vec![None; self.graph.blocks.len()];
        for held in members.iter().filter(|held| !held.is_empty()) {
            let counted = fused(self.by_retired(held), self.by_doubles(held));
            let time = self.by_time(held, least, faint);
            let known = match counted {
                Some(counted) => beside_counts(time, counted),
                None => time,
            };
            // The same flow passes all of them: said once is enough.
            if let Some(first) = held.first().and_then(|&first| blocks.get_mut(first)) {
                *first = known;
            }
        }
        (blocks, self.by_branches())
    }

    fn steps<'b>(&'b self, blocks: &'b [usize]) -> impl Iterator<Item = usize> + 'b {
        let held = blocks.iter().filter_map(|&block| self.graph.blocks.get(block));
        held.flat_map(|block| block.first..block.end)
    }

    fn by_time(&self, blocks: &[usize], least: &[Least], faint: f64) -> Option<Seen> {
        let time = self.time.as_ref()?;
        let per_sample = time.period;
        if !self.is_in_order {
            let samples: u64 = self.steps(blocks).map(|step| time.by_step[step]).sum();
            let cycles: f64 = self.steps(blocks).map(|step| least[step].cycles).sum();
            // Work in an older one's shadow takes no time: few samples say little, and any number
            // of them says less than retired instructions do.
            if cycles <= 0.0 || self.retired.is_some() {
                return None;
            }
            let value = samples as f64 / cycles;
            let noise = (samples.max(1) as f64).sqrt() / cycles;
            if samples < BRIEF_SAMPLES {
                return Some(seen(value, noise + faint, 0.0).scaled(per_sample));
            }
            return Some(seen(value, noise, OUT_OF_ORDER_ERROR).scaled(per_sample));
        }
        let start_of = |step: usize| self.graph.block_at(self.graph.steps[step].address);
        let member = |step: usize| ClassMember {
            samples: time.by_step[step],
            least_cycles: Some(least[step].cycles)
                .filter(|&c| c >= ISSUE_CYCLES_MIN)
                .unwrap_or(0.0),
            waits_for: least[step]
                .maker
                .filter(|&maker| maker < step && start_of(maker) == start_of(step))
                .map(|maker| step - maker),
        };
        let members: Vec<ClassMember> = self.steps(blocks).map(member).collect();
        // So short a stretch may issue with what comes before it, and then takes no time at all:
        // few samples there say little, and more say how often it ran at least.
        let cycles: f64 = members.iter().map(|member| member.least_cycles).sum();
        let samples: u64 = members.iter().map(|member| member.samples).sum();
        let is_brief = cycles < BRIEF_CYCLES * blocks.len() as f64;
        if is_brief && samples < BRIEF_SAMPLES {
            let value = samples as f64 / cycles.max(1.0);
            return Some(seen(value, 1.0 + faint, 0.0).scaled(per_sample));
        }
        let found = in_order_frequency(&members, self.longest_stall_cycles)?;
        let estimate = found.frequency;
        let noise = estimate.standard_uncertainty;
        let relative = if is_brief { BRIEF_ERROR } else { rule_error(found.confidence) };
        Some(seen(estimate.value, noise, relative).scaled(per_sample))
    }

    /// The most samples per cycle that a block of some length has: what runs most often, about.
    fn densest(&self, least: &[Least]) -> f64 {
        let Some(time) = &self.time else { return 0.0 };
        let density = |block: &image::Block| {
            let cycles: f64 = least[block.first..block.end].iter().map(|it| it.cycles).sum();
            let samples: u64 = time.by_step[block.first..block.end].iter().sum();
            if cycles < 2.0 * BRIEF_CYCLES { 0.0 } else { samples as f64 / cycles }
        };
        self.graph.blocks.iter().map(density).fold(0.0, f64::max)
    }

    fn by_retired(&self, blocks: &[usize]) -> Option<Seen> {
        let retired = self.retired.as_ref()?;
        let count: u64 = self.steps(blocks).map(|step| retired.by_step[step]).sum();
        let instructions = self.steps(blocks).count();
        if instructions == 0 {
            return None;
        }
        let each = retired.period / instructions as f64;
        // One more than counted, so that nothing seen is not taken for nothing there.
        Some(Seen { value: count as f64 * each, variance: (count + 1) as f64 * each * each })
    }

    fn by_branches(&self) -> Vec<Option<Seen>> {
        let counted = |count: u64, period: f64| Seen {
            value: count as f64 * period,
            variance: (count + 1) as f64 * period * period,
        };
        let edge = |edge: &image::Edge| {
            let last = self.graph.blocks.get(edge.from)?.end.checked_sub(1)?;
            let (from, to) = (self.graph.steps.get(last)?, self.graph.blocks.get(edge.to)?);
            let to = self.graph.steps.get(to.first)?.address;
            let is_taken = edge.kind != EdgeKind::Fall;
            let from_stacks = self.branches.as_ref().filter(|_| is_taken).map(|branches| {
                let count = branches.seen.get(&(from.address, to)).copied().unwrap_or(0);
                counted(count, branches.period)
            });
            let is_direct = edge.kind == EdgeKind::Taken;
            let from_events =
                self.taken.as_ref().filter(|_| is_direct).and_then(|taken| {
                    Some(counted(taken.by_step.get(last).copied()?, taken.period))
                });
            fused(fused(from_stacks, from_events), self.edge_by_doubles(edge))
        };
        self.graph.edges.iter().map(edge).collect()
    }
}

impl Seen {
    fn scaled(self, factor: f64) -> Seen {
        Seen { value: self.value * factor, variance: self.variance * factor * factor }
    }
}

fn seen(value: f64, noise: f64, relative: f64) -> Seen {
    let rules = relative * value;
    Seen { value, variance: noise * noise + rules * rules }
}

/// Time beside what was counted. Rules can be misled and counts cannot: where the two contradict
/// each other, counts alone are believed, and elsewhere rules are trusted less than by themselves.
fn beside_counts(time: Option<Seen>, counted: Seen) -> Option<Seen> {
    let agrees = |time: &Seen| {
        let off = time.value - counted.value;
        off * off <= CONTRADICTS * CONTRADICTS * (time.variance + counted.variance)
    };
    let doubted = |time: Seen| {
        let rules = RULES_BESIDE_COUNTS * time.value;
        Seen { variance: time.variance + rules * rules, ..time }
    };
    fused(time.map(doubted).filter(agrees), Some(counted))
}

/// Two views of one thing, weighed by their precision.
pub(crate) fn fused(a: Option<Seen>, b: Option<Seen>) -> Option<Seen> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let (wa, wb) = (1.0 / a.variance, 1.0 / b.variance);
            let value = (wa * a.value + wb * b.value) / (wa + wb);
            Some(Seen { value, variance: 1.0 / (wa + wb) })
        }
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_precise_view_counts_for_more() {
        let rough = Seen { value: 200.0, variance: 900.0 };
        let fine = Seen { value: 100.0, variance: 100.0 };
        let both = fused(Some(rough), Some(fine)).unwrap();
        assert!((both.value - 110.0).abs() < 1e-9 && (both.variance - 90.0).abs() < 1e-9);
        assert_eq!(fused(None, Some(fine)), Some(fine));
    }

    #[test]
    fn time_that_contradicts_what_was_counted_is_left_out() {
        let counted = Seen { value: 100.0, variance: 4.0 };
        let stalled = Seen { value: 150.0, variance: 9.0 };
        assert_eq!(beside_counts(Some(stalled), counted), Some(counted));
        assert_eq!(beside_counts(None, counted), Some(counted));
        let near = beside_counts(Some(Seen { value: 104.0, variance: 9.0 }), counted).unwrap();
        assert!(near.value > 100.0 && near.value < 100.5, "{near:?}");
        assert!(near.variance < counted.variance);
    }
}
