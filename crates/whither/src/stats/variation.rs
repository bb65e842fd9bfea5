//! How much one procedure varies.

use metrology::variance_ratio_cdf;
use vocab::Count;

use crate::sampled::SetRow;

/// Degrees of freedom that stand for infinitely many.
const MANY: f64 = 1e7;

/// One procedure over all sets.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Variation {
    pub(super) image: String,
    pub(super) procedure: String,
    /// (maximum − minimum) ÷ sum.
    pub(super) range: f64,
    pub(super) sum: Count,
    pub(super) mean: f64,
    /// Of the sets, n − 1 below the line.
    pub(super) deviation: f64,
    pub(super) least: Count,
    pub(super) most: Count,
    /// The probability of counts so uneven if every set had the same mean: sampling alone.
    pub(super) chance: f64,
}

impl Variation {
    pub(super) fn of(row: &SetRow) -> Variation {
        let counts = &row.counts;
        let n = counts.len().max(1) as f64;
        let sum = row.sum();
        let mean = sum.as_f64() / n;
        let squares: f64 = counts.iter().map(|count| (count.as_f64() - mean).powi(2)).sum();
        let least = counts.iter().copied().min().unwrap_or_default();
        let most = counts.iter().copied().max().unwrap_or_default();
        Variation {
            image: row.image.clone(),
            procedure: row.procedure.clone(),
            range: (most.as_f64() - least.as_f64()) / sum.as_f64().max(1.0),
            sum,
            mean,
            deviation: (squares / (n - 1.0).max(1.0)).sqrt(),
            least,
            most,
            chance: chance(squares, mean, n),
        }
    }
}

/// Counts that differ by sampling alone have a variance equal to their mean, so that
/// Σ(x − mean)² ÷ mean follows χ² with n − 1 degrees of freedom; χ²/ν is a ratio of variances whose
/// lower one is known.
fn chance(squares: f64, mean: f64, n: f64) -> f64 {
    let freedom = n - 1.0;
    if freedom < 1.0 || mean <= 0.0 {
        return 1.0;
    }
    1.0 - variance_ratio_cdf(squares / mean / freedom, freedom, MANY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(counts: &[u64]) -> SetRow {
        SetRow {
            image: "i".into(),
            procedure: "p".into(),
            counts: counts.iter().map(|&count| Count(count)).collect(),
        }
    }

    #[test]
    fn the_papers_smooth_has_its_range_mean_and_deviation() {
        // Figure 3 gives minimum, maximum, sum and deviation; the six sets between are chosen to
        // have that sum.
        let counts = [38155, 88075, 52000, 52000, 52000, 52000, 53405, 53405];
        let varied = Variation::of(&row(&counts));
        assert_eq!(varied.sum, Count(441_040));
        assert!((100.0 * varied.range - 11.32).abs() < 0.005, "{}", varied.range);
        assert_eq!(varied.mean, 55130.0);
        assert!(varied.chance < 1e-9);
    }

    #[test]
    fn even_counts_are_chance_and_the_tail_is_that_of_chi_squared() {
        assert!((Variation::of(&row(&[100, 100, 100])).chance - 1.0).abs() < 1e-9);
        // Σ(x − 100)² ÷ 100 = 5.991 at two degrees of freedom leaves 5 %.
        let off = (5.991_f64 * 100.0 / 2.0).sqrt();
        let p = chance(2.0 * off * off, 100.0, 3.0);
        assert!((p - 0.05).abs() < 1e-3, "{p}");
    }
}
