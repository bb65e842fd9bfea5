//! The modelled core: a core whose every cycle is known, fed by a real program.
//!
//! Constraints: deterministic, no clock, no randomness without a stated seed, no system calls.
//! The cores know micro-ops, not x86.
//!
//! Not for: running the program (see `tracer`), or reading its files (see `image`).
//!
//! ```text
//! InstructionStream --block executed, accesses--> CoreListener (warming | fast core | reference core)
//! ```
#![forbid(unsafe_code)]

pub mod cause;
pub mod core;
pub mod decode;
pub mod event;
pub mod fast;
pub mod machine;
pub mod pmu;
pub mod program;
pub mod reference;
pub mod sampled;
pub mod slices;
pub mod stream;
#[cfg(test)]
mod testing;
pub mod units;
pub mod uop;
pub mod warm;
