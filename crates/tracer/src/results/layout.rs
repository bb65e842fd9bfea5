//! Where everything is in a results file. All words are little-endian and 64 bits wide.

use std::fmt;

/// What the file begins with; the last byte is the version.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"WHITHER\x01");

/// The words of the header.
pub(super) mod header {
    pub(in super::super) const MAGIC: usize = 0;
    pub(in super::super) const KEY: usize = 1;
    /// The key of the process that this one was forked from, or 0.
    pub(in super::super) const PARENT: usize = 2;
    /// How many bytes of the parent's records are this process's as well.
    pub(in super::super) const INHERITED: usize = 3;
    /// How many chunks were handed out.
    pub(in super::super) const CHUNKS: usize = 4;
    /// How many times no chunk could be had; what it was for is lost.
    pub(in super::super) const REFUSED: usize = 5;
    /// What the plugin was told, as a bit set: 1 means that memory accesses are counted.
    pub(in super::super) const FLAGS: usize = 6;
    /// How many bytes of records the trace has.
    pub(in super::super) const TRACED_RECORDS: usize = 7;
    /// How many chunks could not be written to the trace.
    pub(in super::super) const TRACE_LOST: usize = 8;
}

/// The words of a chunk's header.
pub(super) mod chunk {
    pub(in super::super) const KIND: usize = 0;
    pub(in super::super) const THREAD: usize = 1;
    pub(in super::super) const FIRST: usize = 2;
    /// How many bytes of the payload are meant.
    pub(in super::super) const USED: usize = 3;
    pub(in super::super) const SEQUENCE: usize = 4;
}

/// The header takes a page.
pub(super) const HEADER_BYTES: usize = 4096;
/// A chunk is whole pages, and holds a tally of [`TALLY_BLOCKS`].
pub(super) const CHUNK_BYTES: usize = 11 * 4096;
pub(super) const CHUNK_HEADER_BYTES: usize = 64;
/// What a chunk holds beside its header.
pub const CHUNK_PAYLOAD_BYTES: usize = CHUNK_BYTES - CHUNK_HEADER_BYTES;
/// The file is sparse up to here: room for more than a million chunks.
pub(super) const FILE_BYTES: u64 = 1 << 36;

/// How many blocks a chunk of tallies covers.
pub const TALLY_BLOCKS: usize = 1024;
/// The words of one block's tally: runs, taken, not taken, loads, stores.
pub const TALLY_WORDS: usize = 5;

const _: () = assert!(TALLY_BLOCKS * TALLY_WORDS * 8 <= CHUNK_PAYLOAD_BYTES);
const _: () = assert!(HEADER_BYTES.is_multiple_of(8) && CHUNK_BYTES.is_multiple_of(4096));

/// What a chunk is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(super) enum Kind {
    /// Part of the process's records.
    Records = 1,
    /// Tallies of a thread's blocks from `first` on.
    Tally = 2,
    /// Blocks of a thread that did not run to their end.
    Partials = 3,
    /// What a thread has not yet written to the trace.
    Tail = 4,
    /// What a listener published.
    Published = 5,
    /// A modelled core's rows by instruction from `first` on.
    Rows = 6,
    /// Ways of a modelled core's double samples: from and to, and how often.
    Ways = 7,
}

/// A process, or one of the programs that it became by exec.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessKey {
    /// The kernel's number for it.
    pub pid: u32,
    /// 0 for the first program, 1 for the one that it became, and so on. A pid that the kernel
    /// reuses goes on counting.
    pub sequence: u32,
}

impl ProcessKey {
    /// The key as one word.
    pub fn to_word(self) -> u64 {
        u64::from(self.pid) | u64::from(self.sequence) << 32
    }

    /// The key that is in a word.
    pub fn from_word(word: u64) -> ProcessKey {
        ProcessKey { pid: word as u32, sequence: (word >> 32) as u32 }
    }

    /// The name of its results file.
    pub fn file_name(self) -> String {
        format!("{}.{}.results", self.pid, self.sequence)
    }
}

impl fmt::Display for ProcessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sequence {
            0 => write!(f, "{}", self.pid),
            sequence => write!(f, "{}+{sequence}", self.pid),
        }
    }
}
