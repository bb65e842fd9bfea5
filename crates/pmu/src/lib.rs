//! Events by name.
//!
//! Constraints: no system calls; the tables are data (`events/`), embedded when built, so that
//! what the tool prints about an event is what it asks the kernel for.
//!
//! Not for: opening events (see `perf`), or deciding whether this machine has them.
//!
//! ```text
//! "cycles:u" ──► EventTable ──► Event{name, code, mode}      "cylces" ──► did you mean "cycles"?
//! ```
#![forbid(unsafe_code)]

mod breakdown;
mod core_events;
mod device;
mod dictionary;
mod formula;
mod metric;
mod nearest;
mod set;
mod spelling;
mod table;

pub use breakdown::{Breakdown, Cause, CpiParts};
pub use core_events::{
    CoreEvent, CoreEvents, HostCore, ModelledEvents, core_of, cores, modelled_events,
};
pub use device::{Device, TermError, TermFormat};
pub use dictionary::Dictionary;
pub use formula::{Dimension, Formula, FormulaError, Inputs, NotComputed, UnitError};
pub use metric::{Metric, constant, metrics};
pub use nearest::nearest;
pub use set::{EventSet, event_sets};
pub use spelling::{BREAKPOINT, EventError, EventList, parse_event, parse_events};
pub use table::{EventEntry, EventKind, EventTable, TableError};
