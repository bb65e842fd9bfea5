//! Event sets: a program counts its own threads.
//!
//! ```text
//! thread ── master list ─┬ cycles        2 references, 1 active      set 1: running since slice 17
//!                        ├ page-faults   1 reference,  1 active      set 2: stopped
//!                        └ ...
//!              │  every event once, however many sets want it
//!              ▼
//!           Engine ◄── ticks ── one helper thread for the whole program
//! ```
//! As in MPX, sets may be nested and overlap; a set belongs to the thread that made it; a started
//! set's counts are what the master list counted since. Totals are scaled by time, N = C·T/S, with
//! the spread of the slices as their uncertainty.

mod error;
mod handle;
mod helper;
mod master;
mod named;
mod set;

pub use error::SetError;
pub use handle::{EventSet, SetState, configure};
pub use master::SetOptions;
pub use named::event_named;

use crate::NotCounted;
use pmu::estimate::Counted;

/// What a set says of one of its events.
pub type Value = Result<Counted, NotCounted>;
