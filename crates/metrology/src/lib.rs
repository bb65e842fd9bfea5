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
//! readings, skewed ----------Hall--------------------------------------------------> Interval
//! k of n samples ------------Wilson------------------------------------------------> Interval
//! read together -------------covariance--> Joint --formula--> Estimate
//! runs so far ---------------Stopping--> Look        groups of runs --> Compatibility
//! ```
#![forbid(unsafe_code)]

mod bootstrap;
mod compatible;
mod distance;
mod distribution;
mod draws;
mod estimate;
mod levels;
mod propagate;
mod readings;
mod share;
mod skew;
mod stopping;
mod warmup;

pub use bootstrap::{RESAMPLES, bca};
pub use compatible::{Compatibility, OVERLAP_FACTOR, WorstPair, compatible};
pub use distance::{kl_distance, overlap_distance};
pub use distribution::{
    binomial_cdf, normal_cdf, normal_quantile, student_cdf, student_quantile, variance_ratio_cdf,
};
pub use draws::Draws;
pub use estimate::{Coverage, Estimate, Interval};
pub use levels::{Levels, two_level};
pub use propagate::{Joint, propagate, propagate_independent, ratio_of_means};
pub use readings::{TooFew, geometric_ratio, mean, median, paired_difference};
pub use share::share;
pub use skew::{Method, SKEW_RUNS_MIN, Summary, skewness, summarise};
pub use stopping::{FIRST_LOOK, Look, Stopping, peeking_factor, runs_needed};
pub use warmup::{WARM_UP_RUNS_MIN, spent_at_look, warm_up};
