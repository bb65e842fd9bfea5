//! How far apart two distributions are, from their counts by bin.

/// A bin in which nothing was counted counts as this much: nothing seen is not impossible.
const EMPTY: f64 = 0.5;

/// The Kullback–Leibler distance of `estimated` from `truth`, in nats: Σ p·ln(p/q) over bins, where
/// an empty bin counts as half a count. None where the numbers of bins differ or there are none.
pub fn kl_distance(truth: &[f64], estimated: &[f64]) -> Option<f64> {
    let (p, q) = (shares(truth, EMPTY)?, shares(estimated, EMPTY)?);
    (p.len() == q.len()).then(|| p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum())
}

/// What two distributions do not share: 1 − Σ min(p, q), from 0 (the same) to 1 (disjoint).
pub fn overlap_distance(a: &[f64], b: &[f64]) -> Option<f64> {
    let (p, q) = (shares(a, 0.0)?, shares(b, 0.0)?);
    let shared: f64 = p.iter().zip(&q).map(|(p, q)| p.min(*q)).sum();
    (p.len() == q.len()).then_some((1.0 - shared).clamp(0.0, 1.0))
}

/// Counts as shares of their sum; none where there is nothing to share.
fn shares(counts: &[f64], empty: f64) -> Option<Vec<f64>> {
    let filled: Vec<f64> = counts.iter().map(|&c| if c > 0.0 { c } else { empty }).collect();
    let sum: f64 = filled.iter().sum();
    (sum > 0.0 && sum.is_finite()).then(|| filled.iter().map(|c| c / sum).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_known_distributions() {
        let kl = kl_distance(&[50.0, 50.0], &[25.0, 75.0]).unwrap();
        // ½ ln 2 + ½ ln ⅔
        assert!((kl - 0.5 * (4.0_f64 / 3.0).ln()).abs() < 1e-12);
        assert_eq!(kl_distance(&[3.0, 1.0], &[30.0, 10.0]), Some(0.0));
        assert_eq!(overlap_distance(&[1.0, 1.0, 0.0], &[0.0, 1.0, 1.0]), Some(0.5));
        assert_eq!(overlap_distance(&[1.0, 0.0], &[0.0, 9.0]), Some(1.0));
    }

    #[test]
    fn an_empty_bin_counts_half() {
        let kl = kl_distance(&[1.0, 0.0], &[1.0, 1.0]).unwrap();
        let (p, q) = (1.0 / 1.5, 0.5 / 1.5);
        assert!((kl - (p * (p / 0.5_f64).ln() + q * (q / 0.5_f64).ln())).abs() < 1e-12);
        assert_eq!(kl_distance(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(kl_distance(&[], &[]), None);
        assert_eq!(overlap_distance(&[0.0], &[1.0]), None);
    }
}
