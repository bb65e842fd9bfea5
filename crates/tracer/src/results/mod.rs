//! The results file: what a traced process has counted so far, shared with whoever launched it.
//!
//! It is mapped by the traced process and written with plain stores, so a process that is killed
//! loses nothing that it had counted. It is opened, mapped and closed at once: a descriptor kept
//! open would shift the numbers of those that the program opens.
//!
//! ```text
//! header | chunk | chunk | chunk ...            every chunk is CHUNK_BYTES long
//!          records  tally    tail
//!          of the   thread 0 thread 0
//!          process  blocks   not yet in
//!                   0..1024  the trace
//! ```

mod layout;
mod packed;
mod publish;
mod read;
mod write;

pub use layout::{CHUNK_PAYLOAD_BYTES, ProcessKey, TALLY_BLOCKS, TALLY_WORDS};
pub(crate) use packed::pack;
pub use publish::Publisher;
pub(crate) use read::PARTIAL_WORDS;
pub use read::{
    BlockTally, Partial, ProcessFile, ResultsError, Tail, ThreadTally, read, read_outline,
};
pub use write::{Chunk, RecordLog, ResultsFile, Started};
