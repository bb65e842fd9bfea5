//! The frequency of every block and edge, with how sure it is.

use image::FlowGraph;
use metrology::Estimate;

use super::classes::Classes;
use super::cluster::Confidence;
use super::evidence::Evidence;
use super::solve::{FlowSolution, Seen, nearest_flow_spread};
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
/// Frequencies and schedules depend on each other; more rounds change nothing.
const ROUNDS: usize = 2;

/// Estimates everything from what was seen.
pub(crate) fn estimate(evidence: &Evidence<'_>, plan: &Plan, pieces: &Pieces) -> Frequencies {
    let graph = evidence.graph;
    let mut least = plan.mixed(graph, pieces, None);
    let (mut blocks, mut edges) = evidence.seen(&least);
    let (mut flow, mut spread) = solved(graph, &blocks, &edges);
    for _ in 1..ROUNDS {
        let entered = entered(graph, &flow);
        least = plan.mixed(graph, pieces, Some((&flow.edges, &entered)));
        (blocks, edges) = evidence.seen(&least);
        (flow, spread) = solved(graph, &blocks, &edges);
    }
    let spread = spread.unwrap_or_else(|| own_spread(evidence, &blocks, &edges, &flow));
    let join = |values: &[f64], spreads: &[f64]| {
        values.iter().zip(spreads).map(|(&v, &s)| Estimate::known(v, s)).collect()
    };
    Frequencies {
        blocks: join(&flow.blocks, &spread.blocks),
        edges: join(&flow.edges, &spread.edges),
        least,
    }
}

/// The flow that balances; with missing edges none must, and every block speaks for itself.
fn solved(
    graph: &FlowGraph,
    blocks: &[Option<Seen>],
    edges: &[Option<Seen>],
) -> (FlowSolution, Option<FlowSolution>) {
    if !graph.has_missing_edges() {
        return nearest_flow_spread(graph, blocks, edges, DRAWN, LEAK);
    }
    let own: Vec<f64> = blocks.iter().map(|seen| seen.map_or(0.0, |seen| seen.value)).collect();
    let mut ways = vec![0_usize; graph.blocks.len()];
    graph.edges.iter().for_each(|edge| ways[edge.from] += 1);
    let edge = |(k, edge): (usize, &image::Edge)| match edges.get(k).copied().flatten() {
        Some(seen) => seen.value,
        // Ways out of the same block share alike where nothing else is known.
        None => own[edge.from].min(own[edge.to]) / ways[edge.from].max(1) as f64,
    };
    let edges = graph.edges.iter().enumerate().map(edge).collect();
    (FlowSolution { blocks: own, edges, imbalance: 0.0 }, None)
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

/// How far an estimate is to be trusted, by its uncertainty.
pub(crate) fn trust(estimate: Estimate) -> Confidence {
    let relative = estimate.standard_uncertainty / estimate.value.max(f64::MIN_POSITIVE);
    match relative {
        r if r <= 0.03 => Confidence::High,
        r if r <= 0.065 => Confidence::Medium,
        _ => Confidence::Low,
    }
}
