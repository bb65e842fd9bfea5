//! Small loops that measure the machine they run on, without a performance counter.
//!
//! Constraints: cycles are CPU time times the core's clock; the clock is told by a chain of
//! dependent additions on either side of every run; what was disturbed is dropped and counted.
//! Loops are assembly, so that no compiler changes what is measured. Only x86-64.
//!
//! Not for: sampling or counting (see `perf`), or for what the figures mean (see the caller).
//!
//! ```text
//! pin ─ chain ─ the loop ─ chain          kept if both chains tell the same clock within 1 %
//!       clock              clock          and no time was stolen from the CPU meanwhile
//! ```
//!
//! A chain of dependent additions takes a cycle each on every core there is, so its CPU time tells
//! the clock. A guest that shares its core with others runs at no clock of its own; such runs are
//! dropped and counted.
#![deny(unsafe_op_in_unsafe_fn)]

mod arena;
mod bracket;
mod clock;
mod loops;
mod measure;
mod pin;
mod steal;

pub use arena::Arena;
pub use bracket::{Bracketed, Kept, bracketed, repeat};
pub use clock::clock_hz;
pub use measure::{Measured, Quantity, Shape, measure};
pub use pin::Pinned;
