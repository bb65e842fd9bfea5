//! Bursts larger than any that was seen.
//!
//! Where the largest counts fall off slowly, the slices that were not counted are likely to hold a
//! larger one than those that were, and no variance of what was seen can know of it. How slowly they
//! fall off is Hill's estimate of the tail's index from the largest few; a sample m times as large
//! then reaches m^(1/index) times as far.

/// How much larger than the largest that was seen the largest of all may be, given the share that was
/// seen. About 0 for counts that are bounded or fall off fast.
pub(super) fn beyond(counts: &[f64], share: f64) -> f64 {
    let mut seen: Vec<f64> = counts.iter().copied().filter(|count| *count > 0.0).collect();
    seen.sort_by(|a, b| b.total_cmp(a));
    let few = ((counts.len() as f64).sqrt() as usize).clamp(4, 50);
    let few = few.min(seen.len().saturating_sub(1));
    let (Some(&largest), Some(&least)) = (seen.first(), seen.get(few)) else { return 0.0 };
    if few < 2 || share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let logs: f64 = seen.iter().take(few).map(|count| (count / least).ln()).sum();
    let inverse = logs / few as f64;
    // Beyond this the tail has no mean, and nothing is said by saying more.
    largest * ((1.0 / share).powf(inverse.min(1.0)) - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heavy_tail_reaches_far_and_a_light_one_does_not() {
        // Quantiles of a Pareto distribution of index 1, and of a uniform one.
        let pareto: Vec<f64> = (1..=1000).map(|k| 1000.0 / f64::from(k)).collect();
        let far = beyond(&pareto, 0.1) / 1000.0;
        // Ten times as many reach ten times as far, less what Hill's few leave open.
        assert!((4.0..9.5).contains(&far), "{far}");
        let uniform: Vec<f64> = (1..=1000).map(f64::from).collect();
        assert!(beyond(&uniform, 0.1) / 1000.0 < 0.05);
        assert_eq!(beyond(&[5.0; 100], 0.1), 0.0);
        assert_eq!(beyond(&[0.0; 100], 0.1), 0.0);
        assert_eq!(beyond(&pareto, 1.0), 0.0);
    }
}
