//! What part of the whole, from samples.

use crate::{Coverage, Interval};

/// The share `k / n` with Wilson's interval, which stays inside 0..1 and holds near the ends,
/// where the textbook ± does not: zero samples of a thousand still allow 0.38 %.
///
/// Samples are taken as independent. None if there are no samples at all.
pub fn share(k: u64, n: u64, coverage: Coverage) -> Option<(f64, Interval)> {
    if n == 0 || k > n {
        return None;
    }
    let z = crate::normal_quantile(coverage.upper_point());
    let (n, p) = (n as f64, k as f64 / n as f64);
    let middle = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let low = if k == 0 { 0.0 } else { middle - half };
    let high = if p == 1.0 { 1.0 } else { middle + half };
    Some((p, Interval { low, high, coverage }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial_cdf;

    #[test]
    fn the_ends_stay_inside_zero_and_one() {
        let (p, none) = share(0, 1000, Coverage::P95).unwrap();
        assert_eq!((p, none.low), (0.0, 0.0));
        assert!((none.high - 0.003_826_77).abs() < 1e-6, "{}", none.high);
        assert_eq!(share(7, 7, Coverage::P95).unwrap().1.high, 1.0);
        assert_eq!(share(1, 0, Coverage::P95), None);
        assert_eq!(share(3, 2, Coverage::P95), None);
    }

    /// Exact: the probability, over every possible k, that the interval holds p.
    #[test]
    fn the_interval_covers_what_it_says_averaged_over_shares() {
        let n = 400;
        let mut sum = 0.0;
        let shares: Vec<f64> = (1..100).map(|i| f64::from(i) / 100.0).collect();
        for &p in &shares {
            let mut before = 0.0;
            for k in 0..=n {
                let upto = binomial_cdf(k, n, p);
                let held = share(k, n, Coverage::P95).is_some_and(|(_, i)| i.holds(p));
                sum += if held { upto - before } else { 0.0 };
                before = upto;
            }
        }
        let coverage = sum / shares.len() as f64;
        assert!((0.945..0.955).contains(&coverage), "{coverage}");
    }
}
