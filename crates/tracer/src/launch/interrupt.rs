//! Living through the interrupt that is meant for the program.
//!
//! A terminal sends Ctrl-C to the program and to us. The program decides what it means; we stay to
//! report. A handler that does nothing is used, since the kernel resets handlers, but not ignored
//! signals, when the program starts; and a signal that was ignored stays so.

use std::sync::{Mutex, PoisonError};

/// How many programs run, and what was in place before the first.
static RAISED: Mutex<(usize, Vec<(libc::c_int, libc::sigaction)>)> = Mutex::new((0, Vec::new()));

/// While one exists, interrupts do not end us.
#[derive(Debug)]
pub(crate) struct Shield(());

extern "C" fn nothing(_: libc::c_int) {}

impl Shield {
    pub(crate) fn raise() -> Shield {
        let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
        raised.0 += 1;
        if raised.0 == 1 {
            raised.1 = [libc::SIGINT, libc::SIGQUIT].into_iter().filter_map(shield).collect();
        }
        Shield(())
    }
}

/// Puts the empty handler in place, unless the signal is ignored.
fn shield(signal: libc::c_int) -> Option<(libc::c_int, libc::sigaction)> {
    // SAFETY: all-zero is a valid sigaction, and the handler touches nothing.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, std::ptr::null(), &raw mut before) != 0
            || before.sa_sigaction == libc::SIG_IGN
        {
            return None;
        }
        let mut empty: libc::sigaction = std::mem::zeroed();
        empty.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        empty.sa_flags = libc::SA_RESTART;
        (libc::sigaction(signal, &raw const empty, std::ptr::null_mut()) == 0)
            .then_some((signal, before))
    }
}

impl Drop for Shield {
    fn drop(&mut self) {
        let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
        raised.0 -= 1;
        if raised.0 == 0 {
            for (signal, before) in raised.1.drain(..) {
                // SAFETY: what the kernel gave us.
                unsafe { libc::sigaction(signal, &raw const before, std::ptr::null_mut()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_does_nothing_while_a_program_runs() {
        let outer = Shield::raise();
        let inner = Shield::raise();
        drop(inner);
        // SAFETY: a signal to ourselves; without the shield it ends the test.
        assert_eq!(unsafe { libc::raise(libc::SIGINT) }, 0);
        drop(outer);
    }
}
