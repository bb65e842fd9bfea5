//! The counter log's bytes; docs/COUNTER-LOG.md describes them for other programs.
//!
//! ```text
//! "WHCTRLOG"  then records, each:  length u32 | check u32 | kind u8 | body (length - 1 bytes)
//!              header first; slices, processes and ends as they come
//! ```
//!
//! Records are only ever appended. A follower that finds half a record, or zeros where one would
//! begin, waits for the rest; one whose check is wrong ends the log there, and what came before
//! stands.
//!
//! Not for: files. `counters` and the plugin write them; a follower is fed what was read.

mod bytes;
mod follow;

pub use follow::{Follower, LogError};

use bytes::{put, put_text};

/// The first bytes of every log.
pub const MAGIC: [u8; 8] = *b"WHCTRLOG";
/// The version that is written.
pub const VERSION: u64 = 1;
/// No record is longer.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// What the log is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Where the counts come from: `perf events`, `modelled core`.
    pub source: String,
    /// The machine that counted.
    pub machine: String,
    /// Where it counted: `user`, `kernel` or `user and kernel`.
    pub mode: String,
    /// The event whose count ends a slice.
    pub boundary: String,
    /// How much of it a slice takes.
    pub slice: u64,
    /// Every event, the anchors first.
    pub events: Vec<String>,
    /// How many of them are anchors.
    pub anchors: usize,
    /// The groups, as places in `events`.
    pub groups: Vec<Vec<usize>>,
}

/// A slice of one thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Slice {
    /// The process.
    pub pid: u32,
    /// The thread, numbered by its source.
    pub tid: u32,
    /// How much of the boundary's event the thread had counted when the slice ended.
    pub at: u64,
    /// What was read.
    pub reading: crate::Reading,
}

/// What a log holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// What the log is about; comes first.
    Header(Header),
    /// A slice is over.
    Slice(Slice),
    /// A process, named when it is first seen and whenever it becomes another program.
    Process {
        /// Its number.
        pid: u32,
        /// Who started it; 0 if that is not known.
        parent: u32,
        /// The program's path or name.
        name: String,
    },
    /// A thread has ended; nothing of it follows.
    End {
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
    },
}

impl Record {
    fn kind(&self) -> u8 {
        match self {
            Record::Header(_) => 1,
            Record::Slice(_) => 2,
            Record::Process { .. } => 3,
            Record::End { .. } => 4,
        }
    }

    fn body(&self, out: &mut Vec<u8>) {
        match self {
            Record::Header(header) => header.body(out),
            Record::Slice(slice) => slice.body(out),
            Record::Process { pid, parent, name } => {
                put(out, u64::from(*pid));
                put(out, u64::from(*parent));
                put_text(out, name);
            }
            Record::End { pid, tid } => {
                put(out, u64::from(*pid));
                put(out, u64::from(*tid));
            }
        }
    }
}

impl Header {
    fn body(&self, out: &mut Vec<u8>) {
        put(out, VERSION);
        for text in [&self.source, &self.machine, &self.mode, &self.boundary] {
            put_text(out, text);
        }
        put(out, self.slice);
        put(out, self.events.len() as u64);
        self.events.iter().for_each(|event| put_text(out, event));
        put(out, self.anchors as u64);
        put(out, self.groups.len() as u64);
        for group in &self.groups {
            put(out, group.len() as u64);
            group.iter().for_each(|&event| put(out, event as u64));
        }
    }

    /// The grouping that the header tells, without the counters that were used.
    pub fn grouping(&self) -> crate::Grouping {
        let group =
            |events: &Vec<usize>| crate::Group { events: events.clone(), places: Vec::new() };
        crate::Grouping {
            events: self.events.clone(),
            anchors: self.anchors,
            groups: self.groups.iter().map(group).collect(),
            is_fewest: false,
        }
    }
}

impl Slice {
    fn body(&self, out: &mut Vec<u8>) {
        put(out, u64::from(self.pid));
        put(out, u64::from(self.tid));
        put(out, self.at);
        put(out, self.reading.group as u64);
        put(out, self.reading.round);
        put(out, self.reading.counts.len() as u64);
        self.reading.counts.iter().for_each(|&count| put(out, count));
    }
}

/// Begins a log: the magic and the header.
pub fn begin(header: Header) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    append(&mut out, &Record::Header(header));
    out
}

/// Appends a record.
pub fn append(out: &mut Vec<u8>, record: &Record) {
    let start = out.len();
    out.extend([0; 8]);
    out.push(record.kind());
    record.body(out);
    let length = (out.len() - start - 8) as u32;
    let check = bytes::check(&out[start + 8..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + 8].copy_from_slice(&check.to_le_bytes());
}

#[cfg(test)]
mod tests;
