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
//! x = max(0, seen + variance·(π_to − π_from)): prices are found by Newton's method, whose step
//! is the solution of a resistor network with conductances `variance`.

use image::FlowGraph;
use metrology::Draws;

use super::classes::closed;
use super::eliminate::Factors;

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
/// Newton's steps at most. Each settles which ways carry nothing; a few do as a rule.
const STEPS_MAX: usize = 60;
/// What every place leaks, so that the network has a ground.
const GROUND: f64 = 1e-15;
/// Nothing is known better than this, in units of the largest flow: tighter views would drown the
/// others in rounding.
const VARIANCE_MIN: f64 = 1e-9;
/// Good enough.
const IMBALANCE: f64 = 1e-9;

/// The flow nearest to what was seen of each block and edge.
pub fn nearest_flow(
    graph: &FlowGraph,
    blocks: &[Option<Seen>],
    edges: &[Option<Seen>],
) -> FlowSolution {
    nearest_flow_spread(graph, blocks, edges, 0, 0.0).0
}

/// The same, with its standard deviation from so many draws; none of them, no deviation.
///
/// Graphs are not always whole: an exception lands, a call that should come back does not. So a
/// block may win or lose a `leak` of what was seen of it, one standard deviation.
pub(super) fn nearest_flow_spread(
    graph: &FlowGraph,
    blocks: &[Option<Seen>],
    edges: &[Option<Seen>],
    drawn: usize,
    leak: f64,
) -> (FlowSolution, Option<FlowSolution>) {
    let ways = closed(graph);
    let seen: Vec<Option<Seen>> = blocks.iter().chain(edges).copied().collect();
    let largest = seen.iter().flatten().fold(0.0_f64, |most, seen| most.max(seen.value));
    if largest <= 0.0 {
        let (blocks, edges) = (vec![0.0; graph.blocks.len()], vec![0.0; graph.edges.len()]);
        return (FlowSolution { blocks, edges, imbalance: 0.0 }, None);
    }
    // In units of the largest, so that tolerances have a meaning.
    let unseen = Seen { value: 0.0, variance: UNSEEN_SPREAD * UNSEEN_SPREAD };
    let way = |(k, &(from, to)): (usize, &(usize, usize))| {
        let scale = |seen: Seen| Seen {
            value: seen.value / largest,
            variance: (seen.variance / (largest * largest)).max(VARIANCE_MIN),
        };
        let held = seen.get(k).copied().flatten();
        Way { from, to, seen: held.map_or(unseen, scale), is_seen: held.is_some(), is_leak: false }
    };
    let mut ways: Vec<Way> = ways.iter().enumerate().map(way).collect();
    let start = 2 * graph.blocks.len();
    for (block, seen) in blocks.iter().enumerate().filter(|_| leak > 0.0) {
        let Some(seen) = seen else { continue };
        let deviation = leak * seen.value / largest;
        let variance = (deviation * deviation).max(VARIANCE_MIN);
        let seen = Seen { value: 0.0, variance };
        ways.push(Way { from: start, to: 2 * block, seen, is_seen: false, is_leak: true });
        ways.push(Way { from: 2 * block + 1, to: start, seen, is_seen: false, is_leak: true });
    }
    let mut network = Network::new(2 * graph.blocks.len() + 1, ways);
    let imbalance = network.settle();
    let parted = |values: Vec<f64>| {
        let all: Vec<f64> = values.iter().map(|x| x * largest).collect();
        let (blocks, rest) = all.split_at(graph.blocks.len());
        let edges = rest.get(..graph.edges.len()).unwrap_or_default().to_vec();
        FlowSolution { blocks: blocks.to_vec(), edges, imbalance }
    };
    let spread = if drawn > 0 { network.spread(drawn).map(parted) } else { None };
    (parted(network.flow()), spread)
}

#[derive(Clone, Copy, Debug)]
struct Way {
    from: usize,
    to: usize,
    seen: Seen,
    /// Whether anything was seen at all.
    is_seen: bool,
    /// Whether it is no way of the graph, but one that may be missing there.
    is_leak: bool,
}

impl Way {
    /// Before it is kept from being negative.
    fn wish(&self, price: &[f64]) -> f64 {
        self.seen.value + self.seen.variance * (price[self.to] - price[self.from])
    }
}

#[derive(Debug)]
struct Network {
    ways: Vec<Way>,
    price: Vec<f64>,
}

impl Network {
    fn new(places: usize, ways: Vec<Way>) -> Network {
        Network { ways, price: vec![0.0; places] }
    }

    fn flow(&self) -> Vec<f64> {
        self.ways.iter().map(|way| way.wish(&self.price).max(0.0)).collect()
    }

    /// What stays behind at every place.
    fn surplus(&self, price: &[f64]) -> Vec<f64> {
        let mut surplus = vec![0.0; price.len()];
        for way in &self.ways {
            let x = way.wish(price).max(0.0);
            surplus[way.to] += x;
            surplus[way.from] -= x;
        }
        surplus
    }

    /// What is minimised: the square of positive wishes over their variances; its slope is the
    /// surplus.
    fn height(&self, price: &[f64]) -> f64 {
        let part = |way: &Way| way.wish(price).max(0.0).powi(2) / (2.0 * way.seen.variance);
        self.ways.iter().map(part).sum()
    }

    /// Newton's method with halved steps; returns the imbalance that is left.
    fn settle(&mut self) -> f64 {
        for _ in 0..STEPS_MAX {
            let surplus = self.surplus(&self.price);
            let imbalance = largest(&surplus);
            if imbalance < IMBALANCE {
                return imbalance;
            }
            let step = self.step(&surplus);
            if !self.walk(&step, &surplus) {
                return imbalance;
            }
        }
        largest(&self.surplus(&self.price))
    }

    /// Goes along a step as far as it helps; whether it did at all.
    fn walk(&mut self, step: &[f64], surplus: &[f64]) -> bool {
        let slope: f64 = step.iter().zip(surplus).map(|(a, b)| a * b).sum();
        let before = self.height(&self.price);
        let mut length = 1.0;
        for _ in 0..40 {
            let tried: Vec<f64> =
                self.price.iter().zip(step).map(|(p, s)| p - length * s).collect();
            // Near the bottom the height is all rounding; there the imbalance tells.
            let helps = || largest(&self.surplus(&tried)) < 0.9 * largest(surplus);
            if self.height(&tried) <= before - 1e-4 * length * slope || helps() {
                let moved = tried != self.price;
                self.price = tried;
                return moved;
            }
            length *= 0.5;
        }
        false
    }

    /// Conductances as they are now: ways that carry nothing conduct a little, so that no place is
    /// cut off.
    fn conductances(&self) -> Vec<f64> {
        let conductance = |way: &Way| {
            let open = way.wish(&self.price) > 0.0;
            way.seen.variance * if open { 1.0 } else { 1e-9 }
        };
        self.ways.iter().map(conductance).collect()
    }

    fn factors(&self) -> Option<Factors> {
        let conductances = self.conductances();
        let ways = self.ways.iter().zip(&conductances).map(|(way, &c)| (way.from, way.to, c));
        Factors::of(self.price.len(), ways, GROUND)
    }

    /// Solves the resistor network for the surplus; by conjugate gradients where it cannot be
    /// taken apart.
    fn step(&self, surplus: &[f64]) -> Vec<f64> {
        if let Some(factors) = self.factors() {
            return factors.solve(surplus);
        }
        let conductances = self.conductances();
        let mut diagonal = vec![GROUND; surplus.len()];
        for (way, c) in self.ways.iter().zip(&conductances) {
            diagonal[way.from] += c;
            diagonal[way.to] += c;
        }
        conjugate_gradients(surplus, &diagonal, |v, out| {
            out.iter_mut().zip(v).for_each(|(out, v)| *out = GROUND * v);
            for (way, c) in self.ways.iter().zip(&conductances) {
                let current = c * (v[way.from] - v[way.to]);
                out[way.from] += current;
                out[way.to] -= current;
            }
        })
    }

    /// How far each way's flow moves, one standard deviation, when what was seen moves within its
    /// own: drawn, because the whole covariance would be a square of the procedure.
    fn spread(&self, drawn: usize) -> Option<Vec<f64>> {
        let factors = self.factors()?;
        let open: Vec<bool> = self.ways.iter().map(|way| way.wish(&self.price) > 0.0).collect();
        let mut draws = Draws::new(self.ways.len() as u64);
        let mut squares = vec![0.0; self.ways.len()];
        for _ in 0..drawn {
            let moved: Vec<f64> =
                self.ways.iter().map(|way| draws.normal() * way.seen.variance.sqrt()).collect();
            let mut surplus = vec![0.0; self.price.len()];
            for ((way, moved), _) in self.ways.iter().zip(&moved).zip(&open).filter(|(_, o)| **o) {
                surplus[way.to] += moved;
                surplus[way.from] -= moved;
            }
            let price = factors.solve(&surplus);
            let all = self.ways.iter().zip(&moved).zip(&open).zip(&mut squares);
            for (((way, moved), &is_open), square) in all {
                // A way that carries nothing would have to move further to carry something.
                let x = if is_open {
                    moved - way.seen.variance * (price[way.to] - price[way.from])
                } else {
                    (way.wish(&self.price) + moved).max(0.0)
                };
                *square += x * x / drawn as f64;
            }
        }
        let strain = self.strain();
        Some(squares.into_iter().map(|square| strain * f64::sqrt(square)).collect())
    }

    /// How much more the views contradict each other than their variances allow, 1 where they do
    /// not: then the variances were too small by this factor (Birge's ratio).
    fn strain(&self) -> f64 {
        let mut seen = 0;
        let mut squares = 0.0;
        for way in self.ways.iter().filter(|way| way.is_seen || way.is_leak) {
            let off = way.wish(&self.price).max(0.0) - way.seen.value;
            squares += off * off / way.seen.variance;
            seen += usize::from(way.is_seen);
        }
        // A flow has as many free numbers as the network has loops, leaks apart.
        let leaks = self.ways.iter().filter(|way| way.is_leak).count();
        let free = (self.ways.len() + 1).saturating_sub(self.price.len() + leaks);
        let bound = seen.max(free) - free;
        if bound == 0 { 1.0 } else { (squares / bound as f64).sqrt().max(1.0) }
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().fold(0.0, |most, value| value.abs().max(most))
}

/// Solves A·x = b for a symmetric A with the given diagonal.
fn conjugate_gradients(
    b: &[f64],
    diagonal: &[f64],
    apply: impl Fn(&[f64], &mut [f64]),
) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let scaled = |r: &[f64]| r.iter().zip(diagonal).map(|(r, d)| r / d).collect::<Vec<f64>>();
    let mut x = vec![0.0; b.len()];
    let mut residual = b.to_vec();
    let mut z = scaled(&residual);
    let mut direction = z.clone();
    let mut rho = dot(&residual, &z);
    let goal = rho * 1e-24;
    let mut image = vec![0.0; b.len()];
    // In exact arithmetic as many rounds as places suffice.
    for _ in 0..(2 * b.len() + 50).min(20_000) {
        if rho <= goal {
            break;
        }
        apply(&direction, &mut image);
        let curvature = dot(&direction, &image);
        if curvature <= 0.0 {
            break;
        }
        let alpha = rho / curvature;
        x.iter_mut().zip(&direction).for_each(|(x, d)| *x += alpha * d);
        residual.iter_mut().zip(&image).for_each(|(r, i)| *r -= alpha * i);
        z = scaled(&residual);
        let next = dot(&residual, &z);
        direction.iter_mut().zip(&z).for_each(|(d, z)| *d = z + next / rho * *d);
        rho = next;
    }
    x
}
