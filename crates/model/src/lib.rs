//! The modelled core: a core whose every cycle is known, fed by a real program.
//!
//! Constraints: deterministic, no clock, no randomness without a stated seed, no system calls.
//! The cores know micro-ops, not x86.
//!
//! Not for: running the program (see `tracer`), or reading its files (see `image`).
//!
//! ```text
//! machines/*.toml --> machine ----numbers----> core (Shape), program (Op), units, pmu
//!
//! stream: block translated --> decode --> uop --> program
//! stream: block executed, accesses --> CoreListener, one of
//!     warm       units only: caches, translation, predictors
//!     fast       one pass, every instruction timed as it streams by
//!     reference  cycle by cycle, what the one-pass core is held against
//!     sampled    warm, with windows of fast; every count an estimate
//!     slices     fast, with every event logged slice by slice
//!
//! schedule: one block on fast, nothing going wrong --> least cycles by instruction
//!
//! fast, reference --> event::Counts (totals), core::Account (exact, by instruction),
//!                     core::Life (every micro-op, for a Watcher such as pmu::Sampler or
//!                     monitor::Monitor)
//! ```
#![deny(unsafe_code)]

pub mod cause;
pub mod core;
pub mod decode;
pub mod event;
pub mod fast;
#[cfg(test)]
mod kernels;
pub mod machine;
pub mod monitor;
pub mod pmu;
pub mod program;
pub mod reference;
pub mod sampled;
pub mod schedule;
pub mod slices;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod units;
pub mod uop;
pub mod warm;
