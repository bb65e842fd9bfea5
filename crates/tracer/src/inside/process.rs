//! What the threads of the process share.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use model::stream::Code;

use crate::block::{BlockTable, LiveBlock};
use crate::record::{ImageMap, ProcessRecord};
use crate::results::{RecordLog, ResultsFile, Started};
use crate::settings::{Listener, Settings};
use crate::tally::CurrentResults;
use crate::trace::{CurrentTrace, Output, Sink};

static INSIDE: OnceLock<Inside> = OnceLock::new();
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// The tracer in this process.
pub struct Inside {
    /// The directory that is shared with the launcher.
    pub dir: PathBuf,
    /// What the launcher asks for.
    pub settings: Settings,
    /// Where results go; a child of a fork has its own.
    pub results: CurrentResults,
    /// Where the trace goes, if there is one.
    pub trace: Option<CurrentTrace>,
    process: Mutex<Process>,
}

/// What is said about the process. Changed rarely: when code is seen for the first time, when files
/// are mapped, when threads begin.
pub struct Process {
    /// The code that was seen.
    pub blocks: BlockTable,
    /// Which files lie where.
    pub maps: Vec<ImageMap>,
    /// What was said so far.
    pub log: RecordLog,
    /// Where it is said.
    pub results: Arc<ResultsFile>,
    /// The number of the next thread that begins.
    pub next_thread: u32,
    /// Whether the program's first images were recorded.
    pub has_images: bool,
    /// The file that runs, where the engine says it.
    pub program: Option<PathBuf>,
    trace: Option<CurrentTrace>,
}

impl Process {
    /// Says something about the process.
    pub fn record(&mut self, record: &ProcessRecord) {
        let encoded = self.log.append(&self.results, record);
        if let Some(trace) = &self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).record(&encoded);
        }
    }

    /// The block of these instructions, recorded if it is new.
    pub fn intern(&mut self, instructions: Vec<Code>) -> &'static LiveBlock {
        let (block, is_new) = self.blocks.intern(instructions);
        if is_new {
            self.record(&ProcessRecord::Block(block.code.clone()));
        }
        block
    }

    /// The number of a thread that begins.
    pub fn begin_thread(&mut self) -> u32 {
        let thread = self.next_thread;
        self.next_thread += 1;
        // SAFETY: asks the kernel for a number.
        let tid = unsafe { libc::gettid() } as u32;
        self.record(&ProcessRecord::ThreadBegan { thread, tid });
        thread
    }
}

impl Inside {
    /// Reads the settings and makes the results file. `None` leaves the program untraced.
    pub fn start(dir: PathBuf) -> Option<&'static Inside> {
        let settings = Settings::read(&dir).ok()?;
        crate::pages::keep_freed();
        let started =
            Started { inherited: None, counts_accesses: settings.listener.watches_memory() };
        let results = Arc::new(ResultsFile::create(&dir, std::process::id(), started).ok()?);
        let trace = sink(&settings.listener)
            .map(|sink| Arc::new(Mutex::new(Output::new(sink, results.clone()))));
        let process = Process {
            blocks: BlockTable::new(settings.listener.watches_memory()),
            maps: Vec::new(),
            log: RecordLog::default(),
            results: results.clone(),
            next_thread: 0,
            has_images: false,
            program: None,
            trace: trace.clone(),
        };
        let results = Arc::new(Mutex::new(results));
        let inside = Inside { dir, settings, results, trace, process: Mutex::new(process) };
        INSIDE.set(inside).ok()?;
        INSIDE.get()
    }

    /// The tracer, once it was started and unless it was stopped.
    pub fn get() -> Option<&'static Inside> {
        INSIDE.get().filter(|_| !IS_STOPPED.load(Relaxed))
    }

    /// Leaves the rest of the process untraced: a child of a fork that has no results file must not
    /// write to its parent's.
    pub fn stop() {
        IS_STOPPED.store(true, Relaxed);
    }

    /// What the threads share. Nothing that calls a listener may hold it.
    pub fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks that a thread may not know yet, copied so that its listener is not called under
    /// the lock.
    pub fn blocks_since(known: u32) -> Vec<&'static LiveBlock> {
        Inside::get().map_or_else(Vec::new, |inside| inside.process().blocks.since(known).to_vec())
    }
}

fn sink(listener: &Listener) -> Option<Sink> {
    match listener {
        Listener::Trace(path) => Some(Sink::File(path.clone())),
        Listener::Socket(path) => Some(Sink::Socket(path.clone())),
        Listener::Tally { .. }
        | Listener::Hash
        | Listener::Null
        | Listener::Model(_)
        | Listener::Count(_) => None,
    }
}
