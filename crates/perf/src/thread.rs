//! What a thread may ask of the kernel for itself.

use std::io;

use vocab::Cpu;

/// The calling thread's number.
pub fn this_thread() -> u32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() as u32 }
}

/// Keeps the calling thread on one CPU.
pub fn pin_to(cpu: Cpu) -> io::Result<()> {
    // SAFETY: a cpu_set_t is plain bits, for which zero is a value; CPU_SET checks its range.
    let outcome = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu.0 as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets the calling thread run as soon as it wakes, before any ordinary one. Needs a privilege;
/// without it, the thread wakes when the scheduler finds it fair.
pub fn run_first() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is to a live local.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const lowest) };
}

/// Lets the calling thread's timers ring when they are due, not up to 50 µs later when it suits
/// the kernel. Failure leaves them late and nothing else.
pub fn ring_on_time() {
    // SAFETY: the option takes a plain number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Leaves all signals to other threads: a helper inside somebody's program must not be the one that
/// runs its handlers.
pub fn take_no_signals() {
    // SAFETY: a sigset_t is plain bits, filled before it is used.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}
