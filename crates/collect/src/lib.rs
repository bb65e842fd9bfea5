//! From records to a profile: order, maps, placing.
//!
//! Constraints: the kernel is reached through `perf` alone, and no file is read here; records, texts
//! of /proc and the kernel's layout come in as values, so that a recorded stream replays exactly.
//! Nothing is dropped silently: a sample ends up stored, unplaced with a reason, or lost, and the
//! three add up.
//!
//! Not for: names of procedures (see `image`), keeping profiles (see `store`), deciding when to
//! drain (see `whither`).
//!
//! ```text
//! one program    ring of CPU 0 ─┐
//!                ring of CPU 1 ─┼─► Merge (by time) ─► Placer: maps change, samples fall in ─► Profile
//!                ring of CPU n ─┘
//!
//! every process  table of CPU 0 ─┐
//!                table of CPU n ─┴─► Collector: drain ─► entries ─► Processes: place ─► image, offset
//!                maps of CPU 0…n ──► Watch ─► in order of time ──────┘
//! ```
#![forbid(unsafe_code)]

mod change;
mod collector;
mod kernel;
mod maps;
mod merge;
mod placer;
mod processes;
mod quick;
mod space;
mod table;
mod watch;

pub use collector::{
    Chain, ChainTable, CollectError, Collector, Expected, Request, Route, Sampled,
};
pub use kernel::KernelLayout;
pub use maps::parse_maps;
pub use merge::Merge;
pub use placer::Placer;
pub use processes::{Placed, Processes};
pub use quick::{QuickHasher, QuickMap};
pub use table::{
    CpuTable, Drained, Entry, Geometry, GeometryError, Handler, Hash, PlainTable, Replacement,
    TableShape, Taking, handler,
};
pub use watch::Watch;
