//! Waiting: for the program's end, and for something to read.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// What the kernel says of a program that has ended, its children that it waited for included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Usage {
    /// Time in the program.
    pub user: Duration,
    /// Time in the kernel on its behalf.
    pub system: Duration,
    /// The most memory it ever held, in KiB.
    pub peak_kib: u64,
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ended {
    status: i32,
    /// What it used.
    pub usage: Usage,
}

impl Ended {
    /// An ending that was recorded elsewhere, for replays.
    pub fn exited(code: u8, usage: Usage) -> Ended {
        Ended { status: i32::from(code) << 8, usage }
    }

    /// Its exit status, if it exited.
    pub fn code(&self) -> Option<i32> {
        libc::WIFEXITED(self.status).then(|| libc::WEXITSTATUS(self.status))
    }

    /// The signal that killed it, if one did.
    pub fn signal(&self) -> Option<i32> {
        libc::WIFSIGNALED(self.status).then(|| libc::WTERMSIG(self.status))
    }
}

pub(crate) fn wait(pid: u32) -> io::Result<Ended> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live locals.
        let waited = unsafe { libc::wait4(pid as i32, &raw mut status, 0, &raw mut usage) };
        if waited == pid as i32 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let time = |t: libc::timeval| {
        Duration::new(t.tv_sec.max(0) as u64, t.tv_usec.clamp(0, 999_999) as u32 * 1000)
    };
    let usage = Usage {
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        peak_kib: usage.ru_maxrss.max(0) as u64,
    };
    Ok(Ended { status, usage })
}

/// A descriptor that becomes readable when its process ends.
#[derive(Debug)]
pub struct ProcessFd {
    fd: OwnedFd,
}

impl ProcessFd {
    /// None on kernels before 5.3: the caller then asks now and again.
    pub fn open(pid: u32) -> Option<ProcessFd> {
        // SAFETY: plain numbers; the kernel checks them.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as i32, 0) };
        // SAFETY: the call succeeded, so the descriptor is new and ours.
        (fd >= 0).then(|| ProcessFd { fd: unsafe { OwnedFd::from_raw_fd(fd as i32) } })
    }

    /// For `poll`.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

/// Whether a child has ended, without collecting its status.
pub(crate) fn has_ended(pid: u32) -> bool {
    // SAFETY: siginfo_t is plain data, for which zero is a value.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the pointer is to a live local. The pid is in the structure only if it has ended.
    unsafe {
        libc::waitid(libc::P_PID, pid, &raw mut info, flags) == 0 && info.si_pid() == pid as i32
    }
}

/// Waits until one of the descriptors has something to say, or the time is up.
pub fn wait_for_any(fds: &[RawFd], at_most: Duration) -> io::Result<()> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let milliseconds = i32::try_from(at_most.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: the pointer and the length are those of one live vector.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as u64, milliseconds) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}
