//! When to stop measuring, without fooling oneself by looking.
//!
//! Whoever stops at the first moment at which the readings agree well enough stops more often
//! after a lucky streak: Student's interval at that moment holds the truth too seldom (92 % instead
//! of 95 at worst). The spread is therefore multiplied by a factor, both in the rule and in the
//! interval that is reported, which is the least that covers as claimed whatever the true spread.
//! For normal readings mean and spread are independent, so the factor follows from the distribution
//! of the spread alone; `cargo run -p metrology --example peeking` computes it.
//!
//! ```text
//! runs      1   2   3   4   5   6   7   …
//! look                      ✗   ✗   ✔ factor · s/√7 ≤ asked · mean: stop
//! ```

use crate::{Coverage, Estimate};

/// No earlier look: fewer runs say next to nothing about the spread.
pub const FIRST_LOOK: usize = 5;

/// Coverage and the factor that makes up for looking after every run from the fifth on: the
/// greatest over all true spreads, rounded up.
const FACTORS: [(f64, f64); 7] = [
    (0.5, 1.14),
    (0.6827, 1.15),
    (0.8, 1.155),
    (0.9, 1.16),
    (0.95, 1.175),
    (0.99, 1.19),
    (0.999, 1.20),
];

/// A rule for stopping.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stopping {
    /// The relative standard uncertainty that is asked for.
    pub asked: f64,
    /// The coverage of the intervals that will be reported.
    pub coverage: Coverage,
}

/// What a look says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Look {
    /// Too early to look.
    TooEarly,
    /// Not sure enough; the spread so far suggests that so many readings in all will do.
    Continue {
        /// Readings in all.
        needed: u64,
    },
    /// Sure enough.
    Stop,
}

impl Stopping {
    /// Judges the mean of readings whose standard uncertainty is the plain s/√n.
    pub fn look(&self, plain: Estimate) -> Look {
        let readings = plain.degrees_of_freedom + 1.0;
        if readings < FIRST_LOOK as f64 {
            return Look::TooEarly;
        }
        let reached = self.factor() * plain.standard_uncertainty;
        if reached <= self.asked * plain.value.abs() {
            return Look::Stop;
        }
        let spread = plain.standard_uncertainty * readings.sqrt() / plain.value.abs();
        let needed = runs_needed(self.factor() * spread, self.asked);
        Look::Continue { needed: needed.max(readings as u64 + 1) }
    }

    /// What the standard uncertainty is multiplied by because of the looking.
    pub fn factor(&self) -> f64 {
        peeking_factor(self.coverage)
    }
}

/// The factor for a coverage; between two of the table the greater.
pub fn peeking_factor(coverage: Coverage) -> f64 {
    let enough = FACTORS.iter().find(|(covered, _)| coverage.probability() <= covered + 1e-12);
    let last = FACTORS[FACTORS.len() - 1].1;
    enough.map_or(last, |(_, factor)| *factor)
}

/// How many runs a relative spread (standard deviation over mean) needs for a relative standard
/// uncertainty of the mean: (spread / asked)², at least one.
pub fn runs_needed(spread: f64, asked: f64) -> u64 {
    let runs = (spread / asked).powi(2);
    if runs.is_finite() { runs.ceil().max(1.0) as u64 } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draws, mean};

    const RULE: Stopping = Stopping { asked: 0.01, coverage: Coverage::P95 };

    #[test]
    fn the_number_of_runs_is_the_square_of_the_ratio() {
        assert_eq!(runs_needed(0.03, 0.01), 9);
        assert_eq!(runs_needed(0.0, 0.01), 1);
        assert_eq!(runs_needed(0.1, 0.0), u64::MAX);
    }

    #[test]
    fn no_look_before_the_fifth_run_and_none_needed_where_nothing_varies() {
        assert_eq!(RULE.look(mean(&[1.0; 4]).unwrap()), Look::TooEarly);
        assert_eq!(RULE.look(mean(&[1.0; 5]).unwrap()), Look::Stop);
        let wild = mean(&[0.5, 1.5, 0.5, 1.5, 1.0]).unwrap();
        // s = 0.5, so (factor · 0.5 / 0.01)².
        let expected = (RULE.factor() * 50.0).powi(2).ceil() as u64;
        assert_eq!(RULE.look(wild), Look::Continue { needed: expected });
        let zero = mean(&[-1.0, 1.0, -1.0, 1.0, 0.0]).unwrap();
        assert_eq!(RULE.look(zero), Look::Continue { needed: u64::MAX });
    }

    #[test]
    fn the_factor_rises_with_coverage_and_is_never_below_one() {
        let factor = |p| peeking_factor(Coverage::new(p).unwrap());
        assert!(factor(0.3) >= 1.0 && factor(0.9) < factor(0.95) && factor(0.95) < factor(0.99));
        assert_eq!(factor(0.93), factor(0.95));
        assert_eq!(factor(0.999_99), factor(0.999));
    }

    /// 2,000 experiments a case; at least 95 % less 5 standard errors (0.49 points each), and the
    /// runs spent at most twice what a known spread would need.
    #[test]
    fn looking_after_every_run_costs_neither_coverage_nor_twice_the_runs() {
        for optimum in [3.0_f64, 10.0, 20.0, 30.0] {
            let mut draws = Draws::new(optimum as u64);
            let spread = RULE.asked * 100.0 * optimum.sqrt();
            let (mut held, mut runs) = (0, 0);
            for _ in 0..2000 {
                let mut readings: Vec<f64> = Vec::new();
                let estimate = loop {
                    readings.push(100.0 + spread * draws.normal());
                    let Ok(plain) = mean(&readings) else { continue };
                    if RULE.look(plain) == Look::Stop {
                        break plain;
                    }
                };
                runs += readings.len();
                let u = estimate.standard_uncertainty * RULE.factor();
                let corrected = Estimate { standard_uncertainty: u, ..estimate };
                held += u32::from(corrected.interval(Coverage::P95).holds(100.0));
            }
            assert!(held >= 1851, "{held} of 2000 at {optimum}");
            assert!((runs as f64) < 2.0 * optimum * 2000.0, "{runs} at {optimum}");
        }
    }
}
