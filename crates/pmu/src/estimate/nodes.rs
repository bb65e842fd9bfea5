//! Where an event was counted, and how well a prediction does there.

use super::around::around;
use super::tail::beyond;

/// So much of a mean slice is believed of the prediction before anything was counted around.
const BELIEF: f64 = 0.1;

/// Where the event was counted.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) places: Vec<usize>,
    pub(super) counts: Vec<f64>,
    pub(super) sizes: Vec<f64>,
    /// How many slices there are in all.
    pub(super) slices: usize,
}

impl Nodes {
    pub(super) fn rate(&self) -> f64 {
        self.counts.iter().sum::<f64>() / self.sizes.iter().sum::<f64>()
    }

    /// The highest rate that slices which were not counted may well have: what never varied where it
    /// was counted is not expected to elsewhere, whatever else does.
    pub(super) fn most(&self) -> f64 {
        let rates: Vec<f64> = self.counts.iter().zip(&self.sizes).map(|(c, s)| c / s).collect();
        let share = rates.len() as f64 / self.slices.max(1) as f64;
        rates.iter().copied().fold(0.0, f64::max) + beyond(&rates, share)
    }

    /// The rates between neighbours, each smoothed by a quarter of either neighbour: a slice that
    /// saw none does not mean that those beside it had none.
    pub(super) fn interpolated(&self) -> Vec<f64> {
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

    /// How far off an expected rate was around each place, as a factor; with `is_own_left_out`, each
    /// node's own count is left out, and only the nodes are answered for.
    pub(super) fn factor(&self, expected: &[f64], reach: f64, is_own_left_out: bool) -> Vec<f64> {
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

    /// How far, in nats, predicted rates are from what was counted at the nodes, whatever the level
    /// of either.
    pub(super) fn distance(&self, predicted: &[f64]) -> f64 {
        let counted: f64 = self.counts.iter().sum();
        let all: f64 = predicted.iter().zip(&self.sizes).map(|(rate, size)| rate * size).sum();
        let term = |((count, size), rate): ((&f64, &f64), &f64)| {
            let (p, q) = (count / counted, rate * size / all);
            if p > 0.0 { p * (p / q.max(f64::MIN_POSITIVE)).ln() } else { 0.0 }
        };
        self.counts.iter().zip(&self.sizes).zip(predicted).map(term).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_varied_may_not_exceed_itself_and_what_bursts_may() {
        let nodes = |counts: Vec<f64>| {
            let (places, sizes) = ((0..counts.len()).map(|k| 10 * k).collect(), vec![100.0; 50]);
            Nodes { places, counts, sizes, slices: 500 }
        };
        assert!((nodes(vec![70.0; 50]).most() - 0.7).abs() < 1e-12);
        let bursts = nodes((1..=50).map(|k| 5000.0 / f64::from(k)).collect());
        // A tail of index 1, one slice in ten: several times the largest that was seen.
        assert!((2.0..10.0).contains(&(bursts.most() / 50.0)), "{}", bursts.most());
    }

    #[test]
    fn a_distance_knows_shapes_and_not_levels() {
        let nodes = Nodes {
            places: vec![0, 3],
            counts: vec![10.0, 30.0],
            sizes: vec![100.0, 100.0],
            slices: 4,
        };
        assert!(nodes.distance(&[0.5, 1.5]).abs() < 1e-12);
        // A quarter and three quarters against halves.
        let expected = 0.25 * 0.5_f64.ln() + 0.75 * 1.5_f64.ln();
        assert!((nodes.distance(&[7.0, 7.0]) - expected).abs() < 1e-12);
    }
}
