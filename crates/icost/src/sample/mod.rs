//! Windows at random places of a program, kept as labelled steps.
//!
//! ```text
//! stream ─► warm ─┬───────────┬──────────┬───►   caches, translation, predictors: always
//!                 └ window    └ window   └ …     timed by a core from a copy of the warm units,
//!                     │           │              labelled, kept
//!                     └───────────┴─► every idealisation is evaluated on the same steps
//! ```
//!
//! A program's length is not known before it ends, so windows are drawn one a stratum, and when
//! there are too many every second one is dropped and strata become twice as long. Memory does not
//! grow with the program; a short one is kept whole.

mod schedule;
mod window;

pub use schedule::{Place, Plan, Sampled, Schedule, Timing};
pub use window::{Keeper, Sampler, Window};
