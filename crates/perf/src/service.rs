//! What a process needs to live on its own: leaving its terminal, hearing signals, a thread for a
//! CPU.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};

use vocab::Cpu;

/// Leaves the session and the terminal of whoever started this process.
pub fn leave_session() {
    // SAFETY: no preconditions; it fails only for a leader, who has left already.
    unsafe {
        libc::setsid();
    }
}

/// Whether this process runs as the super-user.
pub fn is_root() -> bool {
    // SAFETY: no preconditions.
    unsafe { libc::geteuid() == 0 }
}

/// Files and directories made from now on belong to their owner alone.
pub fn keep_files_private() {
    // SAFETY: no preconditions.
    unsafe {
        libc::umask(0o077);
    }
}

/// Ties the calling thread to a CPU.
pub fn pin_thread(cpu: Cpu) -> io::Result<()> {
    // SAFETY: the set is plain bits, for which zero is a value; CPU_SET checks its bounds.
    let pinned = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if cpu.0 as usize >= libc::CPU_SETSIZE as usize {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        libc::CPU_SET(cpu.0 as usize, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if pinned < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Requests to end, as something to read instead of an interruption.
#[derive(Debug)]
pub struct Requests {
    file: File,
}

impl Requests {
    /// SIGTERM, SIGINT and SIGHUP are blocked and heard here from now on. To be called before there
    /// are other threads: they inherit it.
    pub fn hear() -> io::Result<Requests> {
        // SAFETY: the set is initialised before it is used; the descriptor is checked.
        let fd = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: new and ours.
        Ok(Requests { file: unsafe { File::from_raw_fd(fd) } })
    }

    /// For `poll`.
    pub fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Whether one came since the last time this was asked.
    pub fn came(&mut self) -> bool {
        let mut one = [0; size_of::<libc::signalfd_siginfo>()];
        let mut came = false;
        while self.file.read_exact(&mut one).is_ok() {
            came = true;
        }
        came
    }
}

/// CPU time and memory of this process so far.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct OwnUse {
    /// In the program, seconds.
    pub user_s: f64,
    /// In the kernel on its behalf, seconds.
    pub system_s: f64,
    /// The most memory it ever held, in KiB.
    pub peak_kib: u64,
}

/// What this process has used so far.
pub fn own_use() -> OwnUse {
    // SAFETY: rusage is plain numbers, for which zero is a value; the pointer is to a live local.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    OwnUse {
        user_s: seconds(usage.ru_utime),
        system_s: seconds(usage.ru_stime),
        peak_kib: peak_kib().unwrap_or(usage.ru_maxrss.max(0) as u64),
    }
}

/// The most memory since the last exec. The kernel's account of resources also holds what the
/// process had before it, which was its parent's.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// Gives freed memory back to the system, where the allocator keeps it otherwise.
pub fn give_memory_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no preconditions.
    unsafe {
        libc::malloc_trim(0);
    }
}
