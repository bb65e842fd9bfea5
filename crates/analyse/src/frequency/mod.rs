//! How often each block ran, and each way between blocks was taken.
//!
//! ```text
//! FlowGraph ─► classes: what must run equally often ─► one estimate a class
//! ```

mod brackets;
mod classes;
#[cfg(test)]
mod classes_tests;

pub use classes::{Classes, classes};
