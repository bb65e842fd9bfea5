//! perf.data, as perf has written it since Linux 3.2: bytes in, records in order out.
//!
//! Constraints: the bytes come from anywhere and are believed nothing; whatever is wrong ends the
//! reading with one sentence, and what came before has been handed out. No more than one round of
//! records is held in memory.
//!
//! Not for: maps and placing (see `collect`), keeping (see `store`), AUX traces, raw tracepoint
//! data.
//!
//! ```text
//! file:  header │ attributes, ids │ records ……………………… │ features: names, build-ids, host
//! pipe:  header │ records, among them attributes and features ………………
//!                 └─ compressed records are a stream of records themselves
//! each record ─► Item{time, event, body}, sorted by time between the rounds that perf marks
//! ```
#![forbid(unsafe_code)]

mod attr;
mod bytes;
mod error;
mod feature;
mod item;
mod live;
mod order;
mod reader;
mod records;
mod sample;
mod unpack;

pub use attr::RecordedEvent;
pub use error::RecordingError;
pub use item::{Body, Item, RawBranch, RawLoad, Sample};
pub use live::Live;
pub use reader::{Outcome, read_file, read_pipe};
