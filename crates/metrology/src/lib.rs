//! How sure: uncertainty as a type.
//!
//! Constraints: pure functions on numbers, no I/O, no randomness but what a caller's seed decides.
//! Every formula is tested against a closed form or a published table, every interval and rate by
//! seeded simulation.
//!
//! Not for: deciding what to measure, or printing (see `show`).
//!
//! ```text
//! readings --mean | median | geometric ratio--> Estimate{value, u, dof} --at 95 %--> Interval
//! k of n samples ------------Wilson------------------------------------------------> Interval
//! ```
#![forbid(unsafe_code)]

mod distribution;
mod draws;
mod estimate;
mod propagate;
mod readings;
mod share;

pub use distribution::{
    binomial_cdf, normal_cdf, normal_quantile, student_cdf, student_quantile, variance_ratio_cdf,
};
pub use draws::Draws;
pub use estimate::{Coverage, Estimate, Interval};
pub use propagate::{Joint, propagate, propagate_independent, ratio_of_means};
pub use readings::{TooFew, geometric_ratio, mean, median, paired_difference};
pub use share::share;
