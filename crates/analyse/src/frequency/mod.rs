//! How often each block ran, and each way between blocks was taken.
//!
//! ```text
//! FlowGraph ─► classes: what must run equally often ─► one estimate a class ─► the nearest flow that balances
//! ```

mod brackets;
mod classes;
#[cfg(test)]
mod classes_tests;
mod cluster;
mod edge_evidence;
mod eliminate;
mod estimate;
mod evidence;
mod interior;
mod network;
mod solve;
#[cfg(test)]
mod solve_tests;
mod stacks;

pub use classes::{Classes, classes};
pub use cluster::{ClassFrequency, ClassMember, Confidence, in_order_frequency};
pub(crate) use estimate::{Frequencies, estimate, trust};
pub(crate) use evidence::{Counted, Evidence, Ways};
pub use solve::{FlowSolution, Seen, nearest_flow};
pub use stacks::{StackBlock, StackFlow};
