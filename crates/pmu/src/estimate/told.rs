//! What another group tells of the very slices it counted.
//!
//! ```text
//! slice            t−1   t   t+1         e: the event; f: one of another group
//! e counted         e    .    .          relation of e to f: learnt at e's slices, from what is
//! f counted         .    f    .          expected of f there; applied at f's, where f is known
//! f expected        f̂    f    f̂
//! ```
//!
//! An event and one of another group are never counted together. But what is to be expected of f is
//! known everywhere, and where f̂ is right on average, e is as large a part of f̂ as it is of f: what
//! is uncertain is what is known, not what is to be predicted, and that weakens no relation. So what
//! explains e by f̂ at e's slices holds at f's own slices too, and is better there. How much better
//! cannot be seen, so that a group is trusted no further than it was right where f was not known.

use super::mixture::Start;
use super::nodes::Nodes;
use super::ways::{Blend, Way, blended, by_slopes};

/// Few columns bear many steps.
const STEPS: usize = 100;
/// How far around a slice the relation is corrected by the event's own counts; at the last, nowhere.
const REACHES: [f64; 5] = [1.5, 4.0, 12.0, 50.0, f64::INFINITY];

/// What the events of one group tell of another event: what is expected of each alone, and the
/// logarithms of that and of instructions per cycle.
pub(super) fn told(
    alone: &[&[f64]],
    logarithms: &[&[f64]],
    steady: &[f64],
    cycles: &[f64],
    nodes: &Nodes,
) -> Blend {
    let known = std::iter::once(steady).chain(alone.iter().copied()).collect();
    let mixed = Way { known, start: Start::Alone, steps: STEPS }.expected(nodes);
    blended(&[mixed, by_slopes(logarithms, nodes)], &REACHES, cycles, nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::slopes::logarithms;

    #[test]
    fn a_relation_learnt_where_one_was_counted_holds_where_the_other_was() {
        // The other's rate is known everywhere; this event is three times that, counted in one
        // slice of ten.
        let other: Vec<f64> = (0..600).map(|k| 1.0 + f64::from(k * 7919 % 89)).collect();
        let places: Vec<usize> = (0..60).map(|k| 10 * k + k % 7).collect();
        let counts: Vec<f64> = places.iter().map(|&place| 3.0 * 1000.0 * other[place]).collect();
        let nodes = Nodes { places, counts, sizes: vec![1000.0; 60], slices: 600 };
        let (steady, cycles) = (vec![1.0; 600], vec![1000.0; 600]);
        let logs = logarithms(&other);
        let told = told(&[&other], &[&logs], &steady, &cycles, &nodes);
        assert!(told.distance < 0.01, "{}", told.distance);
        let off = |(rate, other): (&f64, &f64)| (rate / (3.0 * other) - 1.0).abs();
        let mean = told.rates.iter().zip(&other).map(off).sum::<f64>() / 600.0;
        assert!(mean < 0.1, "{mean}");
    }
}
