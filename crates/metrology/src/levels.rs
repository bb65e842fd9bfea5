//! Two levels of variation, after Kalibera and Jones: executions within environments.
//!
//! ```text
//! environment 1   ● ●  ──mean──► x̄₁ ┐
//! environment 2   ● ●  ──mean──► x̄₂ ┼─► mean of the means, u = s(x̄)/√environments
//! environment 3   ● ●  ──mean──► x̄₃ ┘
//! ```
//!
//! An environment is whatever is held while a program repeats and might have been otherwise: the
//! size of its environment variables, where things lie in memory. Repeating in one environment
//! says nothing about the others, so the means of environments are the readings.

use crate::readings::{TooFew, mean};
use crate::{Estimate, variance_ratio_cdf};

/// What two levels of readings say.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Levels {
    /// The mean over environments; degrees of freedom are environments − 1.
    pub estimate: Estimate,
    /// The variance between environments that executions do not explain; 0 where there is none.
    pub between: f64,
    /// The variance of executions within an environment.
    pub within: f64,
    /// How likely so large a spread between environments is where none of it is theirs.
    pub p: f64,
}

impl Levels {
    /// The share of a single execution's variance that comes from its environment.
    pub fn share_between(&self) -> f64 {
        let whole = self.between + self.within;
        if whole > 0.0 { self.between / whole } else { 0.0 }
    }

    /// How many executions to spend on an environment that costs `cost` executions to set up
    /// (Kalibera and Jones): more only where executions vary more than environments do.
    pub fn executions_worth_while(&self, cost: f64) -> u64 {
        match self.between {
            b if b > 0.0 => (cost * self.within / b).sqrt().ceil().clamp(1.0, 1e6) as u64,
            _ if self.within > 0.0 => 1_000_000,
            _ => 1,
        }
    }
}

/// From the readings of each environment. Environments without a reading are left out.
///
/// # Errors
///
/// Fewer than two environments.
pub fn two_level<T: AsRef<[f64]>>(environments: &[T]) -> Result<Levels, TooFew> {
    let filled: Vec<&[f64]> =
        environments.iter().map(AsRef::as_ref).filter(|e| !e.is_empty()).collect();
    let means: Vec<f64> = filled.iter().map(|e| e.iter().sum::<f64>() / e.len() as f64).collect();
    let estimate = mean(&means)?;
    let parts = Parts::of(&filled);
    let reciprocal = filled.iter().map(|e| 1.0 / e.len() as f64).sum::<f64>() / means.len() as f64;
    let of_means = estimate.standard_uncertainty.powi(2) * means.len() as f64;
    Ok(Levels {
        estimate,
        between: (of_means - parts.within * reciprocal).max(0.0),
        within: parts.within,
        p: parts.p(),
    })
}

/// The parts of an analysis of variance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// Mean square between groups.
    pub(crate) between: f64,
    /// Mean square within groups.
    pub(crate) within: f64,
    pub(crate) groups_less_one: f64,
    pub(crate) rest: f64,
    mean: f64,
}

impl Parts {
    pub(crate) fn of(groups: &[&[f64]]) -> Parts {
        let readings: usize = groups.iter().map(|g| g.len()).sum();
        let mean = groups.iter().flat_map(|g| g.iter()).sum::<f64>() / readings.max(1) as f64;
        let (mut between, mut within) = (0.0, 0.0);
        for group in groups.iter().filter(|g| !g.is_empty()) {
            let own = group.iter().sum::<f64>() / group.len() as f64;
            between += group.len() as f64 * (own - mean).powi(2);
            within += group.iter().map(|r| (r - own).powi(2)).sum::<f64>();
        }
        let groups_less_one = groups.len().saturating_sub(1) as f64;
        let rest = readings.saturating_sub(groups.len()) as f64;
        Parts {
            between: if groups_less_one > 0.0 { between / groups_less_one } else { 0.0 },
            within: if rest > 0.0 { within / rest } else { 0.0 },
            groups_less_one,
            rest,
            mean,
        }
    }

    /// The probability of so large a spread between groups where there is no difference.
    pub(crate) fn p(&self) -> f64 {
        // Equal readings differ by rounding at most.
        let rounding = (1e-12 * self.mean).powi(2);
        if self.rest == 0.0 || self.between <= rounding {
            return 1.0;
        }
        if self.within <= rounding {
            return 0.0;
        }
        1.0 - variance_ratio_cdf(self.between / self.within, self.groups_less_one, self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coverage, Draws};

    #[test]
    fn the_parts_of_a_worked_example() {
        // Means 2, 5, 8: of the means 9, within 1, so 9 − 1/3 between.
        let levels =
            two_level(&[vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0], vec![7.0, 8.0, 9.0]]).unwrap();
        assert_eq!((levels.estimate.value, levels.estimate.degrees_of_freedom), (5.0, 2.0));
        assert!((levels.estimate.standard_uncertainty - 3.0_f64.sqrt()).abs() < 1e-12);
        assert!((levels.between - (9.0 - 1.0 / 3.0)).abs() < 1e-12);
        assert!((levels.within - 1.0).abs() < 1e-12);
        // F = 27 with 2 and 6 degrees of freedom.
        assert!((levels.p - 0.001).abs() < 1e-9, "{}", levels.p);
        assert_eq!(levels.executions_worth_while(1.0), 1);
        assert_eq!(levels.executions_worth_while(100.0), 4);
    }

    #[test]
    fn one_environment_and_equal_readings() {
        assert_eq!(two_level(&[vec![1.0, 2.0]]), Err(TooFew { had: 1 }));
        let flat = two_level(&[vec![3.0, 3.0], vec![3.0], vec![]]).unwrap();
        assert_eq!((flat.p, flat.between, flat.share_between()), (1.0, 0.0, 0.0));
        assert_eq!(flat.executions_worth_while(1.0), 1);
    }

    /// Environments as variable as executions: 95 % ± 5 standard errors of 2,000 experiments,
    /// where the plain mean of all executions holds far less often.
    #[test]
    fn readings_of_two_levels_are_covered_as_claimed() {
        for environments in [3, 10] {
            let mut draws = Draws::new(environments as u64);
            let (mut held, mut held_plain) = (0, 0);
            for _ in 0..2000 {
                let readings: Vec<Vec<f64>> = (0..environments)
                    .map(|_| {
                        let own = 10.0 + draws.normal();
                        (0..4).map(|_| own + draws.normal()).collect()
                    })
                    .collect();
                let level = two_level(&readings).unwrap().estimate.interval(Coverage::P95);
                held += u32::from(level.holds(10.0));
                let plain = mean(&readings.concat()).unwrap().interval(Coverage::P95);
                held_plain += u32::from(plain.holds(10.0));
            }
            assert!((1851..=1949).contains(&held), "{held} of 2000");
            assert!(held_plain < 1700, "{held_plain} of 2000");
        }
    }
}
