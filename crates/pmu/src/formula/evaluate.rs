//! A formula's value, with the uncertainty that its inputs give it.
//!
//! Forward differentiation: every node carries its value and its slope along each input, so that
//! u² = Σᵢ Σⱼ cᵢ cⱼ cov(i, j) needs no second look at the tree. Inputs that were counted in the
//! same slices go up and down together; who knows their covariance says so through [`Inputs`].

use std::fmt;

use metrology::Estimate;

use super::{Formula, Node, Operator};

/// Where a formula's names get their values.
pub trait Inputs {
    /// The value of an event or constant; none where there is none.
    fn value(&self, name: &str) -> Option<Estimate>;

    /// How two different inputs vary together; 0 where they are independent.
    fn covariance(&self, _one: &str, _other: &str) -> f64 {
        0.0
    }
}

/// Why a formula has no value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotComputed {
    /// A name without a value.
    Missing(String),
    /// Something was divided by zero, or grew beyond all numbers.
    Undefined,
}

impl fmt::Display for NotComputed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotComputed::Missing(name) => write!(f, "{name} was not counted"),
            NotComputed::Undefined => f.write_str("it divides by zero"),
        }
    }
}

impl std::error::Error for NotComputed {}

/// A value and its slope along each input.
struct Dual {
    value: f64,
    slopes: Vec<f64>,
}

impl Formula {
    /// The value with its uncertainty, to first order.
    pub fn evaluate(&self, inputs: &dyn Inputs) -> Result<Estimate, NotComputed> {
        let found: Vec<Estimate> = self
            .names
            .iter()
            .map(|name| inputs.value(name).ok_or_else(|| NotComputed::Missing(name.clone())))
            .collect::<Result<_, _>>()?;
        let dual = dual(&self.root, &found);
        if !dual.value.is_finite() || dual.slopes.iter().any(|slope| !slope.is_finite()) {
            return Err(NotComputed::Undefined);
        }
        Ok(self.combine(&dual, &found, inputs))
    }

    fn combine(&self, dual: &Dual, found: &[Estimate], inputs: &dyn Inputs) -> Estimate {
        let mut variance = 0.0;
        // Welch and Satterthwaite, each input's own part: u⁴ / Σ (c·u)⁴/ν.
        let mut spread = 0.0;
        for (place, (slope, estimate)) in dual.slopes.iter().zip(found).enumerate() {
            let part = (slope * estimate.standard_uncertainty).powi(2);
            variance += part;
            if part > 0.0 {
                spread += part.powi(2) / estimate.degrees_of_freedom;
            }
            for (earlier, other) in dual.slopes.iter().enumerate().take(place) {
                let together = inputs.covariance(&self.names[earlier], &self.names[place]);
                variance += 2.0 * slope * other * together;
            }
        }
        // Estimated covariances need not be those of any real quantities: rounding may take a
        // variance that is zero in truth a little below it.
        let variance = variance.max(0.0);
        let parts = if spread > 0.0 { variance.powi(2) / spread } else { f64::INFINITY };
        let least = found
            .iter()
            .filter(|estimate| estimate.standard_uncertainty > 0.0)
            .map(|estimate| estimate.degrees_of_freedom)
            .fold(f64::INFINITY, f64::min);
        Estimate {
            value: dual.value,
            standard_uncertainty: variance.sqrt(),
            // A covariance that cancels most of the variance must not cancel what is known of it.
            degrees_of_freedom: parts.max(least),
        }
    }
}

fn dual(node: &Node, found: &[Estimate]) -> Dual {
    match node {
        Node::Number(value) => Dual { value: *value, slopes: vec![0.0; found.len()] },
        Node::Name(place) => {
            let mut slopes = vec![0.0; found.len()];
            if let Some(slope) = slopes.get_mut(*place) {
                *slope = 1.0;
            }
            Dual { value: found.get(*place).map_or(f64::NAN, |e| e.value), slopes }
        }
        Node::Negated(inner) => {
            let inner = dual(inner, found);
            scaled(&inner, -1.0, -inner.value)
        }
        Node::Binary(operator, left, right) => {
            binary(*operator, dual(left, found), dual(right, found))
        }
    }
}

fn scaled(of: &Dual, factor: f64, value: f64) -> Dual {
    Dual { value, slopes: of.slopes.iter().map(|slope| slope * factor).collect() }
}

fn binary(operator: Operator, a: Dual, b: Dual) -> Dual {
    // Value, and the slopes along the two sides.
    let (value, along_a, along_b) = match operator {
        Operator::Plus => (a.value + b.value, 1.0, 1.0),
        Operator::Minus => (a.value - b.value, 1.0, -1.0),
        Operator::Times => (a.value * b.value, b.value, a.value),
        Operator::Over => (a.value / b.value, 1.0 / b.value, -a.value / (b.value * b.value)),
        Operator::Least if a.value <= b.value => return a,
        Operator::Most if a.value >= b.value => return a,
        Operator::Least | Operator::Most => return b,
    };
    let slopes = a.slopes.iter().zip(&b.slopes).map(|(x, y)| along_a * x + along_b * y).collect();
    Dual { value, slopes }
}
