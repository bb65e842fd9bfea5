//! An event over time.
//!
//! ```text
//! known rates        steady | instructions per cycle | other groups' events near by
//!                        └───────────┬───────────┘   each a mixture, fitted where counted
//! × what is around   counted / expected, near ... wide, as a factor
//!                        └───────────┬───────────┘   each judged at slices held out
//! blend              every one by what it was worth there
//! ```
//!
//! One slice in a round is a poor sample of its round: bursts fall into it or beside it. So its
//! neighbours are asked too, how far away follows from the data, and what other events did meanwhile.
//! A slice that was held out stands for those that were never counted, and what is blended is what
//! predicted such slices best, by Σ c·ln(c/predicted).

use super::around::around;
use super::covariates::{Known, column, hats, others};
use super::frame::Frame;
use super::line::{Line, Turns};
use super::mixture::{Column, Seen, Start, fit};
use crate::{Grouping, Reading};

/// Slices that must have counted an event before anything but its neighbours is asked.
const SLICES_MIN: usize = 20;
/// How far around a slice the event itself is looked at, in slices.
const REACHES: [f64; 4] = [1.5, 4.0, 12.0, 50.0];
/// One node in so many is held out at a time.
const FOLDS: usize = 5;
/// The part of the steady rate in every prediction: what was never seen together may happen.
const STEADY: f64 = 0.02;
/// So much of a mean slice is believed of the prediction before anything was counted around.
const BELIEF: f64 = 0.1;
/// Steps of the fits; few for the one that has many columns.
const STEPS_HATS: usize = 50;
const STEPS_OTHERS: usize = 5;
const STEPS_BLEND: usize = 60;

/// An event's count in every slice: as counted where it was, else predicted from what was counted
/// around, from instructions per cycle and from other groups' events. `None` if it was never counted.
///
/// With few slices, or nothing seen in them, rates are interpolated between neighbours.
pub fn series(grouping: &Grouping, readings: &[Reading], event: usize) -> Option<Vec<f64>> {
    let line = Line::new(grouping, readings, &Turns::new(grouping, readings), event);
    let groups: Vec<usize> = grouping.groups_of(event).collect();
    let frame = Frame::new(readings, &groups);
    let places: Vec<usize> = frame.nodes().map(|(place, _)| place).collect();
    if places.is_empty() {
        return None;
    }
    let counts: Vec<f64> = places.iter().map(|&place| line.count(place).unwrap_or(0.0)).collect();
    let sizes: Vec<f64> = frame.nodes().map(|(_, size)| size).collect();
    let nodes = Nodes { places, counts, sizes, slices: readings.len() };
    let rates = if nodes.places.len() < SLICES_MIN || line.seen() < 2 || grouping.anchors == 0 {
        nodes.interpolated()
    } else {
        blended(grouping, readings, event, &nodes)
    };
    let whole =
        |(place, rate): (usize, f64)| line.count(place).unwrap_or_else(|| rate * line.size(place));
    Some(rates.into_iter().enumerate().map(whole).collect())
}

/// Where the event was counted.
#[derive(Debug)]
struct Nodes {
    places: Vec<usize>,
    counts: Vec<f64>,
    sizes: Vec<f64>,
    /// How many slices there are in all.
    slices: usize,
}

impl Nodes {
    fn rate(&self) -> f64 {
        self.counts.iter().sum::<f64>() / self.sizes.iter().sum::<f64>()
    }

    /// The rates between neighbours, each smoothed by a quarter of either neighbour: a slice that
    /// saw none does not mean that those beside it had none.
    fn interpolated(&self) -> Vec<f64> {
        let rates: Vec<f64> = self.counts.iter().zip(&self.sizes).map(|(c, s)| c / s).collect();
        let last = rates.len() - 1;
        let smooth = |k: usize| {
            0.5 * rates[k] + 0.25 * (rates[k.saturating_sub(1)] + rates[(k + 1).min(last)])
        };
        let smooth: Vec<f64> = (0..rates.len()).map(smooth).collect();
        let mut next = 0;
        let at = |place: usize| {
            while self.places.get(next).is_some_and(|at| *at < place) {
                next += 1;
            }
            let (before, after) = (next.saturating_sub(1), next.min(last));
            let (from, to) = (self.places[before], self.places[after]);
            let gap = to.saturating_sub(from).max(1) as f64;
            let along = (place.saturating_sub(from) as f64 / gap).min(1.0);
            smooth[before] + (smooth[after] - smooth[before]) * along
        };
        (0..self.slices).map(at).collect()
    }

    /// How far off an expected rate was around each place, as a factor; with `skipping`, each node's
    /// own count is left out, and only the nodes are answered for.
    fn factor(&self, expected: &[f64], reach: f64, is_own_left_out: bool) -> Vec<f64> {
        let expected: Vec<f64> = expected.iter().zip(&self.sizes).map(|(r, s)| r * s).collect();
        let belief = BELIEF * expected.iter().sum::<f64>() / expected.len() as f64;
        let counted = around(&self.places, &self.counts, self.slices, reach);
        let hoped = around(&self.places, &expected, self.slices, reach);
        let of = |counted: f64, hoped: f64| {
            (counted.max(0.0) + belief) / (hoped.max(0.0) + belief).max(f64::MIN_POSITIVE)
        };
        if !is_own_left_out {
            return counted.iter().zip(&hoped).map(|(c, h)| of(*c, *h)).collect();
        }
        let own = self.places.iter().zip(self.counts.iter().zip(&expected));
        own.map(|(&place, (count, expected))| of(counted[place] - count, hoped[place] - expected))
            .collect()
    }
}

/// One way to say what is to be expected: known rates, and how their parts are found.
struct Way {
    known: Vec<Known>,
    start: Start,
    steps: usize,
}

/// The blend of all ways and reaches, in every slice.
fn blended(grouping: &Grouping, readings: &[Reading], event: usize, nodes: &Nodes) -> Vec<f64> {
    let steady = vec![1.0; readings.len()];
    let hats = hats(readings, grouping.anchors);
    let mut wide = others(grouping, readings, event);
    wide.extend(hats.iter().cloned());
    let ways = [
        Way { known: vec![steady], start: Start::Alike, steps: 0 },
        Way { known: hats, start: Start::Alike, steps: STEPS_HATS },
        Way { known: wide, start: Start::Alone, steps: STEPS_OTHERS },
    ];
    let cycles: Vec<f64> =
        readings.iter().map(|r| r.counts.first().map_or(0.0, |&cycles| cycles as f64)).collect();
    let (mut tried, mut everywhere) = (Vec::new(), Vec::new());
    for way in ways.iter().filter(|way| !way.known.is_empty()) {
        let columns: Vec<Column> =
            way.known.iter().map(|known| column(known, &nodes.places)).collect();
        let held = held_out(way, &columns, nodes);
        let expected = expected(way, &columns, nodes);
        let at_nodes: Vec<f64> = nodes.places.iter().map(|&place| expected[place]).collect();
        for reach in REACHES {
            tried.push(column_of(predicted_held(&held, nodes, reach), &nodes.sizes));
            let factor = nodes.factor(&at_nodes, reach, false);
            let rates: Vec<f64> = expected.iter().zip(&factor).map(|(r, f)| r * f).collect();
            everywhere.push(levelled(rates, &cycles));
        }
    }
    let seen = Seen { counts: &nodes.counts, sizes: &nodes.sizes, held: None };
    let parts = fit(&tried, seen, Start::Alike, STEPS_BLEND);
    let mut blend = vec![0.0; readings.len()];
    for (rates, part) in everywhere.iter().zip(&parts) {
        blend.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += part * rate);
    }
    blend
}

/// What a way expects in every slice, fitted to all nodes.
fn expected(way: &Way, columns: &[Column], nodes: &Nodes) -> Vec<f64> {
    let seen = Seen { counts: &nodes.counts, sizes: &nodes.sizes, held: None };
    let parts = fit(columns, seen, way.start, way.steps);
    let mut rates = vec![STEADY * nodes.rate(); nodes.slices];
    for (known, part) in way.known.iter().zip(&parts).filter(|(_, part)| **part > 0.0) {
        rates.iter_mut().zip(known).for_each(|(sum, known)| *sum += (1.0 - STEADY) * part * known);
    }
    rates
}

/// What a way expects at all nodes when each fold in turn is held out of the fit.
fn held_out(way: &Way, columns: &[Column], nodes: &Nodes) -> Vec<Vec<f64>> {
    let without = |first: usize| {
        let seen = Seen { counts: &nodes.counts, sizes: &nodes.sizes, held: Some((FOLDS, first)) };
        let parts = fit(columns, seen, way.start, way.steps);
        let mut rates = vec![STEADY * nodes.rate(); nodes.places.len()];
        for (column, part) in columns.iter().zip(&parts).filter(|(_, part)| **part > 0.0) {
            let add = |(sum, known): (&mut f64, &f64)| *sum += (1.0 - STEADY) * part * known;
            rates.iter_mut().zip(&column.at_nodes).for_each(add);
        }
        rates
    };
    (0..FOLDS).map(without).collect()
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
