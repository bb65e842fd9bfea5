//! Ctrl-C where whither itself is what should stop, and ending what it started.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a signal asked us to stop. A handler can reach only statics.
static ASKED: AtomicBool = AtomicBool::new(false);

/// While this lives, Ctrl-C and a request to end are noted instead of ending the process, so that
/// what was counted is still written.
#[derive(Debug)]
pub struct StopRequest {
    before: [(i32, libc::sighandler_t); 2],
}

extern "C" fn note(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

impl StopRequest {
    /// Begins to listen.
    pub fn listen() -> StopRequest {
        ASKED.store(false, Ordering::Relaxed);
        let handler = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let set = |signal| {
            // SAFETY: the handler does one atomic store.
            (signal, unsafe { libc::signal(signal, handler) })
        };
        StopRequest { before: [set(libc::SIGINT), set(libc::SIGTERM)] }
    }

    /// Whether someone asked.
    pub fn is_asked(&self) -> bool {
        ASKED.load(Ordering::Relaxed)
    }
}

impl Drop for StopRequest {
    fn drop(&mut self) {
        for (signal, handler) in self.before {
            // SAFETY: puts back what was there.
            unsafe { libc::signal(signal, handler) };
        }
    }
}

/// Asks a process that we started to end.
pub fn terminate(pid: u32) {
    // Zero and negative numbers would mean groups of processes.
    if let Ok(pid) = i32::try_from(pid)
        && pid > 1
    {
        // SAFETY: plain numbers; the kernel checks them.
        unsafe { libc::kill(pid, libc::SIGTERM) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_noted_and_ends_nothing() {
        let stop = StopRequest::listen();
        assert!(!stop.is_asked());
        // SAFETY: the handler is ours.
        unsafe { libc::raise(libc::SIGINT) };
        assert!(stop.is_asked());
    }
}
