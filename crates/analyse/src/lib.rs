//! What samples mean.
//!
//! Constraints: a pure function of a profile and of what its images are; no files, no clock.
//!
//! Not for: collecting (see `collect`), reading ELF files (see `image`), printing (see `show`).
//!
//! ```text
//! Profile: (image, offset, event) → count  +  Procedures of each image
//!          └─► by image ─► by procedure ─► by offset within the procedure
//!
//! Request: flow graph, code, machine, samples of one procedure
//!   code    pieces that run straight through
//!   plan    least cycles of every instruction, behind every predecessor
//!   knots   whether the flow can be solved while somebody waits
//!   frequency   classes ─► evidence by class ─► the nearest flow that balances, and its spread
//!   stalls  what the least cycles leave; who can be proved innocent of it
//!   summary the lines of the paper's figure 4
//! ProcedureReport: instructions, blocks, edges, summary
//! ```
#![forbid(unsafe_code)]

mod code;
mod edge_samples;
mod examine;
mod frequency;
mod knots;
mod plan;
mod report;
mod request;
mod resolve;
mod stalls;
mod summary;

pub use edge_samples::{Doubles, EdgeSamples, Passed, Turns};
pub use examine::{Examiner, INSTRUCTIONS_MAX, examine};

pub use frequency::{
    ClassFrequency, ClassMember, Classes, Confidence, FlowSolution, Seen, StackBlock, StackFlow,
    classes, in_order_frequency, nearest_flow,
};
pub use report::{
    BlockReport, CauseRange, Culprit, DynamicCause, EdgeReport, InstructionReport, ProcedureReport,
    StaticCause, StaticStall, Summary, Suspect,
};
pub use request::{BranchSeen, Branches, Request, Sampled, Samples};
pub use resolve::{ImageTime, ProcedureTime, by_image, by_procedure};
