//! The shotgun profiler: costs from sparse samples, as hardware could take them.
//!
//! ```text
//! signature  start pc, 10 11 00 01 …        detailed  pc, bits around it, labels of its edges
//!     │                                         │
//!     ├─ walk: code says what follows what,     │
//!     │  bits say which branches were taken ◄───┤ where indirect branches went
//!     │        │                                │
//!     │        └─ bits that cannot be: discard  │
//!     ▼                                         ▼
//! path of a thousand instructions ─► each gets the detailed sample whose bits are most alike
//!                                         │
//!              fragments in a row ─► Step ─► lanes ─► costs, with ± from fragment to fragment
//! ```
//!
//! Figure 5 of the paper, with three differences. `CurPC + 4` is the instruction's length. What a
//! call pushes is the address behind it, which is what a return goes to. And fragments are timed
//! one behind the other instead of each alone: a window that is empty at the start of every
//! thousand instructions and drains at its end would be charged to the program.

mod align;
mod assemble;
mod code;
mod database;
mod detail;
mod estimate;
mod infer;
mod reaches;
mod walk;

pub use assemble::Assembler;
pub use code::{CodeBook, Known};
pub use database::{Chosen, Database};
pub use detail::{LabelRecorder, Labels, Link, Stands};
pub use estimate::{Shotgun, Tally, Truth, analyse};
pub use infer::Defaults;
pub use walk::{Flaw, Fragment, walk};
