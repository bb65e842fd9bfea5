//! Uncertainty through a formula, as the Guide to the Expression of Uncertainty has it.
//!
//! ```text
//! read together ─► Joint{means, covariance, ν} ─┐
//! read together ─► Joint{means, covariance, ν} ─┼─ f(x₁ … x_k) ─► Estimate{f, u, ν}
//! known, alone  ─► Joint of one ────────────────┘
//! ```
//!
//! u² = Σ over sets of cᵀ·C·c, where c holds the derivatives ∂f/∂x of one set and C is the
//! covariance of its means. Readings that were taken together count with n − 1 degrees of freedom
//! whatever their correlation, because c·x is one quantity read n times; Welch and Satterthwaite
//! combine the sets, which are independent of each other.

use crate::readings::TooFew;
use crate::{Coverage, Estimate, Interval};

/// Quantities that were read in the same runs, so that their errors are related.
#[derive(Clone, PartialEq, Debug)]
pub struct Joint {
    means: Vec<f64>,
    /// Of the means, row after row.
    covariance: Vec<f64>,
    degrees_of_freedom: f64,
}

impl Joint {
    /// From readings, one slice a quantity, all of one length: the k-th of each are of one run.
    ///
    /// # Errors
    ///
    /// Fewer than two runs. Longer slices are cut to the shortest.
    pub fn of(quantities: &[&[f64]]) -> Result<Joint, TooFew> {
        let runs = quantities.iter().map(|q| q.len()).min().unwrap_or(0);
        if runs < 2 {
            return Err(TooFew { had: runs });
        }
        let n = runs as f64;
        let cut: Vec<&[f64]> = quantities.iter().map(|q| q.get(..runs).unwrap_or(q)).collect();
        let means: Vec<f64> = cut.iter().map(|q| q.iter().sum::<f64>() / n).collect();
        let mut covariance = Vec::with_capacity(cut.len() * cut.len());
        for (a, mean_a) in cut.iter().zip(&means) {
            for (b, mean_b) in cut.iter().zip(&means) {
                let products = a.iter().zip(*b).map(|(a, b)| (a - mean_a) * (b - mean_b));
                covariance.push(products.sum::<f64>() / (n - 1.0) / n);
            }
        }
        Ok(Joint { means, covariance, degrees_of_freedom: n - 1.0 })
    }

    /// One quantity by itself.
    pub fn single(estimate: Estimate) -> Joint {
        Joint {
            means: vec![estimate.value],
            covariance: vec![estimate.standard_uncertainty.powi(2)],
            degrees_of_freedom: estimate.degrees_of_freedom,
        }
    }

    /// How many quantities it holds.
    pub fn len(&self) -> usize {
        self.means.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.means.is_empty()
    }

    /// The variance of Σ c·x over its quantities. Rounding may leave a speck below zero.
    fn variance(&self, slopes: &[f64]) -> f64 {
        let k = self.means.len();
        let of_row = |row: &[f64], slope: f64| {
            slope * row.iter().zip(slopes).map(|(c, s)| c * s).sum::<f64>()
        };
        let rows = self.covariance.chunks(k.max(1)).zip(slopes);
        rows.map(|(row, slope)| of_row(row, *slope)).sum::<f64>().max(0.0)
    }
}

/// A formula's value with its uncertainty, from sets that are independent of each other. The
/// formula sees the quantities of all sets in order. None where it has no finite value or slope.
pub fn propagate(sets: &[Joint], formula: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
    let point: Vec<f64> = sets.iter().flat_map(|set| set.means.iter().copied()).collect();
    let value = formula(&point);
    let (mut variance, mut spread, mut first) = (0.0, 0.0, 0);
    for set in sets {
        let spreads = set.covariance.iter().step_by(set.len() + 1);
        let slopes: Vec<f64> = spreads
            .enumerate()
            .map(
                |(place, variance)| {
                    if *variance == 0.0 { 0.0 } else { slope(&formula, &point, first + place) }
                },
            )
            .collect();
        let part = set.variance(&slopes);
        variance += part;
        spread += part.powi(2) / set.degrees_of_freedom;
        first += set.len();
    }
    let degrees_of_freedom = if spread > 0.0 { variance.powi(2) / spread } else { f64::INFINITY };
    let estimate = Estimate { value, standard_uncertainty: variance.sqrt(), degrees_of_freedom };
    (value.is_finite() && variance.is_finite()).then_some(estimate)
}

/// The same where every quantity is independent of every other.
pub fn propagate_independent(
    quantities: &[Estimate],
    formula: impl Fn(&[f64]) -> f64,
) -> Option<Estimate> {
    let sets: Vec<Joint> = quantities.iter().copied().map(Joint::single).collect();
    propagate(&sets, formula)
}

/// The derivative by one quantity: a central difference. The step balances the error of the
/// formula's curvature against that of rounding, which leaves about ten digits.
fn slope(formula: &impl Fn(&[f64]) -> f64, point: &[f64], place: usize) -> f64 {
    let at = point.get(place).copied().unwrap_or(0.0);
    let step = at.abs().max(f64::MIN_POSITIVE.sqrt()) * f64::EPSILON.cbrt();
    let shifted = |to: f64| {
        let mut moved = point.to_vec();
        if let Some(slot) = moved.get_mut(place) {
            *slot = to;
        }
        formula(&moved)
    };
    let (low, high) = (at - step, at + step);
    (shifted(high) - shifted(low)) / (high - low)
}

/// The ratio of the means of `a` and `b` over pairs of runs, with its interval: first-order
/// propagation of the logarithm with the pairs' covariance, so that what slows both runs of a pair
/// does not widen it, and the interval of the inverse is the inverse interval. None where a mean
/// is not positive.
///
/// # Errors
///
/// Fewer than two pairs.
pub fn ratio_of_means(
    pairs: &[(f64, f64)],
    coverage: Coverage,
) -> Result<Option<(Estimate, Interval)>, TooFew> {
    let a: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
    let b: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
    let joint = Joint::of(&[&a, &b])?;
    if joint.means.iter().any(|mean| *mean <= 0.0) {
        return Ok(None);
    }
    let logarithm = |x: &[f64]| x.first().zip(x.get(1)).map_or(f64::NAN, |(a, b)| (a / b).ln());
    Ok(propagate(&[joint], logarithm).map(|log| {
        let half = log.interval(coverage);
        let interval = Interval { low: half.low.exp(), high: half.high.exp(), coverage };
        let value = log.value.exp();
        let standard_uncertainty = value * log.standard_uncertainty;
        (Estimate { value, standard_uncertainty, ..log }, interval)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draws, mean};

    fn close(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6 * b.abs().max(1e-9), "{a} is not {b}");
    }

    #[test]
    fn independent_quantities_give_the_closed_forms() {
        let (x, y) = (Estimate::known(100.0, 3.0), Estimate::known(50.0, 2.0));
        let quotient = propagate_independent(&[x, y], |v| v[0] / v[1]).unwrap();
        let closed = x.over(y).unwrap();
        close(quotient.value, closed.value);
        close(quotient.standard_uncertainty, closed.standard_uncertainty);
        // x²·y: ∂x = 2xy = 10⁴, ∂y = x² = 10⁴.
        let cubic = propagate_independent(&[x, y], |v| v[0] * v[0] * v[1]).unwrap();
        close(cubic.standard_uncertainty, 1e4 * 13.0_f64.sqrt());
    }

    #[test]
    fn welch_satterthwaite_combines_sets() {
        let part =
            |u, dof| Estimate { value: 10.0, standard_uncertainty: u, degrees_of_freedom: dof };
        let sum =
            propagate_independent(&[part(1.0, 4.0), part(1.0, 4.0)], |v| v[0] + v[1]).unwrap();
        close(sum.degrees_of_freedom, 8.0);
        let sum =
            propagate_independent(&[part(3.0, 5.0), part(4.0, 7.0)], |v| v[0] - v[1]).unwrap();
        close(sum.degrees_of_freedom, 625.0 / (81.0 / 5.0 + 256.0 / 7.0));
    }

    #[test]
    fn what_is_read_together_cancels() {
        // b is twice a in every run: their ratio is exactly 2 however much both vary.
        let a = [1.0, 2.0, 4.0, 3.0];
        let b = a.map(|x| 2.0 * x);
        let joint = Joint::of(&[&a, &b]).unwrap();
        let ratio = propagate(&[joint], |v| v[1] / v[0]).unwrap();
        close(ratio.value, 2.0);
        assert!(ratio.standard_uncertainty < 1e-9, "{}", ratio.standard_uncertainty);
        // Taken as independent, the same readings would claim a spread.
        let apart = [mean(&a).unwrap(), mean(&b).unwrap()];
        assert!(propagate_independent(&apart, |v| v[1] / v[0]).unwrap().standard_uncertainty > 0.3);
    }

    #[test]
    fn a_sum_read_together_is_the_mean_of_the_sums() {
        let (a, b) = ([1.0, 5.0, 2.0, 7.0], [3.0, 1.0, 8.0, 2.0]);
        let sums: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let through = propagate(&[Joint::of(&[&a, &b]).unwrap()], |v| v[0] + v[1]).unwrap();
        let direct = mean(&sums).unwrap();
        close(through.standard_uncertainty, direct.standard_uncertainty);
        close(through.degrees_of_freedom, direct.degrees_of_freedom);
    }

    #[test]
    fn a_formula_without_a_value_has_none() {
        let x = [Estimate::known(1.0, 0.1), Estimate::known(0.0, 0.1)];
        assert_eq!(propagate_independent(&x, |v| v[0] / v[1]), None);
        assert_eq!(Joint::of(&[&[1.0], &[2.0]]), Err(TooFew { had: 1 }));
        // What is exact takes no part, even where the formula has no slope there.
        let root = [Estimate::exact(0.0), Estimate::known(4.0, 0.4)];
        let sum = propagate_independent(&root, |v| v[0].sqrt() + v[1]).unwrap();
        close(sum.standard_uncertainty, 0.4);
    }

    #[test]
    fn a_ratio_of_means_takes_the_pairs_drift_out() {
        let pairs = [(10.0, 5.0), (20.0, 10.1), (40.0, 19.9), (30.0, 15.0)];
        let (ratio, interval) = ratio_of_means(&pairs, Coverage::P95).unwrap().unwrap();
        close(ratio.value, 2.0);
        assert!(interval.half_width() < 0.03 && interval.holds(2.0), "{interval:?}");
        let swapped = pairs.map(|(a, b)| (b, a));
        let (_, inverse) = ratio_of_means(&swapped, Coverage::P95).unwrap().unwrap();
        close(inverse.low * interval.high, 1.0);
        assert_eq!(ratio_of_means(&[(0.0, 1.0), (0.0, 1.0)], Coverage::P95), Ok(None));
    }

    /// 2,000 experiments of five runs, spread 2 %: nominal 95 % ± 5 standard errors (0.49 points
    /// each), which a sound interval misses less than once in a million seeds.
    #[test]
    fn ratios_of_correlated_readings_are_covered_as_claimed() {
        let mut draws = Draws::new(11);
        let mut held = 0;
        for _ in 0..2000 {
            let pair = |draws: &mut Draws| {
                let shared = draws.normal();
                (100.0 + 2.0 * shared + draws.normal(), 50.0 + shared + 0.5 * draws.normal())
            };
            let pairs: Vec<(f64, f64)> = (0..5).map(|_| pair(&mut draws)).collect();
            let (_, interval) = ratio_of_means(&pairs, Coverage::P95).unwrap().unwrap();
            held += u32::from(interval.holds(2.0));
        }
        assert!((1851..=1949).contains(&held), "{held} of 2000");
    }
}
