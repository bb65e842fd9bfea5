//! What samples mean.
//!
//! Constraints: a pure function of a profile and of what its images are; no files, no clock.
//!
//! Not for: collecting (see `collect`), reading ELF files (see `image`), printing (see `show`).
//!
//! ```text
//! Profile: (image, offset, event) → count  +  Procedures of each image
//!          └─► by image ─► by procedure ─► by offset within the procedure
//! ```
#![forbid(unsafe_code)]

mod frequency;
mod resolve;

pub use frequency::{
    ClassFrequency, ClassMember, Classes, Confidence, FlowSolution, Seen, classes,
    in_order_frequency, nearest_flow,
};
pub use resolve::{ImageTime, ProcedureTime, by_image, by_procedure};
