//! The sample table: counts by (pid, pc, event) where the interrupt happens.
//!
//! One area of shared memory a CPU, and one program a CPU and event, so that nothing in the
//! interrupt has to ask which CPU or event it is:
//!
//! ```text
//! | begun ended active | counters of tables | of spills | table 0 | table 1 | spill 0 | spill 1 |
//!
//! bucket (one cache line of four ways):  | pc | pid event count | pc | … |
//! hit:   count += 1 and the entry swaps with the first of its bucket
//! miss:  the new entry goes first, the others move back, the last falls into the spill
//! ```
//!
//! The interrupt works on one table and one spill. To drain, the daemon flips `active`, waits until
//! every handler that began before has ended, and then has the others to itself. A spill that fills
//! up is taken alone: what is hit again and again stays in the table and reaches the daemon once,
//! however often spills are taken. What falls out of a full spill is counted as lost, so that what
//! the handler counted is what was handed out or lost, exactly, at every drain.

mod entry;
mod geometry;
mod half;
mod plain;
mod program;

pub use entry::Entry;
pub(crate) use entry::{EVENTS, PID_BITS};
pub use geometry::{Geometry, GeometryError};
pub use half::{CpuTable, Drained, Taking};
pub use plain::{Hash, PlainTable, Replacement, TableShape};
pub use program::{Handler, handler};
