//! What the process was started with and the runtime of our own language changes before `main`: it has
//! broken pipes ignored and opens what is closed of the standard streams. The program is to find it as
//! it was.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

static IGNORES_PIPES: AtomicBool = AtomicBool::new(false);
static IS_CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// The C library calls this before the runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: asks the kernel; all-zero is a valid action, which it writes to.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut action);
        IGNORES_PIPES.store(action.sa_sigaction == libc::SIG_IGN, Relaxed);
        for (descriptor, is_closed) in (0..).zip(&IS_CLOSED) {
            is_closed.store(libc::fcntl(descriptor, libc::F_GETFD) == -1, Relaxed);
        }
    }
}

/// Makes it so again.
pub(crate) fn restore() {
    // SAFETY: signals and descriptors that the runtime changed and nobody uses.
    unsafe {
        if !IGNORES_PIPES.load(Relaxed) {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
        for (descriptor, is_closed) in (0..).zip(&IS_CLOSED) {
            if is_closed.load(Relaxed) {
                libc::close(descriptor);
            }
        }
    }
}
