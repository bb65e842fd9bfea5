//! Where a process's trace goes.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::chunk::{ChunkKind, TraceChunk};
use crate::limits::Limit;
use crate::results::{ProcessKey, ResultsFile};
use crate::varint::put;

/// The output of the process, shared by its threads.
pub type CurrentTrace = Arc<Mutex<Output>>;

/// Where chunks go. Opened for every chunk and closed again, so that the program never finds a
/// descriptor that it did not open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sink {
    /// To the end of a file.
    File(PathBuf),
    /// To whoever listens on a socket, one connection a chunk, so that chunks do not mix.
    Socket(PathBuf),
}

impl Sink {
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::File(path) => append(path, bytes),
            Sink::Socket(path) => send(&UnixStream::connect(path)?, bytes),
        }
    }
}

/// Writes to the end of a file, unless that would exceed the program's limit and bring it a signal.
fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    if file.metadata()?.len().saturating_add(bytes.len() as u64) > Limit::FileSize.now() {
        return Err(io::Error::other("the file size limit leaves no room for the trace"));
    }
    file.write_all(bytes)
}

/// Writes to a socket without the signal that a closed one brings: it would reach the program.
fn send(socket: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the bytes are valid for their length, and the descriptor is open.
        let sent = unsafe {
            libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
        };
        match usize::try_from(sent) {
            Ok(sent) => bytes = bytes.get(sent..).unwrap_or_default(),
            Err(_) => {
                let why = io::Error::last_os_error();
                if why.kind() != io::ErrorKind::Interrupted {
                    return Err(why);
                }
            }
        }
    }
    Ok(())
}

/// A process's way to the trace.
#[derive(Debug)]
pub struct Output {
    sink: Sink,
    results: Arc<ResultsFile>,
    /// Records that are not in the trace yet.
    pending: Vec<u8>,
    /// How many bytes of records are.
    records_written: u64,
}

impl Output {
    /// A process that begins by itself.
    pub fn new(sink: Sink, results: Arc<ResultsFile>) -> Output {
        Output { sink, results, pending: Vec::new(), records_written: 0 }
    }

    /// This is a fork: from now on everything is about the child.
    pub fn forked(&mut self, results: Arc<ResultsFile>, inherited_bytes: u64) {
        let mut payload = Vec::new();
        put(&mut payload, self.results.key().to_word());
        put(&mut payload, inherited_bytes);
        self.results = results;
        self.pending.clear();
        self.records_written = 0;
        self.write(ChunkKind::Began, 0, payload);
    }

    /// The process.
    pub fn key(&self) -> ProcessKey {
        self.results.key()
    }

    /// Adds an encoded record; it is written before anything that may need it.
    pub fn record(&mut self, encoded: &[u8]) {
        self.pending.extend_from_slice(encoded);
    }

    /// Writes the records that are not in the trace yet.
    pub fn flush_records(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let payload = std::mem::take(&mut self.pending);
        let (start, len) = (self.records_written, payload.len() as u64);
        self.write(ChunkKind::Records, start, payload);
        self.records_written += len;
        self.results.set_traced_records(self.records_written);
    }

    /// Writes what a thread ran.
    pub fn thread(&mut self, thread: u32, sequence: u32, payload: Vec<u8>) {
        self.flush_records();
        self.write(ChunkKind::Thread(thread), u64::from(sequence), payload);
    }

    fn write(&self, kind: ChunkKind, sequence: u64, payload: Vec<u8>) {
        let chunk = TraceChunk { kind, process: self.results.key(), sequence, payload };
        if self.sink.write(&chunk.encode()).is_err() {
            self.results.note_trace_lost();
        }
    }
}
