//! How sure: uncertainty as a type.
//!
//! Constraints: pure functions on numbers, no I/O, no randomness of its own. Every formula is
//! tested against a closed form or a published table.
//!
//! Not for: deciding what to measure, or printing (see `show`).
#![forbid(unsafe_code)]
