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

pub mod machine;
pub mod stream;
