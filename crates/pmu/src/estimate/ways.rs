//! Ways to say what is to be expected of an event, and their blend.
//!
//! ```text
//! known rates        steady | instructions per cycle | other groups' events
//!                        └───────────┬───────────┘   mixtures and slopes, fitted where counted
//! × what is around   counted / expected, near ... wide, as a factor
//!                        └───────────┬───────────┘   each judged at slices held out
//! blend              every one by what it was worth there
//! ```
//!
//! A slice that was held out stands for those that were never counted, and what is blended is what
//! predicted such slices best, by Σ c·ln(c/predicted).

use super::covariates::column;
use super::mixture::{Column, Seen, Start, fit};
use super::nodes::Nodes;
use super::slopes::Slopes;

/// How far around a slice the event itself is looked at, in slices.
pub(super) const REACHES: [f64; 4] = [1.5, 4.0, 12.0, 50.0];
/// One node in so many is held out at a time.
const FOLDS: usize = 5;
/// The part of the steady rate in every prediction: what was never seen together may happen.
const STEADY: f64 = 0.02;
const STEPS_BLEND: usize = 60;

/// One way to say what is to be expected: known rates, and how their parts are found.
#[derive(Debug)]
pub(super) struct Way<'a> {
    pub(super) known: Vec<&'a [f64]>,
    pub(super) start: Start,
    pub(super) steps: usize,
}

/// What came of one way or several.
#[derive(Debug)]
pub(super) struct Blend {
    /// In every slice.
    pub(super) rates: Vec<f64>,
    /// The distance from what was counted at the nodes, each predicted from the others.
    pub(super) distance: f64,
}

/// What is to be expected of an event.
#[derive(Debug)]
pub(super) struct Expected {
    /// At the nodes, with each fold in turn held out.
    held: Vec<Vec<f64>>,
    /// In every slice.
    everywhere: Vec<f64>,
}

/// The blend of expectations and reaches, in every slice.
pub(super) fn blended(ways: &[Expected], reaches: &[f64], cycles: &[f64], nodes: &Nodes) -> Blend {
    let (mut tried, mut everywhere) = (Vec::new(), Vec::new());
    for way in ways {
        let at = |&place: &usize| way.everywhere.get(place).copied().unwrap_or(0.0);
        let at_nodes: Vec<f64> = nodes.places.iter().map(at).collect();
        for &reach in reaches {
            tried.push(column_of(predicted_held(&way.held, nodes, reach), &nodes.sizes));
            let factor = nodes.factor(&at_nodes, reach, false);
            let rates: Vec<f64> = way.everywhere.iter().zip(&factor).map(|(r, f)| r * f).collect();
            everywhere.push(levelled(rates, cycles));
        }
    }
    let seen = Seen { counts: &nodes.counts, sizes: &nodes.sizes, held: None };
    let parts = fit(&tried, seen, Start::Alike, STEPS_BLEND);
    let mut rates = vec![0.0; nodes.slices];
    for (each, part) in everywhere.iter().zip(&parts) {
        rates.iter_mut().zip(each).for_each(|(sum, rate)| *sum += part * rate);
    }
    let mut held = vec![0.0; nodes.places.len()];
    for (each, part) in tried.iter().zip(&parts) {
        held.iter_mut().zip(&each.at_nodes).for_each(|(sum, rate)| *sum += part * rate);
    }
    Blend { rates, distance: nodes.distance(&held) }
}

/// What slopes over known logarithms lead to expect.
pub(super) fn by_slopes(logarithms: &[&[f64]], nodes: &Nodes) -> Expected {
    let at = |known: &&[f64]| -> Vec<f64> {
        nodes.places.iter().map(|&place| known.get(place).copied().unwrap_or(0.0)).collect()
    };
    let at_nodes: Vec<Vec<f64>> = logarithms.iter().map(at).collect();
    let seen = |held| Seen { counts: &nodes.counts, sizes: &nodes.sizes, held };
    let whole = Slopes::level(seen(None), at_nodes.len()).fit(&at_nodes, seen(None));
    let steady = STEADY * nodes.rate();
    let mixed = |rates: Vec<f64>| -> Vec<f64> {
        rates.into_iter().map(|rate| steady + (1.0 - STEADY) * rate).collect()
    };
    let count = nodes.places.len();
    // A fold's fit is near the whole one's: from there it takes fewer steps.
    let without = |first| {
        let fitted = whole.clone().fit(&at_nodes, seen(Some((FOLDS, first))));
        mixed(fitted.rates(&at_nodes, count))
    };
    Expected {
        held: (0..FOLDS).map(without).collect(),
        everywhere: mixed(whole.rates(logarithms, nodes.slices)),
    }
}

impl Way<'_> {
    /// What is to be expected.
    pub(super) fn expected(&self, nodes: &Nodes) -> Expected {
        let columns: Vec<Column> =
            self.known.iter().map(|known| column(known, &nodes.places)).collect();
        let everywhere = self.everywhere(&columns, nodes);
        Expected { held: self.held_out(&columns, nodes), everywhere }
    }

    /// What is expected in every slice, fitted to all nodes.
    fn everywhere(&self, columns: &[Column], nodes: &Nodes) -> Vec<f64> {
        let seen = Seen { counts: &nodes.counts, sizes: &nodes.sizes, held: None };
        let parts = fit(columns, seen, self.start, self.steps);
        let mut rates = vec![STEADY * nodes.rate(); nodes.slices];
        for (known, part) in self.known.iter().zip(&parts).filter(|(_, part)| **part > 0.0) {
            let add = |(sum, known): (&mut f64, &f64)| *sum += (1.0 - STEADY) * part * known;
            rates.iter_mut().zip(*known).for_each(add);
        }
        rates
    }

    /// What is expected at all nodes when each fold in turn is held out of the fit.
    fn held_out(&self, columns: &[Column], nodes: &Nodes) -> Vec<Vec<f64>> {
        let without = |first: usize| {
            let held = Some((FOLDS, first));
            let seen = Seen { counts: &nodes.counts, sizes: &nodes.sizes, held };
            let parts = fit(columns, seen, self.start, self.steps);
            let mut rates = vec![STEADY * nodes.rate(); nodes.places.len()];
            for (column, part) in columns.iter().zip(&parts).filter(|(_, part)| **part > 0.0) {
                let add = |(sum, known): (&mut f64, &f64)| *sum += (1.0 - STEADY) * part * known;
                rates.iter_mut().zip(&column.at_nodes).for_each(add);
            }
            rates
        };
        (0..FOLDS).map(without).collect()
    }
}

/// The rate that is predicted at each node from all others.
fn predicted_held(held: &[Vec<f64>], nodes: &Nodes, reach: f64) -> Vec<f64> {
    let mut predicted = vec![0.0; nodes.places.len()];
    for (first, rates) in held.iter().enumerate() {
        let factor = nodes.factor(rates, reach, true);
        let mine = predicted.iter_mut().zip(rates.iter().zip(&factor)).enumerate();
        for (_, (sum, (rate, factor))) in mine.filter(|(k, _)| k % FOLDS == first) {
            *sum = rate * factor;
        }
    }
    predicted
}

/// A prediction as a column whose mean is 1: what counts is where it puts things, not how many.
fn column_of(rates: Vec<f64>, sizes: &[f64]) -> Column {
    Column { at_nodes: levelled(rates, sizes), mean: 1.0 }
}

/// Rates whose mean over these sizes is 1.
fn levelled(mut rates: Vec<f64>, sizes: &[f64]) -> Vec<f64> {
    let all: f64 = rates.iter().zip(sizes).map(|(rate, size)| rate * size).sum();
    let mean = all / sizes.iter().sum::<f64>();
    if mean > 0.0 {
        rates.iter_mut().for_each(|rate| *rate /= mean);
    }
    rates
}
