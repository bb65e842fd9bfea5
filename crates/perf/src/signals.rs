//! Signals while a program runs in our place.

use std::sync::atomic::{AtomicI32, Ordering};

/// The program that signals are passed on to; 0 for none. A handler can reach only statics.
static PROGRAM: AtomicI32 = AtomicI32::new(0);

/// While this lives, the terminal's interrupts are the program's to handle (it gets them from the
/// terminal itself), and a request to end is passed on to it, so that the report is still written.
#[derive(Debug)]
pub struct Bystander {
    before: [(i32, libc::sighandler_t); 4],
}

extern "C" fn pass_on(signal: libc::c_int) {
    let pid = PROGRAM.load(Ordering::Relaxed);
    if pid > 0 {
        // SAFETY: kill is async-signal-safe.
        unsafe { libc::kill(pid, signal) };
    }
}

impl Bystander {
    /// Steps aside for the program.
    pub fn of(pid: u32) -> Bystander {
        PROGRAM.store(pid as i32, Ordering::Relaxed);
        let handler = pass_on as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let set = |signal, handler| {
            // SAFETY: the handler does one atomic load and one kill.
            (signal, unsafe { libc::signal(signal, handler) })
        };
        Bystander {
            before: [
                set(libc::SIGINT, libc::SIG_IGN),
                set(libc::SIGQUIT, libc::SIG_IGN),
                set(libc::SIGTERM, handler),
                set(libc::SIGHUP, handler),
            ],
        }
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        PROGRAM.store(0, Ordering::Relaxed);
        for (signal, handler) in self.before {
            // SAFETY: puts back what was there.
            unsafe { libc::signal(signal, handler) };
        }
    }
}
