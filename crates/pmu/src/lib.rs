//! Events by name, and counting more of them than there are counters.
//!
//! Constraints: no system calls and no clocks; the tables are data (`events/`), embedded when
//! built, so that what the tool prints about an event is what it asks the kernel for. What is
//! inferred is an estimate; what was never counted has none.
//!
//! Not for: opening events (see `perf`), programming counters (see `counters` and `model`), or
//! deciding whether this machine has them.
//!
//! ```text
//! "cycles:u" ──► EventTable ──► Event{name, code, mode}      "cylces" ──► did you mean "cycles"?
//!
//! names, Counters ──group──► Grouping ──Scheduler──► Turn{group, until} ──► a backend counts
//!                                                                                  │
//! Counted{Estimate, share, estimator} ◄──totals── [Reading] ◄── log ◄──────────────┘
//! ```
#![forbid(unsafe_code)]

mod breakdown;
mod core_events;
mod counters;
mod device;
mod dictionary;
pub mod estimate;
mod formula;
mod groups;
pub mod log;
mod metric;
mod multiplex;
mod nearest;
mod random;
mod reading;
pub mod schedule;
mod set;
mod spelling;
mod table;

pub use breakdown::{Breakdown, Cause, CpiParts};
pub use core_events::{
    CoreEvent, CoreEvents, HostCore, Lumps, ModelledEvents, core_of, cores, modelled_events,
};
pub use counters::{Counter, Counters, Limit, Rule};
pub use device::{Device, TermError, TermFormat};
pub use dictionary::Dictionary;
pub use formula::{Dimension, Formula, FormulaError, Inputs, NotComputed, UnitError};
pub use groups::{Group, GroupError, Grouping, group, place};
pub use metric::{Metric, constant, metrics};
pub use multiplex::{Multiplexer, Pmu};
pub use nearest::nearest;
pub use reading::Reading;
pub use set::{EventSet, event_sets};
pub use spelling::{
    BREAKPOINT, EventError, EventList, ListItem, parse_event, parse_events, split_list,
};
pub use table::{EventEntry, EventKind, EventTable, TableError};
