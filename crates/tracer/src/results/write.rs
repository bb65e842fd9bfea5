//! The traced process's side of the results file.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

use super::layout::{
    CHUNK_BYTES, CHUNK_HEADER_BYTES, CHUNK_PAYLOAD_BYTES, FILE_BYTES, HEADER_BYTES, Kind, MAGIC,
    ProcessKey, chunk, header,
};
use crate::limits::Limit;
use crate::record::ProcessRecord;

/// What a process says of itself when it begins.
#[derive(Clone, Copy, Debug, Default)]
pub struct Started {
    /// The process that it was forked from, and how many bytes of records it shares with it.
    pub inherited: Option<(ProcessKey, u64)>,
    /// Whether memory accesses are counted.
    pub counts_accesses: bool,
}

/// A results file, mapped for the rest of the process's life.
///
/// The mapping is never removed, which is what makes the `'static` cells handed out sound: a child
/// of fork leaves its parent's file mapped and untouched.
#[derive(Debug)]
pub struct ResultsFile {
    key: ProcessKey,
    path: PathBuf,
    cells: &'static [AtomicU64],
}

impl ResultsFile {
    /// Makes the file of process `pid` in `dir`, under the first sequence number that is free.
    pub fn create(dir: &Path, pid: u32, started: Started) -> io::Result<ResultsFile> {
        let mut key = ProcessKey { pid, sequence: 0 };
        let (file, path) = loop {
            let path = dir.join(key.file_name());
            let mut options = OpenOptions::new();
            match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => break (file, path),
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => key.sequence += 1,
                Err(why) => return Err(why),
            }
        };
        let cells = prepare(&file).inspect_err(|_| {
            // A file without a header would only be in the reader's way.
            let _ = std::fs::remove_file(&path);
        })?;
        let file_results = ResultsFile { key, path, cells };
        let (parent, inherited) = started.inherited.unwrap_or((ProcessKey::from_word(0), 0));
        file_results.set(header::KEY, key.to_word());
        file_results.set(header::PARENT, parent.to_word());
        file_results.set(header::INHERITED, inherited);
        file_results.set(header::FLAGS, u64::from(started.counts_accesses));
        // Last, so that a file with its magic has its header.
        file_results.set(header::MAGIC, MAGIC);
        Ok(file_results)
    }

    /// Which process it is.
    pub fn key(&self) -> ProcessKey {
        self.key
    }

    fn set(&self, word: usize, value: u64) {
        if let Some(cell) = self.cells.get(word) {
            cell.store(value, Release);
        }
    }

    fn add(&self, word: usize, value: u64) -> u64 {
        self.cells.get(word).map_or(0, |cell| cell.fetch_add(value, Relaxed))
    }

    /// Notes how many bytes of records the trace has.
    pub fn set_traced_records(&self, bytes: u64) {
        self.set(header::TRACED_RECORDS, bytes);
    }

    /// Notes that a chunk of the trace could not be written.
    pub fn note_trace_lost(&self) {
        self.add(header::TRACE_LOST, 1);
    }

    /// A chunk for a thread's tallies from block `first` on.
    pub fn tally(&self, thread: u32, first: u32) -> Option<&'static [AtomicU64]> {
        Some(self.chunk(Kind::Tally, thread, first)?.words)
    }

    /// A chunk for a thread's partial runs.
    pub fn partials(&self, thread: u32) -> Option<Chunk> {
        self.chunk(Kind::Partials, thread, 0)
    }

    /// A chunk for what a thread has not yet written to the trace.
    pub fn tail(&self, thread: u32) -> Option<Chunk> {
        self.chunk(Kind::Tail, thread, 0)
    }

    /// A chunk for one part of what a listener publishes.
    pub(super) fn published(&self, thread: u32, part: u32) -> Option<Chunk> {
        self.chunk(Kind::Published, thread, part)
    }

    /// A chunk for a modelled core's rows from instruction `first` on.
    pub fn rows(&self, thread: u32, first: u32) -> Option<&'static [AtomicU64]> {
        Some(self.chunk(Kind::Rows, thread, first)?.words)
    }

    /// A chunk for the ways of a modelled core's double samples.
    pub fn ways(&self, thread: u32) -> Option<&'static [AtomicU64]> {
        Some(self.chunk(Kind::Ways, thread, 0)?.words)
    }

    /// Hands out the next chunk. Its pages are allocated first: a store to a page that a full
    /// filesystem cannot provide would kill the program with SIGBUS.
    fn chunk(&self, kind: Kind, thread: u32, first: u32) -> Option<Chunk> {
        let index = self.add(header::CHUNKS, 1) as usize;
        let cells = self.chunk_cells(index);
        if cells.is_none() || !self.allocate(index) {
            self.add(header::REFUSED, 1);
            return None;
        }
        let (head, words) = cells?.split_at(CHUNK_HEADER_BYTES / 8);
        for (word, value) in [
            (chunk::THREAD, u64::from(thread)),
            (chunk::FIRST, u64::from(first)),
            (chunk::KIND, kind as u64),
        ] {
            head.get(word)?.store(value, Release);
        }
        Some(Chunk { head, words })
    }

    fn chunk_cells(&self, index: usize) -> Option<&'static [AtomicU64]> {
        let start = (HEADER_BYTES + index.checked_mul(CHUNK_BYTES)?) / 8;
        self.cells.get(start..start + CHUNK_BYTES / 8)
    }

    fn allocate(&self, index: usize) -> bool {
        let Ok(path) = CString::new(self.path.as_os_str().as_bytes()) else { return false };
        let start = (HEADER_BYTES + index * CHUNK_BYTES) as libc::off_t;
        // SAFETY: the path is a C string, and the descriptor is ours and closed again.
        unsafe {
            let descriptor = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            if descriptor < 0 {
                return false;
            }
            let outcome = libc::posix_fallocate(descriptor, start, CHUNK_BYTES as libc::off_t);
            libc::close(descriptor);
            outcome == 0
        }
    }
}

/// Makes a file as long as it may become, with room for its header, and maps it.
fn prepare(file: &File) -> io::Result<&'static [AtomicU64]> {
    // Of a space that is narrow most is the program's.
    let room = Limit::FileSize.now().min(Limit::AddressSpace.now() / 4);
    let len = FILE_BYTES.min(room);
    if len < HEADER_BYTES as u64 {
        return Err(io::Error::other("the file size limit leaves no room for results"));
    }
    file.set_len(len)?;
    // SAFETY: the descriptor is open.
    let outcome =
        unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, HEADER_BYTES as libc::off_t) };
    match outcome {
        0 => map(file, len),
        why => Err(io::Error::from_raw_os_error(why)),
    }
}

fn map(file: &File, len: u64) -> io::Result<&'static [AtomicU64]> {
    let len = usize::try_from(len).map_err(io::Error::other)?;
    // SAFETY: a fresh mapping of a file that we just made; nothing else is there.
    let start = unsafe {
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), len, prot, flags, file.as_raw_fd(), 0)
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is page-aligned, `len` bytes long, readable and writable, and stays for
    // the rest of the process's life. Atomics may be shared with whoever else maps the file.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), len / 8) })
}

/// A piece of the results file that one thread writes.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    head: &'static [AtomicU64],
    /// The payload as words.
    pub words: &'static [AtomicU64],
}

impl Chunk {
    /// The payload as bytes. A chunk is written as words or as bytes, never both.
    pub fn bytes(&self) -> &'static [AtomicU8] {
        let start = self.words.as_ptr().cast::<AtomicU8>();
        // SAFETY: the same memory for the same lifetime; bytes need no alignment.
        unsafe { std::slice::from_raw_parts(start, self.words.len() * 8) }
    }

    /// How many bytes of the payload are meant.
    pub fn used(&self) -> usize {
        self.head.get(chunk::USED).map_or(0, |cell| cell.load(Relaxed) as usize)
    }

    /// Says how many bytes of the payload are meant, after they were written.
    pub fn set_used(&self, bytes: usize) {
        if let Some(cell) = self.head.get(chunk::USED) {
            cell.store(bytes as u64, Release);
        }
    }

    /// Says which part of a sequence the chunk holds from now on, and that it is empty.
    pub fn restart(&self, sequence: u32) {
        self.set_used(0);
        if let Some(cell) = self.head.get(chunk::SEQUENCE) {
            cell.store(u64::from(sequence), Release);
        }
    }

    /// Appends bytes if they fit.
    pub fn append(&self, bytes: &[u8]) -> bool {
        let used = self.used();
        let Some(room) = self.bytes().get(used..used + bytes.len()) else { return false };
        room.iter().zip(bytes).for_each(|(cell, byte)| cell.store(*byte, Relaxed));
        self.set_used(used + bytes.len());
        true
    }
}

/// Appends records to a results file, over as many chunks as they need.
#[derive(Debug, Default)]
pub struct RecordLog {
    chunk: Option<Chunk>,
    bytes_written: u64,
    is_broken: bool,
}

impl RecordLog {
    /// How many bytes of records there are.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Appends one record and gives its encoding.
    ///
    /// A record may lie over two chunks; the reader joins them. Once a chunk was refused nothing
    /// more is written, so that what is there stays readable.
    pub fn append(&mut self, file: &ResultsFile, record: &ProcessRecord) -> Vec<u8> {
        let mut encoded = Vec::new();
        record.encode(&mut encoded);
        let mut rest = encoded.as_slice();
        while !rest.is_empty() && !self.is_broken {
            let room = self.chunk.map_or(0, |chunk| CHUNK_PAYLOAD_BYTES - chunk.used());
            if room == 0 {
                self.chunk = file.chunk(Kind::Records, 0, 0);
                self.is_broken = self.chunk.is_none();
                continue;
            }
            let (now, later) = rest.split_at(room.min(rest.len()));
            if let Some(chunk) = self.chunk {
                chunk.append(now);
            }
            self.bytes_written += now.len() as u64;
            rest = later;
        }
        encoded
    }
}
