//! Counters without a limit: any list of events on a program, process, thread, CPU or control
//! group, by turns where the machine has too few counters.
//!
//! Constraints: every total is an estimate with an uncertainty, or a reason why there is none; a
//! partial slice counts on start, read and stop. All system calls go through `perf`; estimators
//! and the order of turns are `pmu`'s.
//!
//! Not for: event names (see `pmu`), the modelled core's counters (the command wires those), or
//! printing.
//!
//! ```text
//! Ask ─► plan: probe, group, open ─► Bank of perf groups ─┐
//!                                     Scheduler ──────────┴─► Engine ─► readings ─► Outcome
//!                                                               ▲
//!                                a thread a CPU, or one for all ┘ ticks
//! ```
#![forbid(unsafe_code)]

mod ask;
mod bank;
mod capacity;
mod driver;
mod engine;
mod error;
mod history;
mod layout;
mod logfile;
mod name;
mod outcome;
mod pace;
mod place;
mod plan;
mod rotation;
mod session;
pub mod sets;
mod switch_cost;

pub use ask::{Ask, On, SLICE_NS, Slice, Slicing, is_there};
pub use capacity::{Capacity, TIME};
pub use error::CountError;
pub use history::NOBODY;
pub use logfile::{LogReadError, LogReader, LogWriter, log_header};
pub use name::full_name;
pub use outcome::{EventOutcome, NotCounted, Outcome};
pub use session::Session;
pub use switch_cost::{SwitchCost, least_slice_ns};
