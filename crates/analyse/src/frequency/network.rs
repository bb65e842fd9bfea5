//! The prices of a flow, and how far it may be off.
//!
//! Newton's step on prices is the solution of a resistor network with conductances `variance`. It
//! ends after a step or two once it is known which ways carry nothing; who they are is taken from a
//! flow that was much the same, or found from the inside (see `interior`), as closely as it takes.

use metrology::Draws;

use super::eliminate::{Factors, Order};
use super::interior::{Inside, NEAR, NEAREST, Span, unbounded};
use super::solve::Seen;

/// Newton's steps at most. Each settles which ways carry nothing; a few do as a rule.
const STEPS_MAX: usize = 60;
/// Steps from the prices that were found from the inside. One or two do; where a dozen do not, what is
/// left is rounding.
const STEPS_LAST: usize = 12;
/// Steps from prices that are nearly right, or those of a similar network; if they do not suffice
/// those were too far off.
const STEPS_BEGUN: usize = 6;
/// What every place leaks, so that the network has a ground.
const GROUND: f64 = 1e-15;
/// Nothing is known better than this, in units of the largest flow: tighter views would drown the
/// others in rounding.
pub(super) const VARIANCE_MIN: f64 = 1e-9;
/// Good enough.
const IMBALANCE: f64 = 1e-9;

/// A way between two places.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) seen: Seen,
    /// Whether anything was seen at all.
    pub(super) is_seen: bool,
    /// Whether it is no way of the graph, but one that may be missing there.
    pub(super) is_leak: bool,
}

impl Way {
    /// Before it is kept from being negative.
    fn wish(&self, price: &[f64]) -> f64 {
        self.seen.value + self.seen.variance * (price[self.to] - price[self.from])
    }

    /// The mean square of what a way carries whose wish is for nothing or less: what was seen of it
    /// would have to move that far first, E[max(0, wish + deviation·Z)²].
    fn little(&self, wish: f64) -> f64 {
        let deviation = self.seen.variance.sqrt();
        let short = wish.min(0.0) / deviation;
        let density = (-0.5 * short * short).exp() / std::f64::consts::TAU.sqrt();
        let square = (short * short + 1.0) * metrology::normal_cdf(short) + short * density;
        self.seen.variance * square.max(0.0)
    }
}

/// So many draws are solved for at a time.
const LANES: usize = 4;

/// One deviation up or down in each lane, by the lowest bits.
fn up_or_down(bits: u64, deviation: f64) -> [f64; LANES] {
    std::array::from_fn(|lane| if bits >> lane & 1 == 0 { deviation } else { -deviation })
}

/// Places, the ways between them, and prices.
#[derive(Debug)]
pub(super) struct Network {
    ways: Vec<Way>,
    price: Vec<f64>,
    /// How it is taken apart, if it can be.
    order: Option<Order>,
    /// Whether prices are those of a similar network.
    is_begun: bool,
}

impl Network {
    /// A network; one that was settled before, and what its prices are now worth, are where to
    /// start if the ways are the same.
    pub(super) fn new(places: usize, ways: Vec<Way>, before: Option<(Network, f64)>) -> Network {
        let ends = |way: &Way| (way.from, way.to);
        let is_same =
            |(before, _): &(Network, f64)| before.ways.iter().map(ends).eq(ways.iter().map(ends));
        match before.filter(is_same) {
            Some((before, worth)) => {
                let price = before.price.iter().map(|price| price * worth).collect();
                Network { ways, price, order: before.order, is_begun: true }
            }
            None => {
                let order = Order::of(places, ways.iter().map(ends));
                Network { ways, price: vec![0.0; places], order, is_begun: false }
            }
        }
    }

    /// What every way carries.
    pub(super) fn flow(&self) -> Vec<f64> {
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

    /// Finds the prices; returns the imbalance that is left.
    pub(super) fn settle(&mut self) -> f64 {
        if self.is_begun {
            let imbalance = self.newton(STEPS_BEGUN);
            if imbalance < IMBALANCE {
                return imbalance;
            }
        }
        if let Some(order) = &self.order {
            let span = |way: &Way| Span {
                from: way.from,
                to: way.to,
                value: way.seen.value,
                variance: way.seen.variance,
            };
            let spans: Vec<Span> = self.ways.iter().map(span).collect();
            self.price = unbounded(&spans, self.price.len(), order, GROUND);
            let mut inside = Inside::new(&spans, self.price.len());
            for (near, steps) in [(None, 0), (Some(NEAR), STEPS_BEGUN)] {
                if let (Some(near), Some(order)) = (near, &self.order) {
                    self.price = inside.prices(near, order, GROUND);
                }
                let imbalance = self.newton(steps);
                if imbalance < IMBALANCE {
                    return imbalance;
                }
            }
            if let Some(order) = &self.order {
                self.price = inside.prices(NEAREST, order, GROUND);
            }
        }
        self.newton(if self.order.is_some() { STEPS_LAST } else { STEPS_MAX })
    }

    /// Newton's method with halved steps; returns the imbalance that is left.
    fn newton(&mut self, steps: usize) -> f64 {
        for _ in 0..steps {
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

    fn factors(&self) -> Option<Factors<'_>> {
        Some(self.order.as_ref()?.factors(&self.conductances(), GROUND))
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
    /// own: drawn, because the whole covariance would be a square of the procedure. Flows answer in
    /// proportion, so each view moves by one deviation up or down, which tells the mean square with
    /// less scatter than normal draws do.
    pub(super) fn spread(&self, drawn: usize) -> Option<Vec<f64>> {
        let factors = self.factors()?;
        let strain = self.strain();
        let rounds = drawn.div_ceil(LANES);
        let open: Vec<(usize, &Way, f64)> = (self.ways.iter().enumerate())
            .filter(|(_, way)| way.wish(&self.price) > 0.0)
            .map(|(k, way)| (k, way, way.seen.variance.sqrt()))
            .collect();
        let mut squares: Vec<f64> =
            self.ways.iter().map(|way| way.little(way.wish(&self.price))).collect();
        open.iter().for_each(|&(k, ..)| squares[k] = 0.0);
        let mut draws = Draws::new(self.ways.len() as u64);
        let mut moved = vec![[0.0; LANES]; open.len()];
        let mut lanes = vec![[0.0; LANES]; self.price.len()];
        for _ in 0..rounds {
            lanes.fill([0.0; LANES]);
            for (&(_, way, deviation), moved) in open.iter().zip(&mut moved) {
                *moved = up_or_down(draws.bits(), deviation);
                (0..LANES).for_each(|lane| lanes[way.to][lane] += moved[lane]);
                (0..LANES).for_each(|lane| lanes[way.from][lane] -= moved[lane]);
            }
            factors.solve_lanes(&mut lanes);
            for (&(k, way, _), moved) in open.iter().zip(&moved) {
                let (to, from) = (&lanes[way.to], &lanes[way.from]);
                let x = |lane: usize| moved[lane] - way.seen.variance * (to[lane] - from[lane]);
                squares[k] += (0..LANES).map(|lane| x(lane).powi(2)).sum::<f64>();
            }
        }
        let many = (rounds * LANES) as f64;
        open.iter().for_each(|&(k, ..)| squares[k] /= many);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_that_carries_nothing_may_carry_what_its_view_leaves_above_nothing() {
        let seen = Seen { value: 0.0, variance: 4.0 };
        let way = Way { from: 0, to: 1, seen, is_seen: true, is_leak: false };
        // In units of the variance: one half; (1 + 1)·Φ(−1) − φ(1); nothing.
        for (wish, square) in [(0.0, 0.5), (-2.0, 0.075_339_6), (-60.0, 0.0)] {
            assert!((way.little(wish) / 4.0 - square).abs() < 1e-6, "{wish}");
        }
        let mut draws = Draws::new(3);
        let mean: f64 =
            (0..100_000).map(|_| (2.0 * draws.normal() - 2.0).max(0.0).powi(2) / 100_000.0).sum();
        assert!((mean / way.little(-2.0) - 1.0).abs() < 0.06, "{mean}");
    }
}
