//! What the threads of the process share.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tracer::block::BlockTable;
use tracer::record::{ImageMap, ProcessRecord};
use tracer::results::{RecordLog, ResultsFile, Started};
use tracer::settings::{Listener, Settings};
use tracer::tally::CurrentResults;
use tracer::trace::{CurrentTrace, Output, Sink};

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// The plugin in this process.
pub(crate) struct Plugin {
    pub(crate) dir: PathBuf,
    pub(crate) settings: Settings,
    pub(crate) results: CurrentResults,
    /// Where the trace goes, if there is one.
    pub(crate) trace: Option<CurrentTrace>,
    process: Mutex<Process>,
}

/// What is said about the process. Changed rarely: when code is seen for the first time, when files
/// are mapped, when threads begin.
pub(crate) struct Process {
    pub(crate) blocks: BlockTable,
    pub(crate) maps: Vec<ImageMap>,
    pub(crate) log: RecordLog,
    pub(crate) results: Arc<ResultsFile>,
    pub(crate) next_thread: u32,
    /// Whether the program's first images were recorded.
    pub(crate) has_images: bool,
    trace: Option<CurrentTrace>,
}

impl Process {
    /// Says something about the process.
    pub(crate) fn record(&mut self, record: &ProcessRecord) {
        let encoded = self.log.append(&self.results, record);
        if let Some(trace) = &self.trace {
            trace.lock().unwrap_or_else(PoisonError::into_inner).record(&encoded);
        }
    }

    /// The number of a thread that begins.
    pub(crate) fn begin_thread(&mut self) -> u32 {
        let thread = self.next_thread;
        self.next_thread += 1;
        // SAFETY: asks the kernel for a number.
        let tid = unsafe { libc::gettid() } as u32;
        self.record(&ProcessRecord::ThreadBegan { thread, tid });
        thread
    }
}

impl Plugin {
    /// Reads the settings and makes the results file. `None` leaves the program untraced.
    pub(crate) fn start(dir: PathBuf) -> Option<&'static Plugin> {
        let settings = Settings::read(&dir).ok()?;
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
            trace: trace.clone(),
        };
        let results = Arc::new(Mutex::new(results));
        let plugin = Plugin { dir, settings, results, trace, process: Mutex::new(process) };
        PLUGIN.set(plugin).ok()?;
        PLUGIN.get()
    }

    /// The plugin, once it was started and unless it was stopped.
    pub(crate) fn get() -> Option<&'static Plugin> {
        PLUGIN.get().filter(|_| !IS_STOPPED.load(Relaxed))
    }

    /// Leaves the rest of the process untraced: a child of a fork that has no results file must not
    /// write to its parent's.
    pub(crate) fn stop() {
        IS_STOPPED.store(true, Relaxed);
    }

    /// What the threads share. Nothing that calls a listener may hold it.
    pub(crate) fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
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
