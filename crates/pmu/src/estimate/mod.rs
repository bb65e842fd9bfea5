//! From the slices that were counted to the whole.
//!
//! ```text
//! slice        0   1   2   3   4   5   6   7 ...      cycles, instructions: known in every slice
//! group        b   a   c   c   a   b   a   c          a's events: known in 1, 4, 6
//! a's event        y           y       y              total = counted, exactly + predicted, ±
//! ```
//!
//! The choice of estimator is made from the data by a stated rule ([`totals`]) and named in the
//! answer. What was never scheduled has no estimate: it is not counted, which is not 0.

mod around;
mod covariates;
mod explain;
mod frame;
mod integrate;
mod line;
mod linear;
mod mixture;
mod nodes;
mod series;
mod slopes;
mod tail;
mod told;
mod total;
mod ways;

pub use linear::{linear, linear_totals};
pub use series::{Series, series};
pub use total::{scaled_totals, totals};

use metrology::{Coverage, Estimate, Interval};

/// How a total was inferred.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Estimator {
    /// Counted all the time: nothing was inferred.
    Exact,
    /// What was counted, scaled by time: N = C·T/S.
    Linear,
    /// Predicted between its slices at the rate per cycle of those around.
    PerCycle,
    /// The same for what a regression on instructions per cycle leaves.
    Regression,
    /// Never seen in its slices: the bound that this leaves.
    Unseen,
}

impl Estimator {
    /// The word for it in output.
    pub fn word(self) -> &'static str {
        match self {
            Estimator::Exact => "exact",
            Estimator::Linear => "linear",
            Estimator::PerCycle => "per-cycle",
            Estimator::Regression => "regression",
            Estimator::Unseen => "unseen",
        }
    }
}

/// An event's total.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Counted {
    /// The total, with its uncertainty.
    pub estimate: Estimate,
    /// What was counted while its group had the counters; the truth is never below this.
    pub counted: u64,
    /// The share of time (of the first anchor) in which it was counted.
    pub share: f64,
    /// In how many slices it was counted.
    pub slices: usize,
    /// How the total was inferred.
    pub estimator: Estimator,
}

impl Counted {
    /// Where the truth lies with a probability. It is never below what was counted.
    pub fn interval(&self, coverage: Coverage) -> Interval {
        let interval = self.estimate.interval(coverage);
        let counted = self.counted as f64;
        Interval { low: interval.low.max(counted), high: interval.high.max(counted), ..interval }
    }

    fn exact(counted: u64, slices: usize) -> Counted {
        let estimate = Estimate::exact(counted as f64);
        Counted { estimate, counted, share: 1.0, slices, estimator: Estimator::Exact }
    }
}

#[cfg(test)]
mod tests;
