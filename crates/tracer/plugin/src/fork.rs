//! The child of a fork counts for itself.
//!
//! It inherits everything, the parent's results file included, which it must leave alone from its
//! first instruction on. The C library calls us around the fork, on the thread that forks; the locks
//! are held meanwhile, so that the child does not inherit one that a thread it lacks had taken.

use std::cell::{Cell, RefCell};
use std::ffi::c_uint;
use std::sync::{Arc, MutexGuard, PoisonError};

use tracer::results::{RecordLog, ResultsFile, Started};
use tracer::trace::Output;

use crate::process::{Plugin, Process};
use crate::vcpu;

/// Everything that a thread may have locked.
struct Held {
    process: MutexGuard<'static, Process>,
    results: MutexGuard<'static, Arc<ResultsFile>>,
    trace: Option<MutexGuard<'static, Output>>,
}

thread_local! {
    /// The vcpu of the thread that is about to fork.
    static FORKING: Cell<Option<c_uint>> = const { Cell::new(None) };
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Asks the C library to call us around forks.
pub(crate) fn prepare() -> bool {
    // SAFETY: the handlers are functions of ours that stay loaded.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) == 0 }
}

/// A thread is about to call something that may fork.
pub(crate) fn expect(vcpu: c_uint) {
    FORKING.set(Some(vcpu));
}

extern "C" fn before() {
    let Some(plugin) = Plugin::get() else { return };
    let process = plugin.process();
    let results = plugin.results.lock().unwrap_or_else(PoisonError::into_inner);
    let mut trace =
        plugin.trace.as_ref().map(|trace| trace.lock().unwrap_or_else(PoisonError::into_inner));
    if let Some(trace) = &mut trace {
        // The child's trace begins with what is said so far.
        trace.flush_records();
    }
    HELD.set(Some(Held { process, results, trace }));
}

extern "C" fn in_parent() {
    drop(HELD.take());
}

extern "C" fn in_child() {
    let Some(Held { mut process, mut results, mut trace }) = HELD.take() else { return };
    let Some(plugin) = Plugin::get() else { return };
    let inherited = Some((process.results.key(), inherited_bytes(&process)));
    let started = Started { inherited, counts_accesses: plugin.settings.listener.watches_memory() };
    let Some(survivor) = FORKING.get() else { return };
    vcpu::forget_others(survivor);
    match ResultsFile::create(&plugin.dir, std::process::id(), started) {
        Ok(file) => *results = Arc::new(file),
        // Without a file of its own the child runs untraced rather than counting for its parent.
        Err(_) => {
            Plugin::stop();
            return vcpu::forget_others(c_uint::MAX);
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
    if let Some(vcpu) = vcpu::get(survivor) {
        vcpu.thread = 0;
        vcpu.assembler.forked();
    }
}

/// How many bytes of the parent's records are the child's too.
fn inherited_bytes(process: &Process) -> u64 {
    process.log.bytes_written()
}
