//! The frequency of every block and edge, with how sure it is.

use image::FlowGraph;
use metrology::Estimate;

use super::classes::Classes;
use super::cluster::Confidence;
use super::evidence::{Evidence, fused};
use super::solve::{FlowSolution, Seen, Settled};
use crate::code::Pieces;
use crate::plan::{Least, Plan};

/// How often everything ran.
#[derive(Clone, Debug)]
pub(crate) struct Frequencies {
    pub(crate) blocks: Vec<Estimate>,
    pub(crate) edges: Vec<Estimate>,
    /// The least cycles that the frequencies go with.
    pub(crate) least: Vec<Least>,
}

/// Draws whose spread tells the uncertainty: its own is then a sixth.
const DRAWN: usize = 20;
/// What a block may win or lose unseen: little, so that it matters only where the graph is wrong.
const LEAK: f64 = 0.02;
/// How many standard deviations chance may put between two views.
const CHANCE: f64 = 2.0;
/// Frequencies and schedules depend on each other; more rounds change nothing.
const ROUNDS: usize = 2;

/// Estimates everything from what was seen.
pub(crate) fn estimate(evidence: &Evidence<'_>, plan: &Plan, pieces: &Pieces) -> Frequencies {
    let graph = evidence.graph;
    let mut least = plan.mixed(graph, pieces, None);
    let mut views = evidence.seen(&least);
    let mut found = Found::of(evidence, &views, None);
    for _ in 1..ROUNDS {
        let entered = entered(graph, &found.flow);
        let again = plan.mixed(graph, pieces, Some((&found.flow.edges, &entered)));
        if again == least && !evidence.has_turns() {
            break;
        }
        least = again;
        let mut next = evidence.seen(&least);
        if evidence.has_turns() {
            // Shares of what a block ran need to know about how often that is.
            let ran = joined(&found.flow.blocks, &found.spread(evidence, &views).blocks);
            for (seen, edge) in next.1.iter_mut().zip(&graph.edges) {
                *seen = fused(*seen, evidence.edge_by_turns(edge, &ran));
            }
        }
        views = next;
        found = Found::of(evidence, &views, Some(found));
    }
    let spread = found.spread(evidence, &views);
    Frequencies {
        blocks: joined(&found.flow.blocks, &spread.blocks),
        edges: joined(&found.flow.edges, &spread.edges),
        least,
    }
}

/// What was seen of blocks and of edges.
type Views = (Vec<Option<Seen>>, Vec<Option<Seen>>);

/// A flow, and how it was settled, where anything binds blocks together.
struct Found {
    flow: FlowSolution,
    settled: Option<Settled>,
}

impl Found {
    fn of(evidence: &Evidence<'_>, (blocks, edges): &Views, before: Option<Found>) -> Found {
        let graph = evidence.graph;
        if graph.has_missing_edges() {
            return Found { flow: apart(graph, blocks, edges), settled: None };
        }
        let before = before.and_then(|found| found.settled);
        let settled = Settled::of(graph, blocks, edges, LEAK, before);
        Found { flow: settled.flow(), settled: Some(settled) }
    }

    /// Its standard deviations.
    fn spread(&self, evidence: &Evidence<'_>, (blocks, edges): &Views) -> FlowSolution {
        let drawn = self.settled.as_ref().and_then(|settled| settled.spread(DRAWN));
        let mut spread = drawn.unwrap_or_else(|| own_spread(evidence, blocks, edges, &self.flow));
        doubt(&mut spread, &self.flow, evidence.classes, blocks, edges);
        spread
    }
}

/// What was seen of something by itself is held against what flow makes of it. Where they differ by
/// more than chance may put between them, one of the two is wrong and nobody knows which: the
/// difference is as uncertain as that, for everything that must run as often. And nothing is known
/// better than the finest view of all: what flow puts at next to nothing may be a little more.
fn doubt(
    spread: &mut FlowSolution,
    flow: &FlowSolution,
    classes: &Classes,
    blocks: &[Option<Seen>],
    edges: &[Option<Seen>],
) {
    let mut excess = vec![0.0_f64; classes.count];
    let views = || blocks.iter().chain(edges).flatten();
    let finest = views().map(|seen| seen.variance.sqrt()).fold(f64::INFINITY, f64::min);
    let of_blocks = classes.of_block.iter().zip(blocks).zip(&flow.blocks);
    let of_edges = classes.of_edge.iter().zip(edges).zip(&flow.edges);
    for ((&class, seen), found) in of_blocks.chain(of_edges) {
        let Some(seen) = seen else { continue };
        let beyond = (found - seen.value).abs() - CHANCE * seen.variance.sqrt();
        excess[class] = excess[class].max(beyond);
    }
    let of_blocks = classes.of_block.iter().zip(&mut spread.blocks);
    let of_edges = classes.of_edge.iter().zip(&mut spread.edges);
    for (&class, spread) in of_blocks.chain(of_edges) {
        *spread = spread.hypot(excess[class]);
        // Without any view there is nothing to compare with, and no flow either.
        *spread = if finest.is_finite() { spread.max(finest) } else { *spread };
    }
}

fn joined(values: &[f64], spreads: &[f64]) -> Vec<Estimate> {
    values.iter().zip(spreads).map(|(&v, &s)| Estimate::known(v, s)).collect()
}

/// With missing edges no flow must balance, and every block speaks for itself.
fn apart(graph: &FlowGraph, blocks: &[Option<Seen>], edges: &[Option<Seen>]) -> FlowSolution {
    let own: Vec<f64> = blocks.iter().map(|seen| seen.map_or(0.0, |seen| seen.value)).collect();
    let mut ways = vec![0_usize; graph.blocks.len()];
    graph.edges.iter().for_each(|edge| ways[edge.from] += 1);
    let edge = |(k, edge): (usize, &image::Edge)| match edges.get(k).copied().flatten() {
        Some(seen) => seen.value,
        // Ways out of the same block share alike where nothing else is known.
        None => own[edge.from].min(own[edge.to]) / ways[edge.from].max(1) as f64,
    };
    let edges = graph.edges.iter().enumerate().map(edge).collect();
    FlowSolution { blocks: own, edges, imbalance: 0.0 }
}

/// How often each block was entered from outside.
fn entered(graph: &FlowGraph, flow: &FlowSolution) -> Vec<f64> {
    let mut entered = flow.blocks.clone();
    for (edge, &taken) in graph.edges.iter().zip(&flow.edges) {
        entered[edge.to] -= taken;
    }
    entered.iter().map(|&rest| rest.max(0.0)).collect()
}

/// Where no flow binds blocks together, each has the uncertainty of what was seen of it.
fn own_spread(
    evidence: &Evidence<'_>,
    blocks: &[Option<Seen>],
    edges: &[Option<Seen>],
    flow: &FlowSolution,
) -> FlowSolution {
    let largest = flow.blocks.iter().copied().fold(0.0, f64::max);
    let Classes { of_block, count, .. } = evidence.classes;
    let mut by_class = vec![None; *count];
    for (&class, seen) in of_block.iter().zip(blocks) {
        if let Some(seen) = seen {
            by_class[class] = Some(seen.variance.sqrt());
        }
    }
    let of_edge = |(seen, &value): (&Option<Seen>, &f64)| seen.map_or(value, |s| s.variance.sqrt());
    FlowSolution {
        blocks: of_block.iter().map(|&class| by_class[class].unwrap_or(largest)).collect(),
        edges: edges.iter().zip(&flow.edges).map(of_edge).collect(),
        imbalance: 0.0,
    }
}

/// An estimate that is off by so much is wrong.
const WRONG: f64 = 0.15;

/// How far an estimate is to be trusted: how many standard deviations it is from being wrong. Where
/// samples are many and the rest is right, most of what is wrong is so by chance, and chance puts
/// three deviations between once in four hundred times: a sixth of gzip's and mcf's wrong estimates
/// were of that kind. Four happen once in sixteen thousand times. What is put at nothing may have
/// run a little, and any little is infinitely more.
pub(crate) fn trust(estimate: Estimate) -> Confidence {
    if estimate.value <= 0.0 {
        return Confidence::Low;
    }
    let relative = estimate.standard_uncertainty / estimate.value;
    match WRONG / relative.max(f64::MIN_POSITIVE) {
        deviations if deviations >= 6.0 => Confidence::High,
        deviations if deviations >= 4.0 => Confidence::Medium,
        _ => Confidence::Low,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_how_many_deviations_are_left_until_an_estimate_is_wrong() {
        let of = |sigma: f64| trust(Estimate::known(200.0, sigma));
        assert_eq!(of(0.0), Confidence::High);
        assert_eq!(of(4.9), Confidence::High);
        assert_eq!(of(5.1), Confidence::Medium);
        assert_eq!(of(7.4), Confidence::Medium);
        assert_eq!(of(7.6), Confidence::Low);
        assert_eq!(trust(Estimate::known(0.0, 0.0)), Confidence::Low);
    }

    #[test]
    fn what_contradicts_flow_is_doubted_with_all_that_runs_alike() {
        let classes = Classes { of_block: vec![0, 1, 0], of_edge: vec![1, 0], count: 2 };
        let flow = FlowSolution {
            blocks: vec![100.0, 50.0, 100.0],
            edges: vec![50.0, 100.0],
            imbalance: 0.0,
        };
        let mut spread = FlowSolution { blocks: vec![3.0; 3], edges: vec![3.0; 2], imbalance: 0.0 };
        let seen = |value: f64| Some(Seen { value, variance: 16.0 });
        // Block 0 was seen 112 times: 4 more than two deviations of 4 explain.
        doubt(&mut spread, &flow, &classes, &[seen(112.0), seen(57.0), None], &[None, None]);
        assert_eq!(spread.blocks, [5.0, 4.0, 5.0]);
        assert_eq!(spread.edges, [4.0, 5.0]);
    }
}
