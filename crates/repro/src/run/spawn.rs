//! Starting a process and waiting for it with the kernel's account of its time.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use super::peak::peak_bytes;
use super::{Task, Wrap};

/// Longest a run may take; a program that hangs must not hang the whole table. Under a tool, which may
/// hold a dozen modelled cores, it has that many times as long.
const LIMIT: Duration = Duration::from_secs(900);
const LIMIT_TIMES: u32 = 6;

/// The time a process and the children it waited for took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spent {
    /// How it ended, as wait(2) says.
    status: ExitStatus,
    /// In user mode.
    pub user_seconds: f64,
    /// In the kernel.
    pub system_seconds: f64,
    /// By the clock on the wall.
    pub wall_seconds: f64,
    /// The most memory that it, or any of its descendants, was seen to have at once.
    pub peak_bytes: u64,
}

impl Spent {
    /// User and system time.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }

    /// Whether it ended with status 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// How a failed process ended, with the last line it wrote to `stderr`.
    pub fn ending(&self, stderr: &Path) -> String {
        let how = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("ended with status {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended strangely".to_owned(),
        };
        let bytes = std::fs::read(stderr).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        match text.lines().rev().find(|line| !line.trim().is_empty()) {
            Some(line) => format!("{how}: {}", line.trim()),
            None => how,
        }
    }
}

/// A command ready to start.
pub(super) struct Start<'a> {
    task: &'a Task,
    argv: Vec<String>,
    limit: Duration,
    stdout: PathBuf,
    pub(super) stderr: PathBuf,
}

impl<'a> Start<'a> {
    pub(super) fn new(task: &'a Task, wrap: &Wrap, streams: &Path) -> Result<Self, String> {
        let mut argv = wrap.words.clone();
        if wrap.joined {
            argv.push(
                task.command()?.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
            );
        } else {
            argv.extend(task.command()?);
        }
        let (stdout, stderr) = (streams.join("stdout"), streams.join("stderr"));
        let limit = if wrap.words.is_empty() { LIMIT } else { LIMIT * LIMIT_TIMES };
        Ok(Start { task, argv, limit, stdout, stderr })
    }

    /// Starts it; each of `swaps` is replaced in every argument (a server's port).
    pub(super) fn spawn(&self, swaps: &[(&str, &str)]) -> Result<Running, String> {
        let argv: Vec<String> = self.argv.iter().map(|word| swap(word, swaps)).collect();
        let (Some(program), arguments) = (argv.first(), argv.get(1..).unwrap_or_default()) else {
            return Err(format!("{}: the command is empty", self.task.name));
        };
        let mut command = Command::new(program);
        command.args(arguments);
        self.task.surround(&mut command);
        command.stdin(self.stdin()?).stdout(create(&self.stdout)?).stderr(create(&self.stderr)?);
        let began = Instant::now();
        let child = command
            .spawn()
            .map_err(|e| format!("{}: {program} cannot be started: {e}", self.task.name))?;
        let name = self.task.name.clone();
        Ok(Running { child, began, limit: self.limit, name, peak_bytes: 0 })
    }

    fn stdin(&self) -> Result<Stdio, String> {
        let Some(name) = &self.task.stdin else { return Ok(Stdio::null()) };
        let path = self.task.directory.join(name);
        File::open(&path)
            .map(Stdio::from)
            .map_err(|e| format!("{}: its input {name} cannot be read: {e}", self.task.name))
    }
}

pub(super) fn swap(word: &str, swaps: &[(&str, &str)]) -> String {
    swaps.iter().fold(word.to_owned(), |word, (from, to)| word.replace(from, to))
}

/// A word that a splitter of shell words gives back as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// A process under way.
pub(super) struct Running {
    child: Child,
    began: Instant,
    limit: Duration,
    name: String,
    peak_bytes: u64,
}

impl Running {
    /// Waits for its end, or ends it after the limit.
    pub(super) fn wait(mut self) -> Result<Spent, String> {
        let mut pause = Duration::from_millis(1);
        loop {
            if let Some(spent) = self.reaped()? {
                return Ok(spent);
            }
            if self.began.elapsed() > self.limit {
                self.end();
                let seconds = self.limit.as_secs();
                return Err(format!("{} took longer than {seconds} s", self.name));
            }
            self.peak_bytes = self.peak_bytes.max(peak_bytes(self.child.id()).unwrap_or(0));
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Ends it at once.
    pub(super) fn end(&mut self) {
        // It may have ended by itself meanwhile; either way nothing is left running.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Its account, if it has ended.
    pub(super) fn reaped(&mut self) -> Result<Option<Spent>, String> {
        let mut status = 0;
        // SAFETY: an all-zero rusage is a valid value of that plain C struct.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let pid = libc::pid_t::try_from(self.child.id()).map_err(|e| e.to_string())?;
        // SAFETY: both pointers are to live locals of the right type, and the child has not been
        // waited for: `Child` is only waited for in `end`, after which no one calls this.
        let got = unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) };
        if got == 0 {
            return Ok(None);
        }
        if got < 0 {
            let error = std::io::Error::last_os_error();
            return Err(format!("{}: waiting for it failed: {error}", self.name));
        }
        Ok(Some(Spent {
            status: ExitStatus::from_raw(status),
            user_seconds: seconds(usage.ru_utime),
            system_seconds: seconds(usage.ru_stime),
            wall_seconds: self.began.elapsed().as_secs_f64(),
            // One that was never seen has the kernel's word, in KiB, which may be ours.
            peak_bytes: match self.peak_bytes {
                0 => u64::try_from(usage.ru_maxrss).unwrap_or(0).saturating_mul(1024),
                seen => seen,
            },
        }))
    }
}

fn seconds(time: libc::timeval) -> f64 {
    time.tv_sec as f64 + time.tv_usec as f64 / 1e6
}
