//! The launcher's side of the results file. The file is untrusted: whoever runs the program could
//! have written it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::layout::{
    CHUNK_HEADER_BYTES, Kind, MAGIC, ProcessKey, TALLY_BLOCKS, TALLY_WORDS, chunk, header,
};
use super::packed::Chunks;
use super::publish::Found;

use crate::modelled::ModelledThread;

/// Why a results file cannot be read.
#[derive(Debug)]
pub enum ResultsError {
    /// The file could not be opened or read.
    Io(PathBuf, io::Error),
    /// The file is something else, or of another version.
    Foreign(PathBuf),
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResultsError::Io(path, why) => {
                write!(f, "the results in {} cannot be read: {why}", path.display())
            }
            ResultsError::Foreign(path) => {
                write!(f, "{} is no results file of this version", path.display())
            }
        }
    }
}

impl std::error::Error for ResultsError {}

/// How often a block ran to its end on one thread, and what it did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BlockTally {
    /// Times that it ran to its end.
    pub runs: u64,
    /// Of these, times that the branch at its end was taken.
    pub taken: u64,
    /// Times that it was not. The two fall short of `runs` by those cut off by a signal.
    pub not_taken: u64,
    /// Memory reads. A repeated string instruction reads pieces of up to a line.
    pub loads: u64,
    /// Memory writes, likewise.
    pub stores: u64,
}

/// A block that did not run to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Partial {
    /// The block.
    pub block: u32,
    /// How many of its instructions completed.
    pub ran: u16,
    /// How often.
    pub times: u64,
    /// Memory reads by those instructions.
    pub loads: u64,
    /// Memory writes by those instructions.
    pub stores: u64,
}

/// What one thread counted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ThreadTally {
    /// By block number; blocks that never ran are left out.
    pub blocks: BTreeMap<u32, BlockTally>,
    /// Blocks that did not run to their end.
    pub partials: Vec<Partial>,
}

/// What a thread had not yet written to the trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tail {
    /// The thread.
    pub thread: u32,
    /// Which chunk of the thread's it would have been.
    pub sequence: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// A results file as it was found.
#[derive(Clone, PartialEq, Debug)]
pub struct ProcessFile {
    /// Which process it is.
    pub key: ProcessKey,
    /// Which process it was forked from, and how many bytes of that one's records come first.
    pub inherited: Option<(ProcessKey, u64)>,
    /// Its own records, encoded.
    pub records: Vec<u8>,
    /// What its threads counted.
    pub threads: BTreeMap<u32, ThreadTally>,
    /// What its threads had not yet written to the trace.
    pub tails: Vec<Tail>,
    /// What its listeners published last, by thread.
    pub published: BTreeMap<u32, Vec<u8>>,
    /// What the modelled cores of its threads counted.
    pub modelled: BTreeMap<u32, ModelledThread>,
    /// Whether loads and stores were counted.
    pub counts_accesses: bool,
    /// How many bytes of records the trace has.
    pub traced_records_bytes: u64,
    /// How many chunks could not be written to the trace.
    pub trace_chunks_lost: u64,
    /// How many times there was no room for what was counted; more than 0 means that counts are
    /// missing.
    pub refused: u64,
}

/// Reads a results file, whether its process still runs or not.
pub fn read(path: &Path) -> Result<ProcessFile, ResultsError> {
    read_some(path, |_| true)
}

/// The same without what modelled cores tell of every instruction, which may be a hundred megabytes a
/// process.
pub fn read_outline(path: &Path) -> Result<ProcessFile, ResultsError> {
    read_some(path, |kind| kind != Kind::Rows as u64 && kind != Kind::Ways as u64)
}

/// Reads the chunks of those kinds that are wanted.
fn read_some(path: &Path, is_wanted: fn(u64) -> bool) -> Result<ProcessFile, ResultsError> {
    let failed = |why| ResultsError::Io(path.into(), why);
    let (bytes, mut chunks) = Chunks::open(path).map_err(failed)?;
    if word(&bytes, header::MAGIC) != MAGIC {
        return Err(ResultsError::Foreign(path.into()));
    }
    let mut process = ProcessFile::from_header(&bytes);
    let mut found: BTreeMap<u32, Found> = BTreeMap::new();
    while let Some(chunk) = chunks.next(is_wanted).map_err(failed)? {
        process.add_chunk(chunk, &mut found);
    }
    let latest = found.into_iter().filter_map(|(thread, found)| Some((thread, found.latest()?)));
    process.published = latest.collect();
    for (thread, bytes) in &process.published {
        let modelled = process.modelled.entry(*thread).or_default();
        if modelled.set_totals(bytes).is_none() && modelled.rows.is_empty() {
            process.modelled.remove(thread);
        }
    }
    Ok(process)
}

/// The word with this number, or 0 after the end.
pub(super) fn word(bytes: &[u8], number: usize) -> u64 {
    let found = bytes.get(number * 8..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |word| u64::from_le_bytes(*word))
}

impl ProcessFile {
    /// A process of which nothing is known yet.
    pub fn empty(key: ProcessKey) -> ProcessFile {
        ProcessFile { key, inherited: None, ..ProcessFile::from_header(&[]) }
    }

    fn from_header(bytes: &[u8]) -> ProcessFile {
        let parent = word(bytes, header::PARENT);
        let inherited = (ProcessKey::from_word(parent), word(bytes, header::INHERITED));
        ProcessFile {
            key: ProcessKey::from_word(word(bytes, header::KEY)),
            inherited: (parent != 0).then_some(inherited),
            records: Vec::new(),
            threads: BTreeMap::new(),
            tails: Vec::new(),
            published: BTreeMap::new(),
            modelled: BTreeMap::new(),
            counts_accesses: word(bytes, header::FLAGS) & 1 != 0,
            traced_records_bytes: word(bytes, header::TRACED_RECORDS),
            trace_chunks_lost: word(bytes, header::TRACE_LOST),
            refused: word(bytes, header::REFUSED),
        }
    }

    fn add_chunk(&mut self, bytes: &[u8], found: &mut BTreeMap<u32, Found>) {
        let (head, payload) = bytes.split_at(CHUNK_HEADER_BYTES.min(bytes.len()));
        let thread = word(head, chunk::THREAD) as u32;
        let sequence = word(head, chunk::SEQUENCE);
        let used = usize::try_from(word(head, chunk::USED)).unwrap_or(usize::MAX);
        let meant = payload.get(..used).unwrap_or(payload);
        let kind = word(head, chunk::KIND);
        if kind == Kind::Records as u64 {
            self.records.extend_from_slice(meant);
        } else if kind == Kind::Tally as u64 {
            let first = word(head, chunk::FIRST) as u32;
            self.threads.entry(thread).or_default().add_tallies(first, payload);
        } else if kind == Kind::Partials as u64 {
            self.threads.entry(thread).or_default().add_partials(meant);
        } else if kind == Kind::Tail as u64 && !meant.is_empty() {
            self.tails.push(Tail { thread, sequence: sequence as u32, bytes: meant.to_vec() });
        } else if kind == Kind::Rows as u64 {
            let first = word(head, chunk::FIRST) as u32;
            self.modelled.entry(thread).or_default().add_rows(first, payload);
        } else if kind == Kind::Ways as u64 {
            self.modelled.entry(thread).or_default().add_ways(payload);
        } else if kind == Kind::Published as u64 && !meant.is_empty() {
            let part = word(head, chunk::FIRST) as u32;
            found.entry(thread).or_default().add(part, sequence, meant);
        }
    }
}

impl ThreadTally {
    fn add_tallies(&mut self, first: u32, payload: &[u8]) {
        for (index, entry) in payload.chunks_exact(TALLY_WORDS * 8).take(TALLY_BLOCKS).enumerate() {
            let tally = BlockTally {
                runs: word(entry, 0),
                taken: word(entry, 1),
                not_taken: word(entry, 2),
                loads: word(entry, 3),
                stores: word(entry, 4),
            };
            if tally != BlockTally::default() {
                self.blocks.insert(first.saturating_add(index as u32), tally);
            }
        }
    }

    fn add_partials(&mut self, payload: &[u8]) {
        self.partials.extend(payload.chunks_exact(PARTIAL_WORDS * 8).map(|entry| Partial {
            block: word(entry, 0) as u32,
            ran: (word(entry, 0) >> 32) as u16,
            times: word(entry, 1),
            loads: word(entry, 2),
            stores: word(entry, 3),
        }));
    }
}

/// The words of a partial run: block and instructions, times, loads, stores.
pub(crate) const PARTIAL_WORDS: usize = 4;

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::super::{RecordLog, ResultsFile, Started};
    use super::*;
    use crate::record::ProcessRecord;

    #[test]
    fn an_outline_has_everything_but_what_is_known_of_instructions() {
        let dir = std::env::temp_dir().join(format!("whither-outline-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let file = ResultsFile::create(&dir, 1, Started::default()).unwrap();
        let path = dir.join(file.key().file_name());
        RecordLog::default().append(&file, &ProcessRecord::Program { path: "a".to_owned() });
        let rows = file.rows(3, 40).unwrap();
        // Ticks, runs and timed runs of instruction 40; 41 never ran.
        rows.iter().zip([12, 5, 5]).for_each(|(cell, word)| cell.store(word, Relaxed));
        file.ways(3).unwrap();
        let (whole, outline) = (read(&path).unwrap(), read_outline(&path).unwrap());
        let thread = &whole.modelled[&3];
        assert_eq!(thread.rows.keys().collect::<Vec<_>>(), [&40]);
        assert_eq!((thread.rows[&40].ticks, thread.rows[&40].runs), (12, 5));
        assert!(outline.modelled.is_empty());
        assert!(!whole.records.is_empty());
        assert_eq!(ProcessFile { modelled: BTreeMap::new(), ..whole.clone() }, outline);
        // Packed, it says the same, takes no room, and keeps its name.
        super::super::pack(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096);
        assert_eq!((read(&path).unwrap(), read_outline(&path).unwrap()), (whole.clone(), outline));
        let packed = path.with_extension("packed");
        let bytes = std::fs::read(&packed).unwrap();
        assert!(bytes.len() < 6000, "{} bytes", bytes.len());
        // Cut short or damaged it may say less or something else, and harms nobody.
        for len in (4096..bytes.len()).step_by(5) {
            std::fs::write(&packed, &bytes[..len]).unwrap();
            let _ = read(&path);
        }
        for at in (0..bytes.len()).step_by(41) {
            let mut bad = bytes.clone();
            bad[at] ^= 0x55;
            std::fs::write(&packed, &bad).unwrap();
            let _ = read(&path);
        }
        std::fs::write(&packed, &bytes[..4200]).unwrap();
        assert!(read(&path).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
