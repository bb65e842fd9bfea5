//! The prices of a flow in which nothing is negative, from the inside.
//!
//! Newton's method on prices alone does not know which ways carry nothing, and may try sets of them
//! for ever. Here every way keeps a distance from nothing, which shrinks in step with the rest
//! (Mehrotra's predictor and corrector):
//!
//! ```text
//! (x − seen)/variance − (π_to − π_from) − z = 0      best for its prices
//! what enters a place leaves it                      a flow
//! x·z = μ, μ → 0                                     either it carries something, or z keeps it at 0
//! ```
//!
//! Each round is a resistor network with conductances 1/(1/variance + z/x): the order in which it
//! is taken apart is that of the flow.

use super::eliminate::{Factors, Order};

/// A way between two places: what was seen of it, and how far that may be off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) value: f64,
    pub(super) variance: f64,
}

/// Rounds at most; twenty are many.
const ROUNDS_MAX: usize = 50;
/// Good enough: what is left is a matter of a step or two on prices.
const IMBALANCE: f64 = 1e-9;
/// So close as a rule that it is clear who carries nothing; and as close as numbers go.
pub(super) const NEAR: f64 = 1e-6;
pub(super) const NEAREST: f64 = 1e-13;
/// Where to start, in squares of deviations: far from all bounds, since nobody knows yet which hold.
const START: f64 = 100.0;
/// How much of the way to the next bound is gone.
const SHORT_OF_BOUND: f64 = 0.99;

/// A point inside.
pub(super) struct Inside<'a> {
    spans: &'a [Span],
    x: Vec<f64>,
    z: Vec<f64>,
    price: Vec<f64>,
}

/// A move: of flows, of what keeps them from being negative, and of prices.
struct Move {
    x: Vec<f64>,
    z: Vec<f64>,
    price: Vec<f64>,
}

/// The prices if flows might be negative.
pub(super) fn unbounded(spans: &[Span], places: usize, order: &Order, ground: f64) -> Vec<f64> {
    let seen: Vec<f64> = spans.iter().map(|span| span.value).collect();
    let variances: Vec<f64> = spans.iter().map(|span| span.variance).collect();
    let step = order.factors(&variances, ground).solve(&surplus(spans, &seen, places));
    step.into_iter().map(|step| -step).collect()
}

/// What stays behind at every place.
fn surplus(spans: &[Span], x: &[f64], places: usize) -> Vec<f64> {
    let mut surplus = vec![0.0; places];
    for (span, x) in spans.iter().zip(x) {
        surplus[span.to] += x;
        surplus[span.from] -= x;
    }
    surplus
}

impl<'a> Inside<'a> {
    /// Far from every bound.
    pub(super) fn new(spans: &'a [Span], places: usize) -> Inside<'a> {
        let start = |span: &Span| {
            // Best for prices of 0 at this distance.
            let root = (span.value * span.value + 4.0 * START * span.variance).sqrt();
            (span.value + root) / 2.0
        };
        let x: Vec<f64> = spans.iter().map(start).collect();
        let z = x.iter().map(|x| START / x).collect();
        Inside { spans, x, z, price: vec![0.0; places] }
    }

    /// The prices of the nearest flow, as near as asked for; from where it stands.
    pub(super) fn prices(&mut self, near: f64, order: &Order, ground: f64) -> Vec<f64> {
        for _ in 0..ROUNDS_MAX {
            if !self.approach(near, order, ground) {
                break;
            }
        }
        self.price.clone()
    }

    /// Goes one round; whether another is worth while.
    fn approach(&mut self, near: f64, order: &Order, ground: f64) -> bool {
        let surplus = surplus(self.spans, &self.x, self.price.len());
        let imbalance = surplus.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        let distance = self.distance(None, 0.0);
        // Where bounds are far, flows may well be out of balance by as much.
        if imbalance < IMBALANCE.max(near) && distance < near {
            return false;
        }
        let conducts = |((span, x), z): ((&Span, &f64), &f64)| 1.0 / (1.0 / span.variance + z / x);
        let conductances: Vec<f64> =
            self.spans.iter().zip(&self.x).zip(&self.z).map(conducts).collect();
        let factors = order.factors(&conductances, ground);
        let nothing = vec![0.0; self.x.len()];
        let predicted = self.step(&factors, &conductances, &surplus, &nothing);
        let ahead = self.distance(Some(&predicted), self.length(&predicted));
        let centre = distance * (ahead / distance).powi(3);
        let correction: Vec<f64> =
            predicted.x.iter().zip(&predicted.z).map(|(x, z)| centre - x * z).collect();
        let step = self.step(&factors, &conductances, &surplus, &correction);
        let length = (SHORT_OF_BOUND * self.length(&step)).min(1.0);
        if !length.is_finite() || length < 1e-10 {
            return false;
        }
        for (held, step) in
            [(&mut self.x, &step.x), (&mut self.z, &step.z), (&mut self.price, &step.price)]
        {
            held.iter_mut().zip(step).for_each(|(held, step)| *held += length * step);
        }
        true
    }

    /// The move that would balance everything at once and bring x·z to `target`.
    fn step(
        &self,
        factors: &Factors<'_>,
        conductances: &[f64],
        surplus: &[f64],
        target: &[f64],
    ) -> Move {
        let drive = |(k, span): (usize, &Span)| {
            let x = self.x[k];
            let off =
                (x - span.value) / span.variance - (self.price[span.to] - self.price[span.from]);
            // The bound's own pull, −z, cancels that within `off − z`.
            target[k] / x - off
        };
        let drives: Vec<f64> = self.spans.iter().enumerate().map(drive).collect();
        let mut currents: Vec<f64> = surplus.iter().map(|it| -it).collect();
        for ((span, drive), conductance) in self.spans.iter().zip(&drives).zip(conductances) {
            let driven = conductance * drive;
            currents[span.to] -= driven;
            currents[span.from] += driven;
        }
        let price = factors.solve(&currents);
        let mut step = Move { x: vec![0.0; drives.len()], z: vec![0.0; drives.len()], price };
        for (k, span) in self.spans.iter().enumerate() {
            let pull = step.price[span.to] - step.price[span.from];
            step.x[k] = conductances[k] * (pull + drives[k]);
            step.z[k] = (target[k] - self.z[k] * step.x[k]) / self.x[k] - self.z[k];
        }
        step
    }

    /// How far a move may go before something is negative.
    fn length(&self, step: &Move) -> f64 {
        let bound = |held: &[f64], step: &[f64]| {
            let ends = held.iter().zip(step).filter(|(_, step)| **step < 0.0);
            ends.map(|(held, step)| -held / step).fold(f64::INFINITY, f64::min)
        };
        bound(&self.x, &step.x).min(bound(&self.z, &step.z)).min(1.0 / SHORT_OF_BOUND)
    }

    /// The mean of x·z, after a part of a move.
    fn distance(&self, step: Option<&Move>, length: f64) -> f64 {
        let length = length.min(1.0);
        let after = |k: usize| match step {
            Some(step) => (self.x[k] + length * step.x[k]) * (self.z[k] + length * step.z[k]),
            None => self.x[k] * self.z[k],
        };
        (0..self.x.len()).map(after).sum::<f64>() / self.x.len().max(1) as f64
    }
}
