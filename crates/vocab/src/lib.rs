//! The field's words as types.
//!
//! Constraints: no I/O, no dependencies, no floating point. Everything here is a value that can be
//! compared, ordered, stored and merged exactly.
//!
//! Not for: estimates (see `metrology`), names of procedures (see `image`), anything that knows
//! where a number is kept.
//!
//! ```text
//! RawSample{cpu,pid,pc,event}  --place-->  Spot{image,offset,event} += Count  --merge-->  Profile
//! ```
#![forbid(unsafe_code)]

mod address;
mod count;
mod epoch;
mod event;
mod image;
mod path;
mod process;
mod profile;
mod sample;
mod source;

pub use address::{Offset, Pc};
pub use count::Count;
pub use epoch::Epoch;
pub use event::{Event, EventCode, Mode};
pub use image::{BuildId, Image, ImageFacts, ImageId, ImageKind, Loaded};
pub use path::{Branch, BranchTally, Load, LoadLevel, Onward, Place, Stack, Way, WayTally};
pub use process::{Owner, Process, ProcessId, Slice};
pub use profile::{MergeError, Profile, Spot, Tally};
pub use sample::{Cpu, EventId, Pid, RawSample, Unplaced};
pub use source::Source;
