//! All frequencies of a procedure at once: the flow nearest to what was seen.
//!
//! What is known of single blocks and edges rarely balances. Among all flows that do, we take the
//! one that departs least from it, each departure weighed by its precision:
//!
//! ```text
//! minimise  Σ (x − seen)² / 2·variance     over blocks and edges that were seen
//! such that what enters a place leaves it, and no x is negative
//! ```
//!
//! It is a convex min-cost flow. With a price π for every place, the best flow along a way is
//! x = max(0, seen + variance·(π_to − π_from)): see `network` for how prices are found.

use image::FlowGraph;

use super::classes::closed;
use super::network::{Network, VARIANCE_MIN, Way};

/// What was seen of one block or edge.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seen {
    /// How often it ran, as far as seen.
    pub value: f64,
    /// The square of the standard uncertainty; positive.
    pub variance: f64,
}

/// A balanced flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowSolution {
    /// How often each block ran.
    pub blocks: Vec<f64>,
    /// How often each edge was taken.
    pub edges: Vec<f64>,
    /// The largest imbalance left, relative to the largest flow.
    pub imbalance: f64,
}

/// Of what was not seen at all: this many times the largest flow seen.
const UNSEEN_SPREAD: f64 = 30.0;

/// The flow nearest to what was seen of each block and edge.
pub fn nearest_flow(
    graph: &FlowGraph,
    blocks: &[Option<Seen>],
    edges: &[Option<Seen>],
) -> FlowSolution {
    Settled::of(graph, blocks, edges, 0.0, None).flow()
}

/// A flow that is settled: it tells its deviations, and a similar one may start from it.
#[derive(Debug)]
pub(super) struct Settled {
    /// None where nothing was seen: nothing flows.
    network: Option<Network>,
    /// The unit of the network's flows.
    largest: f64,
    imbalance: f64,
    blocks: usize,
    edges: usize,
}

impl Settled {
    /// Graphs are not always whole: an exception lands, a call that should come back does not. So a
    /// block may win or lose a `leak` of what was seen of it, one standard deviation.
    pub(super) fn of(
        graph: &FlowGraph,
        blocks: &[Option<Seen>],
        edges: &[Option<Seen>],
        leak: f64,
        before: Option<Settled>,
    ) -> Settled {
        let seen = || blocks.iter().chain(edges).flatten();
        let largest = seen().fold(0.0_f64, |most, seen| most.max(seen.value));
        let mut settled = Settled {
            network: None,
            largest,
            imbalance: 0.0,
            blocks: graph.blocks.len(),
            edges: graph.edges.len(),
        };
        if largest > 0.0 {
            let ways = ways(graph, blocks, edges, (leak, largest));
            // Prices are what a unit of flow costs: they grow with the unit.
            let before =
                before.and_then(|it| Some((it.network?, largest / it.largest.max(largest * 1e-9))));
            let mut network = Network::new(2 * graph.blocks.len() + 1, ways, before);
            settled.imbalance = network.settle();
            settled.network = Some(network);
        }
        settled
    }

    /// The flow.
    pub(super) fn flow(&self) -> FlowSolution {
        match &self.network {
            Some(network) => self.parted(&network.flow()),
            None => self.parted(&vec![0.0; self.blocks + self.edges]),
        }
    }

    /// Its standard deviation, from so many draws.
    pub(super) fn spread(&self, drawn: usize) -> Option<FlowSolution> {
        Some(self.parted(&self.network.as_ref()?.spread(drawn)?))
    }

    fn parted(&self, values: &[f64]) -> FlowSolution {
        let all: Vec<f64> = values.iter().map(|x| x * self.largest).collect();
        let (blocks, rest) = all.split_at(self.blocks);
        let edges = rest.get(..self.edges).unwrap_or_default().to_vec();
        FlowSolution { blocks: blocks.to_vec(), edges, imbalance: self.imbalance }
    }
}

/// The graph's ways, and those that may be missing in it, in units of the largest flow, so that
/// tolerances have a meaning.
fn ways(
    graph: &FlowGraph,
    blocks: &[Option<Seen>],
    edges: &[Option<Seen>],
    (leak, largest): (f64, f64),
) -> Vec<Way> {
    let unseen = Seen { value: 0.0, variance: UNSEEN_SPREAD * UNSEEN_SPREAD };
    let scale = |seen: Seen| Seen {
        value: seen.value / largest,
        variance: (seen.variance / (largest * largest)).max(VARIANCE_MIN),
    };
    let all: Vec<Option<Seen>> = blocks.iter().chain(edges).copied().collect();
    let way = |(k, (from, to)): (usize, (usize, usize))| {
        let held = all.get(k).copied().flatten();
        Way { from, to, seen: held.map_or(unseen, scale), is_seen: held.is_some(), is_leak: false }
    };
    let mut ways: Vec<Way> = closed(graph).into_iter().enumerate().map(way).collect();
    let start = 2 * graph.blocks.len();
    for (block, seen) in blocks.iter().enumerate().filter(|_| leak > 0.0) {
        let Some(seen) = seen else { continue };
        let deviation = leak * seen.value / largest;
        let variance = (deviation * deviation).max(VARIANCE_MIN);
        let seen = Seen { value: 0.0, variance };
        ways.push(Way { from: start, to: 2 * block, seen, is_seen: false, is_leak: true });
        ways.push(Way { from: 2 * block + 1, to: start, seen, is_seen: false, is_leak: true });
    }
    ways
}
