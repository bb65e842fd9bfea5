//! A value that was inferred, and how far off it may be.

use crate::student_quantile;

/// The probability with which an interval is meant to hold the truth.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Coverage(f64);

impl Coverage {
    /// What is printed unless the user asks otherwise.
    pub const P95: Coverage = Coverage(0.95);

    /// A coverage strictly between 0 and 1.
    pub fn new(probability: f64) -> Option<Coverage> {
        (probability > 0.0 && probability < 1.0).then_some(Coverage(probability))
    }

    /// As a probability.
    pub fn probability(self) -> f64 {
        self.0
    }

    /// The upper point of a two-sided interval: 0.975 for 95 %.
    pub(crate) fn upper_point(self) -> f64 {
        0.5 + self.0 / 2.0
    }
}

/// A range with the probability that it holds the truth. It need not be symmetric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the truth.
    pub coverage: Coverage,
}

impl Interval {
    /// Half its width: the number behind the ±.
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether a value lies inside.
    pub fn holds(self, truth: f64) -> bool {
        self.low <= truth && truth <= self.high
    }

    /// The interval in other units.
    pub fn scaled(self, factor: f64) -> Interval {
        let (a, b) = (self.low * factor, self.high * factor);
        Interval { low: a.min(b), high: a.max(b), ..self }
    }
}

/// A value with its standard uncertainty and the degrees of freedom behind that uncertainty.
///
/// Degrees of freedom are infinite where the uncertainty is known rather than estimated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// One standard deviation of the guess.
    pub standard_uncertainty: f64,
    /// How well that deviation itself is known.
    pub degrees_of_freedom: f64,
}

impl Estimate {
    /// A value that is known exactly.
    pub fn exact(value: f64) -> Estimate {
        Estimate { value, standard_uncertainty: 0.0, degrees_of_freedom: f64::INFINITY }
    }

    /// A value whose uncertainty is known.
    pub fn known(value: f64, standard_uncertainty: f64) -> Estimate {
        Estimate { value, standard_uncertainty, degrees_of_freedom: f64::INFINITY }
    }

    /// A value that lies anywhere within ± `half_width` alike: a bound that is known without
    /// repeating anything (type B), u = a/√3.
    pub fn within(value: f64, half_width: f64) -> Estimate {
        Estimate::known(value, half_width.abs() / 3.0_f64.sqrt())
    }

    /// The symmetric interval at a coverage.
    pub fn interval(self, coverage: Coverage) -> Interval {
        let half = self.half_width(coverage);
        Interval { low: self.value - half, high: self.value + half, coverage }
    }

    /// The number behind the ± at a coverage.
    pub fn half_width(self, coverage: Coverage) -> f64 {
        if self.standard_uncertainty == 0.0 {
            return 0.0;
        }
        student_quantile(coverage.upper_point(), self.degrees_of_freedom)
            * self.standard_uncertainty
    }

    /// The estimate in other units.
    pub fn scaled(self, factor: f64) -> Estimate {
        Estimate {
            value: self.value * factor,
            standard_uncertainty: self.standard_uncertainty * factor.abs(),
            ..self
        }
    }

    /// The sum of two independent estimates.
    pub fn plus(self, other: Estimate) -> Estimate {
        combine(self.value + other.value, &[(1.0, self), (1.0, other)])
    }

    /// The difference of two independent estimates.
    pub fn minus(self, other: Estimate) -> Estimate {
        combine(self.value - other.value, &[(1.0, self), (-1.0, other)])
    }

    /// The product of two independent estimates, to first order.
    pub fn times(self, other: Estimate) -> Estimate {
        combine(self.value * other.value, &[(other.value, self), (self.value, other)])
    }

    /// The quotient of two independent estimates, to first order; none if the divisor is zero.
    pub fn over(self, other: Estimate) -> Option<Estimate> {
        if other.value == 0.0 {
            return None;
        }
        let value = self.value / other.value;
        Some(combine(value, &[(1.0 / other.value, self), (-value / other.value, other)]))
    }
}

/// First-order propagation: u² = Σ (∂f/∂x · u_x)², with the degrees of freedom that Welch and
/// Satterthwaite give the sum: u⁴ / Σ (c·u_x)⁴/ν_x.
fn combine(value: f64, parts: &[(f64, Estimate)]) -> Estimate {
    let variance: f64 = parts.iter().map(|(c, e)| (c * e.standard_uncertainty).powi(2)).sum();
    let spread: f64 = parts
        .iter()
        .map(|(c, e)| (c * e.standard_uncertainty).powi(4) / e.degrees_of_freedom)
        .sum();
    let degrees_of_freedom = if spread > 0.0 { variance.powi(2) / spread } else { f64::INFINITY };
    Estimate { value, standard_uncertainty: variance.sqrt(), degrees_of_freedom }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncertainties_of_a_sum_add_in_squares() {
        let sum = Estimate::known(1.0, 3.0).plus(Estimate::known(2.0, 4.0));
        assert_eq!((sum.value, sum.standard_uncertainty), (3.0, 5.0));
        assert_eq!(Estimate::known(5.0, 3.0).minus(Estimate::known(2.0, 4.0)).value, 3.0);
    }

    #[test]
    fn relative_uncertainties_of_a_quotient_add_in_squares() {
        let q = Estimate::known(100.0, 3.0).over(Estimate::known(50.0, 2.0)).unwrap();
        assert_eq!(q.value, 2.0);
        assert!((q.standard_uncertainty / q.value - 0.05).abs() < 1e-12);
        assert_eq!(Estimate::exact(1.0).over(Estimate::exact(0.0)), None);
        let p = Estimate::known(100.0, 3.0).times(Estimate::known(50.0, 2.0));
        assert!((p.standard_uncertainty / p.value - 0.05).abs() < 1e-12);
    }

    #[test]
    fn welch_satterthwaite_of_two_equal_parts_doubles_the_degrees_of_freedom() {
        let part = Estimate { value: 1.0, standard_uncertainty: 1.0, degrees_of_freedom: 4.0 };
        assert!((part.plus(part).degrees_of_freedom - 8.0).abs() < 1e-12);
        assert!(part.plus(Estimate::exact(1.0)).degrees_of_freedom - 4.0 < 1e-12);
    }

    #[test]
    fn the_interval_of_a_known_uncertainty_is_normal() {
        let interval = Estimate::known(10.0, 1.0).interval(Coverage::P95);
        assert!((interval.half_width() - 1.959_964).abs() < 1e-6);
        assert!(interval.holds(8.1) && !interval.holds(8.0));
        assert_eq!(Estimate::exact(2.0).half_width(Coverage::P95), 0.0);
    }

    #[test]
    fn a_bound_has_the_spread_of_an_even_distribution() {
        // The variance of an even distribution over ±6 is 12.
        assert!((Estimate::within(1.0, 6.0).standard_uncertainty - 12.0_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn a_negative_factor_keeps_the_interval_in_order() {
        let interval = Estimate::known(10.0, 1.0).interval(Coverage::P95).scaled(-2.0);
        assert!(interval.low < interval.high && interval.holds(-20.0));
    }
}
