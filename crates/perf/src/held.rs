//! A program that is forked but not yet started, so that events can be opened on it first.
//!
//! ```text
//! parent                                   child
//! fork ──────────────────────────────────► wait on `gate`
//! open events on the pid
//! go(): one byte through `gate` ─────────► execve
//!       wait on `report` ◄── errno, or end of file when exec closed it
//! ```

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;

use crate::Surroundings;
use crate::wait::{Ended, has_ended, wait};

/// The child: waiting for [`Held::go`].
#[derive(Debug)]
pub struct Held {
    pid: u32,
    gate: File,
    report: File,
}

/// The program runs (or has ended and waits to be asked).
#[derive(Debug)]
pub struct Running {
    pid: u32,
}

/// The kernel would not execute the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExecFailed {
    /// The kernel's reason.
    pub errno: i32,
}

impl Held {
    /// Forks. The path is not searched for: the caller has found it.
    pub fn fork(
        path: &CString,
        arguments: &[CString],
        environment: &[CString],
    ) -> io::Result<Held> {
        Held::fork_in(path, arguments, environment, &Surroundings::default())
    }

    /// The same, with streams and a layout of its own.
    pub fn fork_in(
        path: &CString,
        arguments: &[CString],
        environment: &[CString],
        around: &Surroundings,
    ) -> io::Result<Held> {
        let (gate_out, gate_in) = pipe()?;
        let (report_out, report_in) = pipe()?;
        let argv = pointers(arguments);
        let envp = pointers(environment);
        // SAFETY: after the fork the child calls only async-signal-safe functions on memory that
        // was prepared before it, and never returns.
        let pid = unsafe { libc::fork() };
        match pid {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                drop((gate_in, report_out));
                // SAFETY: as above; the pointer arrays end in null.
                unsafe { start(path, &argv, &envp, around, &gate_out, &report_in) }
            }
            pid => Ok(Held { pid: pid as u32, gate: gate_in, report: report_out }),
        }
    }

    /// The process that will become the program.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Lets it execute.
    pub fn go(mut self) -> Result<Running, ExecFailed> {
        let _ = self.gate.write_all(&[1]);
        let mut errno = [0; 4];
        match self.report.read_exact(&mut errno) {
            // End of file: exec closed the other end.
            Err(_) => Ok(Running { pid: self.pid }),
            Ok(()) => {
                let _ = wait(self.pid);
                Err(ExecFailed { errno: i32::from_ne_bytes(errno) })
            }
        }
    }

    /// Gives up: the child leaves without executing anything.
    pub fn abandon(self) {
        let Held { pid, gate, report } = self;
        drop((gate, report));
        let _ = wait(pid);
    }
}

impl Running {
    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether it has ended; its status stays for [`Running::wait`].
    pub fn has_ended(&self) -> bool {
        has_ended(self.pid)
    }

    /// Waits until it has ended.
    pub fn wait(self) -> io::Result<Ended> {
        wait(self.pid)
    }
}

/// # Safety
/// Only in the child of a fork; the arrays must end in null and outlive the call.
unsafe fn start(
    path: &CString,
    argv: &[*const libc::c_char],
    envp: &[*const libc::c_char],
    around: &Surroundings,
    mut gate: &File,
    mut report: &File,
) -> ! {
    let mut byte = [0];
    // End of file instead of a byte: the parent gave up or died.
    if gate.read(&mut byte).ok() != Some(1) {
        // SAFETY: leaves without running the parent's exit handlers.
        unsafe { libc::_exit(125) }
    }
    // SAFETY: this is the child.
    let failed = match unsafe { around.apply() } {
        Err(error) => error,
        Ok(()) => {
            // SAFETY: Rust ignores SIGPIPE in this process; the program must find it as a shell
            // sets it. The strings and arrays were made before the fork.
            unsafe {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                libc::execve(path.as_ptr(), argv.as_ptr(), envp.as_ptr());
            }
            io::Error::last_os_error()
        }
    };
    let errno = failed.raw_os_error().unwrap_or(libc::EIO);
    let _ = report.write_all(&errno.to_ne_bytes());
    // SAFETY: as above.
    unsafe { libc::_exit(126) }
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect()
}

/// A pipe whose ends close on exec: (read, write).
fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and ours.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &str, arguments: &[&str]) -> Held {
        let arguments: Vec<CString> = arguments.iter().map(|a| CString::new(*a).unwrap()).collect();
        Held::fork(&CString::new(path).unwrap(), &arguments, &[]).unwrap()
    }

    #[test]
    fn the_programs_status_comes_back() {
        let ended = held("/bin/sh", &["sh", "-c", "exit 7"]).go().unwrap().wait().unwrap();
        assert_eq!((ended.code(), ended.signal()), (Some(7), None));
        let killed = held("/bin/sh", &["sh", "-c", "kill -9 $$"]).go().unwrap().wait().unwrap();
        assert_eq!((killed.code(), killed.signal()), (None, Some(9)));
    }

    #[test]
    fn a_file_that_cannot_be_executed_gives_the_kernels_reason() {
        let failed = held("/no/such/file", &["x"]).go().unwrap_err();
        assert_eq!(failed.errno, libc::ENOENT);
        assert_eq!(held("/proc/self/status", &["x"]).go().unwrap_err().errno, libc::EACCES);
    }

    #[test]
    fn an_abandoned_program_never_starts() {
        let marker = std::env::temp_dir().join(format!("whither-held-{}", std::process::id()));
        let script = format!("echo > {}", marker.display());
        held("/bin/sh", &["sh", "-c", &script]).abandon();
        assert!(!marker.exists());
    }

    #[test]
    fn the_program_finds_sigpipe_as_a_shell_sets_it() {
        // `yes` dies of SIGPIPE (141 to the shell); with the signal ignored it would exit with 1.
        let script = "yes | head -n 1 >/dev/null; exit ${PIPESTATUS[0]}";
        let ended = held("/bin/bash", &["bash", "-c", script]).go().unwrap().wait().unwrap();
        assert_eq!(ended.code(), Some(141));
    }
}
