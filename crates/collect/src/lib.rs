//! From records to a profile: order, maps, placing.
//!
//! Constraints: no system calls of its own; records and the kernel's layout come in as values, so
//! that a recorded stream replays exactly. Nothing is dropped silently: a sample ends up stored,
//! unplaced with a reason, or lost, and the three add up.
//!
//! Not for: names of procedures (see `image`), keeping profiles (see `store`).
//!
//! ```text
//! ring of CPU 0 ─┐
//! ring of CPU 1 ─┼─► Merge (by time) ─► Placer: maps change, samples fall into them ─► Profile
//! ring of CPU n ─┘
//! ```
#![forbid(unsafe_code)]

mod kernel;
mod merge;
mod placer;
mod space;
mod table;

pub use kernel::KernelLayout;
pub use merge::Merge;
pub use placer::Placer;
pub use table::{
    CpuTable, Drained, Entry, Geometry, GeometryError, Handler, Hash, PlainTable, Replacement,
    TableShape, handler,
};
