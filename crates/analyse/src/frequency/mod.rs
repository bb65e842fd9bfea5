//! How often each block ran, and each way between blocks was taken.
//!
//! ```text
//! FlowGraph ─► classes: what must run equally often ─► one estimate a class
//! ```

mod brackets;
mod classes;
#[cfg(test)]
mod classes_tests;
mod cluster;

pub use classes::{Classes, classes};
pub use cluster::{ClassFrequency, ClassMember, Confidence, in_order_frequency};
