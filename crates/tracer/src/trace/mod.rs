//! The recorded trace: everything that listeners were told, to be told again.
//!
//! Any number of processes append to one file, chunk by chunk. A chunk is whole or it is not there:
//! each carries its lengths and checksums, and a reader that meets damage looks for the next one.
//!
//! ```text
//! file   = "WHTRACE" version, chunks
//! chunk  = header (56 bytes), payload packed with LZ4
//!          began    who it was forked from
//!          records  of the process: blocks, maps, threads (see `record`)
//!          thread   what one thread ran, in order
//! thread = events; each a control byte, then only what could not be foretold:
//!          which block came after this one the last time, which memory it touched and how far on
//! ```
//!
//! Threads foretell across chunks, so a thread whose chunk is lost ends there; others go on.

mod chunk;
mod decode;
mod encode;
mod output;
mod recorder;
mod replay;

pub use chunk::{ChunkKind, ChunkReader, FILE_HEADER, HEADER_BYTES, TraceChunk, is_trace};
pub use decode::{Decoder, Event};
pub use encode::Encoder;
pub use output::{CurrentTrace, Output, Sink};
pub use recorder::Recorder;
pub use replay::{Audience, Replay, Replayed, leftovers};
