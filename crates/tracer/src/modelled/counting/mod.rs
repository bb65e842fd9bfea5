//! The modelled core's own counters, taking turns inside the traced process.
//!
//! ```text
//! launcher: CountAsk (groups, plan) ──settings──► plugin: Counting<core>, one a thread
//!                                                   │ Multiplexer ─► CounterBank: what the group sees
//! a follower, or the launcher afterwards ◄──log─────┘ one file a process, docs/COUNTER-LOG.md
//! ```
//!
//! User mode only: no engine runs the kernel. The exact totals are published beside the log, as for any
//! modelled core, so that what was inferred can be held against what happened. A process that is
//! killed loses at most the last [`FLUSH_CYCLES`] of its log and the slice under way.

mod ask;
mod listener;
mod read;

pub use ask::{CountAsk, CountError};
pub use listener::{Counting, FLUSH_CYCLES};
pub use read::{CountedProcess, read_logs};

/// What every counter log of a modelled core says of where it counted.
pub const MODE: &str = "user";
/// What it says of its source.
pub const SOURCE: &str = "modelled core";
/// The modelled core switches counters at no cost, so its slices are short by default: more of them
/// are seen, and a shorter stretch has to be predicted between two.
pub const SLICE_CYCLES: u64 = 5_000;
