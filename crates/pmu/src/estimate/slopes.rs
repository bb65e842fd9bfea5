//! A rate whose logarithm is a sum of slopes times known logarithms.
//!
//! ```text
//! ln rate = level + Σ slope · ln (known / its mean)         slopes pulled towards 0
//! ```
//!
//! A mixture of known rates only ever adds: it cannot say that there are fewer misses where more
//! retires, nor that one doubles where another quadruples. Slopes can. Counts are taken as spread as
//! much as they are large, one to a node on average, so that a burst is one piece of evidence however
//! many it counts; what that evidence cannot bear out is pulled back to no slope at all.

use super::explain::solve;
use super::mixture::Seen;

/// A known rate of 0 is taken as this part of its mean: its logarithm would know no end.
const FLOOR: f64 = 0.05;
const STEPS: usize = 8;
/// Steps end when nothing moves farther than this.
const STILL: f64 = 1e-3;
/// How much a slope is pulled towards 0, for each known rate: the more there are, the less is
/// believed of each.
const PULL: f64 = 0.25;
/// How far a step may move a logarithm.
const STEP_MAX: f64 = 1.0;
/// So much larger than anything that was counted, in nats, may a prediction be.
const BEYOND: f64 = 0.5;
/// And so much smaller than the mean.
const BELOW: f64 = 5.0;

/// Logarithms of a known rate in every slice, about its mean.
pub(super) fn logarithms(known: &[f64]) -> Vec<f64> {
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    let scale = mean.max(f64::MIN_POSITIVE);
    known.iter().map(|rate| ((rate / scale + FLOOR) / (1.0 + FLOOR)).ln()).collect()
}

/// A fit.
#[derive(Clone, Debug)]
pub(super) struct Slopes {
    level: f64,
    slopes: Vec<f64>,
    /// Limits of the logarithm of the rate.
    limits: (f64, f64),
}

impl Slopes {
    /// A level and no slopes, for so many known rates.
    pub(super) fn level(seen: Seen<'_>, known: usize) -> Slopes {
        let (counted, size) = seen.sums();
        let rate = counted / size;
        let largest = seen.nodes().map(|(_, count, size)| count / size).fold(rate, f64::max);
        let limits = (rate.ln() - BELOW, largest.ln() + BEYOND);
        Slopes { level: rate.ln(), slopes: vec![0.0; known], limits }
    }

    /// Fits the nodes that take part, by Newton's steps from here; `at_nodes` has a list a known rate.
    /// Where nothing was counted nothing is learnt.
    pub(super) fn fit(mut self, at_nodes: &[Vec<f64>], seen: Seen<'_>) -> Slopes {
        if seen.sums().0 <= 0.0 {
            return self;
        }
        for _ in 0..STEPS {
            let (hessian, gradient) = self.equations(at_nodes, seen);
            let step = solve(hessian, gradient);
            let largest = step.iter().fold(0.0_f64, |largest, s| largest.max(s.abs()));
            let scale = if largest > STEP_MAX { STEP_MAX / largest } else { 1.0 };
            let mut moves = step.iter().map(|step| scale * step);
            self.level += moves.next().unwrap_or(0.0);
            self.slopes.iter_mut().zip(moves).for_each(|(slope, step)| *slope += step);
            if largest < STILL {
                break;
            }
        }
        self
    }

    /// The normal equations of a step; the level comes first.
    fn equations(&self, at_nodes: &[Vec<f64>], seen: Seen<'_>) -> (Vec<Vec<f64>>, Vec<f64>) {
        let p = at_nodes.len() + 1;
        let (mut hessian, mut gradient) = (vec![vec![0.0; p]; p], vec![0.0; p]);
        let worth = seen.nodes().count() as f64 / seen.sums().0;
        let mut row = vec![1.0; p];
        for (k, count, size) in seen.nodes() {
            for (cell, column) in row.iter_mut().skip(1).zip(at_nodes) {
                *cell = column.get(k).copied().unwrap_or(0.0);
            }
            let expected = worth * size * self.rate_of(row.iter().skip(1).copied());
            let off = worth * count - expected;
            for (i, a) in row.iter().enumerate() {
                gradient[i] += off * a;
                let (weight, upper) = (expected * a, &row[i..]);
                hessian[i][i..].iter_mut().zip(upper).for_each(|(cell, b)| *cell += weight * b);
            }
        }
        let pull = PULL * at_nodes.len() as f64;
        for (i, slope) in self.slopes.iter().enumerate() {
            gradient[i + 1] -= pull * slope;
            hessian[i + 1][i + 1] += pull;
        }
        // Only what lies on the diagonal and above it was summed.
        let upper = hessian.clone();
        for (i, row) in hessian.iter_mut().enumerate() {
            row.iter_mut().zip(&upper).take(i).for_each(|(cell, above)| *cell = above[i]);
        }
        (hessian, gradient)
    }

    fn rate_of(&self, known: impl Iterator<Item = f64>) -> f64 {
        let sum: f64 = known.zip(&self.slopes).map(|(known, slope)| known * slope).sum();
        (self.level + sum).clamp(self.limits.0, self.limits.1).exp()
    }

    /// The rates where the known ones have these logarithms.
    pub(super) fn rates(&self, known: &[impl AsRef<[f64]>], len: usize) -> Vec<f64> {
        let at = |k: usize| known.iter().map(move |c| c.as_ref().get(k).copied().unwrap_or(0.0));
        (0..len).map(|k| self.rate_of(at(k))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_found_where_evidence_is_plenty_and_not_where_there_is_none() {
        let known: Vec<f64> = (0..400).map(|k| 1.0 + f64::from(k * 7919 % 97)).collect();
        let logs = vec![logarithms(&known)];
        let counts: Vec<f64> = logs[0].iter().map(|log| 1e6 * (-2.0 * log).exp()).collect();
        let seen = Seen { counts: &counts, sizes: &[1000.0; 400], held: None };
        let fitted = Slopes::level(seen, 1).fit(&logs, seen);
        assert!((fitted.slopes[0] + 2.0).abs() < 0.01, "{fitted:?}");
        // Nothing is learnt from nothing.
        let none = Seen { counts: &[0.0; 400], sizes: &[1000.0; 400], held: None };
        assert_eq!(fitted.clone().fit(&logs, none).slopes, fitted.slopes);
        // One burst at the top would bear out any slope, however steep.
        let few = Seen { counts: &[0.0, 0.0, 7.0], sizes: &[1000.0; 3], held: None };
        let fitted = Slopes::level(few, 1).fit(&[vec![-1.0, 0.0, 1.0]], few);
        assert!((1.0..2.5).contains(&fitted.slopes[0]), "{fitted:?}");
    }

    #[test]
    fn nothing_is_predicted_far_beyond_what_was_counted() {
        let logs = vec![vec![0.0, 0.1, 0.2, 0.3, 0.4, 0.5]];
        let counts = [1.0, 1.5, 2.2, 3.3, 5.0, 7.4];
        let seen = Seen { counts: &counts, sizes: &[1.0; 6], held: None };
        let fitted = Slopes::level(seen, 1).fit(&logs, seen);
        let far = fitted.rates(&[vec![100.0]], 1)[0];
        assert!((far - 7.4 * BEYOND.exp()).abs() < 1e-9, "{far}");
    }

    #[test]
    fn a_known_rate_of_nothing_has_a_logarithm() {
        let logs = logarithms(&[0.0, 1.0, 2.0]);
        assert!((logs[0] - (0.05_f64 / 1.05).ln()).abs() < 1e-12 && logs[1].abs() < 1e-12);
    }
}
