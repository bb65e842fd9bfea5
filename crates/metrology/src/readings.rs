//! From repeated readings to an estimate.

use std::fmt;

use crate::{Coverage, Estimate, Interval, binomial_cdf};

/// Too few readings for an uncertainty: two are the least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooFew {
    /// How many there were.
    pub had: usize,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an uncertainty needs at least two readings, and there were {}", self.had)
    }
}

impl std::error::Error for TooFew {}

/// The mean with the standard uncertainty s/√n and n − 1 degrees of freedom.
pub fn mean(readings: &[f64]) -> Result<Estimate, TooFew> {
    let had = readings.len();
    if had < 2 {
        return Err(TooFew { had });
    }
    let n = had as f64;
    let value = readings.iter().sum::<f64>() / n;
    let variance = readings.iter().map(|r| (r - value).powi(2)).sum::<f64>() / (n - 1.0);
    Ok(Estimate { value, standard_uncertainty: (variance / n).sqrt(), degrees_of_freedom: n - 1.0 })
}

/// The median with the interval between two order statistics, which assumes nothing about the
/// distribution. The coverage that the interval carries is the one it really has: few readings
/// cannot reach the one asked for, and then the range of all of them is given.
pub fn median(readings: &[f64], coverage: Coverage) -> Result<(f64, Interval), TooFew> {
    let had = readings.len();
    if had < 2 {
        return Err(TooFew { had });
    }
    let mut sorted = readings.to_vec();
    sorted.sort_by(f64::total_cmp);
    let value = (sorted[(had - 1) / 2] + sorted[had / 2]) / 2.0;
    let n = had as u64;
    // The median lies between the k-th smallest and the k-th largest unless fewer than k readings
    // fell on one side of it: coverage 1 − 2·P(fewer than k of n).
    let reached = |k: u64| 1.0 - 2.0 * binomial_cdf(k - 1, n, 0.5);
    let k = (1..=n / 2).rev().find(|&k| reached(k) >= coverage.probability()).unwrap_or(1);
    let coverage = Coverage::new(reached(k)).unwrap_or(coverage);
    let (low, high) = (sorted[k as usize - 1], sorted[had - k as usize]);
    Ok((value, Interval { low, high, coverage }))
}

/// The mean of the differences `a − b` of pairs taken side by side.
pub fn paired_difference(pairs: &[(f64, f64)]) -> Result<Estimate, TooFew> {
    mean(&pairs.iter().map(|(a, b)| a - b).collect::<Vec<_>>())
}

/// The geometric mean of `a / b` over pairs, with its interval: Student's on the logarithms, so
/// that the interval of the ratio's inverse is the inverse of the interval. Pairs with a part
/// that is not positive have no ratio and are left out of the count.
pub fn geometric_ratio(
    pairs: &[(f64, f64)],
    coverage: Coverage,
) -> Result<(f64, Interval), TooFew> {
    let usable = pairs.iter().filter(|(a, b)| *a > 0.0 && *b > 0.0);
    let logarithms: Vec<f64> = usable.map(|(a, b)| (a / b).ln()).collect();
    let estimate = mean(&logarithms)?;
    let interval = estimate.interval(coverage);
    let interval = Interval { low: interval.low.exp(), high: interval.high.exp(), coverage };
    Ok((estimate.value.exp(), interval))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_three_has_two_degrees_of_freedom() {
        let estimate = mean(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((estimate.value, estimate.degrees_of_freedom), (2.0, 2.0));
        assert!((estimate.standard_uncertainty - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(mean(&[1.0]), Err(TooFew { had: 1 }));
    }

    #[test]
    fn the_median_of_ten_lies_between_the_second_and_the_ninth() {
        let readings: Vec<f64> = (1..=10).map(f64::from).collect();
        let (value, interval) = median(&readings, Coverage::P95).unwrap();
        assert_eq!((value, interval.low, interval.high), (5.5, 2.0, 9.0));
        // 1 − 2·(1 + 10)/1024
        assert!((interval.coverage.probability() - 0.978_515_625).abs() < 1e-9);
    }

    #[test]
    fn a_median_of_three_confesses_that_it_covers_less_than_asked() {
        let (_, interval) = median(&[3.0, 1.0, 2.0], Coverage::P95).unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 3.0));
        assert!((interval.coverage.probability() - 0.75).abs() < 1e-9);
    }

    #[test]
    fn the_interval_of_an_inverse_ratio_is_the_inverse_interval() {
        let pairs = [(2.0, 1.0), (2.2, 1.0), (1.9, 1.0)];
        let swapped = pairs.map(|(a, b)| (b, a));
        let (value, interval) = geometric_ratio(&pairs, Coverage::P95).unwrap();
        let (inverse, mirrored) = geometric_ratio(&swapped, Coverage::P95).unwrap();
        assert!((value * inverse - 1.0).abs() < 1e-12);
        assert!((interval.low * mirrored.high - 1.0).abs() < 1e-12);
        assert!((value - (2.0_f64 * 2.2 * 1.9).cbrt()).abs() < 1e-12);
    }

    #[test]
    fn pairs_without_a_ratio_are_left_out() {
        assert_eq!(
            geometric_ratio(&[(1.0, 0.0), (1.0, 1.0)], Coverage::P95),
            Err(TooFew { had: 1 })
        );
        assert_eq!(paired_difference(&[(3.0, 1.0), (5.0, 3.0)]).unwrap().value, 2.0);
    }
}
