//! The child of a fork counts for itself.
//!
//! It inherits everything, the parent's results file included, which it must leave alone from its
//! first instruction on. The C library calls us around the fork, on the thread that forks; the locks
//! are held meanwhile, so that the child does not inherit one that a thread it lacks had taken.
//!
//! An engine that forks without the C library calls [`before`], and [`in_parent`] or [`in_child`],
//! itself.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};

use super::{Inside, Process};
use crate::results::{RecordLog, ResultsFile, Started};
use crate::trace::Output;

/// What an engine does with its threads in the child of a fork. Threads go by the engine's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Forgets every thread but the one that forked, or all of them if the child is not traced: the
    /// others do not exist in the child. They may have been in the middle of something.
    pub forget_others: fn(Option<u32>),
    /// The thread that forked is thread 0 of the child, which has run nothing (see
    /// [`crate::assemble::Assembler::forked`]).
    pub survived: fn(u32),
}

static HOOKS: OnceLock<Hooks> = OnceLock::new();

/// Everything that a thread may have locked.
struct Held {
    process: MutexGuard<'static, Process>,
    results: MutexGuard<'static, Arc<ResultsFile>>,
    trace: Option<MutexGuard<'static, Output>>,
}

thread_local! {
    /// The engine's number of the thread that is about to fork.
    static FORKING: Cell<Option<u32>> = const { Cell::new(None) };
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Asks the C library to call us around forks. Fails if it cannot, or was asked before.
pub fn prepare(hooks: Hooks) -> bool {
    extern "C" fn at_fork() {
        before();
    }
    extern "C" fn at_parent() {
        in_parent();
    }
    extern "C" fn at_child() {
        in_child();
    }
    // SAFETY: the handlers are functions of ours that stay loaded.
    HOOKS.set(hooks).is_ok()
        && unsafe { libc::pthread_atfork(Some(at_fork), Some(at_parent), Some(at_child)) == 0 }
}

/// A thread is about to call something that may fork.
pub fn expect(index: u32) {
    FORKING.set(Some(index));
}

/// The calling thread forks.
pub fn before() {
    let Some(inside) = Inside::get() else { return };
    let process = inside.process();
    let results = inside.results.lock().unwrap_or_else(PoisonError::into_inner);
    let mut trace =
        inside.trace.as_ref().map(|trace| trace.lock().unwrap_or_else(PoisonError::into_inner));
    if let Some(trace) = &mut trace {
        // The child's trace begins with what is said so far.
        trace.flush_records();
    }
    HELD.set(Some(Held { process, results, trace }));
}

/// The calling thread forked, or failed to.
pub fn in_parent() {
    drop(HELD.take());
}

/// The calling thread is the only one of a child.
pub fn in_child() {
    let Some(Held { mut process, mut results, mut trace }) = HELD.take() else { return };
    let Some(inside) = Inside::get() else { return };
    let inherited = Some((process.results.key(), inherited_bytes(&process)));
    let started = Started { inherited, counts_accesses: inside.settings.listener.watches_memory() };
    let (Some(survivor), Some(hooks)) = (FORKING.get(), HOOKS.get()) else { return };
    (hooks.forget_others)(Some(survivor));
    match ResultsFile::create(&inside.dir, std::process::id(), started) {
        Ok(file) => *results = Arc::new(file),
        // Without a file of its own the child runs untraced rather than counting for its parent.
        Err(_) => {
            Inside::stop();
            return (hooks.forget_others)(None);
        }
    }
    if let Some(trace) = &mut trace {
        trace.forked(results.clone(), inherited_bytes(&process));
    }
    drop(trace);
    process.results = results.clone();
    process.log = RecordLog::default();
    process.next_thread = 0;
    process.begin_thread();
    drop((process, results));
    (hooks.survived)(survivor);
}

/// How many bytes of the parent's records are the child's too.
fn inherited_bytes(process: &Process) -> u64 {
    process.log.bytes_written()
}
