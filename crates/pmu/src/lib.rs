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

mod nearest;
mod set;
mod spelling;
mod table;

pub use nearest::nearest;
pub use set::{EventSet, event_sets};
pub use spelling::{EventError, parse_event, parse_events};
pub use table::{EventEntry, EventKind, EventTable, TableError};
