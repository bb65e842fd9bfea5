//! May groups of runs be combined?
//!
//! Ours is Fisher's analysis of variance: under the same conditions the means of groups differ by
//! chance alone, and the test says so wrongly at exactly the rate that is asked for. The paper's
//! own test, whether mean ± k·u of the groups overlap, stands beside it; its rate depends on how
//! many runs and groups there are.

use crate::levels::Parts;
use crate::readings::{TooFew, mean};
use crate::student_cdf;

/// The coverage factor of the paper's test.
pub const OVERLAP_FACTOR: f64 = 3.0;

/// What the comparison of groups says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Compatibility {
    /// The probability that groups differ so much by chance.
    pub p: f64,
    /// The two groups that differ most; none where all have one mean.
    pub worst: Option<WorstPair>,
    /// Whether all intervals mean ± 3 u overlap: the paper's test.
    pub overlap: bool,
}

/// Two groups and how they differ.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorstPair {
    /// The earlier group.
    pub first: usize,
    /// The later group.
    pub second: usize,
    /// The later mean less the earlier one.
    pub difference: f64,
    /// The probability that these two differ so much by chance, for having been picked corrected
    /// (Bonferroni).
    pub p: f64,
}

impl Compatibility {
    /// Whether the groups may be combined, at a rate of false alarms.
    pub fn holds_at(&self, false_alarms: f64) -> bool {
        self.p > false_alarms
    }
}

/// Compares groups of readings; groups without a reading are left out of the count.
///
/// # Errors
///
/// Fewer than two groups, or fewer than two readings in every group.
pub fn compatible<T: AsRef<[f64]>>(groups: &[T]) -> Result<Compatibility, TooFew> {
    let filled: Vec<(usize, &[f64])> =
        groups.iter().map(AsRef::as_ref).enumerate().filter(|(_, g)| !g.is_empty()).collect();
    let slices: Vec<&[f64]> = filled.iter().map(|(_, group)| *group).collect();
    let parts = Parts::of(&slices);
    if slices.len() < 2 || parts.rest == 0.0 {
        return Err(TooFew { had: slices.len() });
    }
    let count = slices.len();
    let pairs = (count * (count - 1) / 2) as f64;
    let mut worst: Option<WorstPair> = None;
    for (place, (first, a)) in filled.iter().enumerate() {
        for (second, b) in filled.iter().skip(place + 1) {
            let (difference, p) = pair(a, b, &parts);
            if difference != 0.0 && worst.is_none_or(|w| p * pairs < w.p) {
                let p = (p * pairs).min(1.0);
                worst = Some(WorstPair { first: *first, second: *second, difference, p });
            }
        }
    }
    Ok(Compatibility { p: parts.p(), worst, overlap: overlap(&slices) })
}

/// The difference of two means and its probability, by the spread of all groups.
fn pair(a: &[f64], b: &[f64], parts: &Parts) -> (f64, f64) {
    let of = |group: &[f64]| group.iter().sum::<f64>() / group.len() as f64;
    let difference = of(b) - of(a);
    let error = (parts.within * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    let p = match error {
        0.0 => f64::from(u8::from(difference == 0.0)),
        error => 2.0 * student_cdf(-(difference / error).abs(), parts.rest),
    };
    (difference, p)
}

/// Every pair of mean ± 3 u has a value in common. A group of one has no u and takes no part.
fn overlap(groups: &[&[f64]]) -> bool {
    let ends: Vec<(f64, f64)> = groups
        .iter()
        .filter_map(|group| mean(group).ok())
        .map(|m| (m.value, OVERLAP_FACTOR * m.standard_uncertainty))
        .map(|(value, half)| (value - half, value + half))
        .collect();
    // Intervals on a line meet pairwise exactly if the highest low end is below the lowest high.
    let low = ends.iter().map(|e| e.0).fold(f64::NEG_INFINITY, f64::max);
    let high = ends.iter().map(|e| e.1).fold(f64::INFINITY, f64::min);
    low <= high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draws;

    #[test]
    fn the_pair_that_differs_is_named() {
        let groups = [vec![1.0, 1.1, 0.9], vec![1.0, 0.9, 1.1], vec![2.0, 2.1, 1.9]];
        let found = compatible(&groups).unwrap();
        assert!(!found.holds_at(0.01) && !found.overlap);
        let worst = found.worst.unwrap();
        assert_eq!(worst.second, 2);
        assert!((worst.difference - 1.0).abs() < 1e-12 && worst.p < 1e-4);
    }

    #[test]
    fn two_groups_give_students_test() {
        let found = compatible(&[vec![1.0, 2.0, 3.0], vec![2.0, 3.0, 4.0]]).unwrap();
        // t = 1/√(2/3) with 4 degrees of freedom.
        let t = 1.5_f64.sqrt();
        assert!((found.p - 2.0 * student_cdf(-t, 4.0)).abs() < 1e-9);
        assert!((found.worst.unwrap().p - found.p).abs() < 1e-9);
    }

    #[test]
    fn groups_without_spread_are_the_same_or_are_not() {
        let same = compatible(&[vec![5.0, 5.0], vec![5.0, 5.0]]).unwrap();
        assert_eq!((same.p, same.worst, same.overlap), (1.0, None, true));
        let other = compatible(&[vec![5.0, 5.0], vec![6.0, 6.0]]).unwrap();
        assert_eq!((other.p, other.overlap), (0.0, false));
        assert_eq!(other.worst.unwrap().p, 0.0);
        assert_eq!(compatible(&[vec![5.0], vec![6.0]]), Err(TooFew { had: 2 }));
        assert_eq!(compatible(&[vec![5.0, 4.0], vec![]]), Err(TooFew { had: 1 }));
    }

    /// 4,000 experiments: 5 % ± 5 standard errors (0.34 points each).
    #[test]
    fn false_alarms_come_at_the_rate_asked_for() {
        for (groups, runs) in [(2, 3), (3, 5)] {
            let mut draws = Draws::new(runs as u64);
            let mut alarms = 0;
            for _ in 0..4000 {
                let readings: Vec<Vec<f64>> = (0..groups)
                    .map(|_| (0..runs).map(|_| 100.0 + draws.normal()).collect())
                    .collect();
                alarms += u32::from(!compatible(&readings).unwrap().holds_at(0.05));
            }
            assert!((131..=269).contains(&alarms), "{alarms} of 4000");
        }
    }
}
