//! What watches the whole machine while something runs: our daemon, or `perf record -a`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Nobody.
    Bare,
    /// `whither daemon`, in this configuration.
    Ours(&'static str),
    /// `perf record -a`.
    Perf,
}

impl Who {
    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Bare => "bare",
            Who::Ours("cycles") => "whither cycles",
            Who::Ours("mux") => "whither mux",
            Who::Ours(_) => "whither default",
            Who::Perf => "perf record -a",
        }
    }
}

/// A watcher at work.
#[derive(Debug)]
pub(super) struct Watcher {
    who: Who,
    child: Option<Child>,
    folder: PathBuf,
    whither: String,
}

/// What a watcher had done by its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Done {
    /// Bytes that it left on disk.
    pub(super) bytes: u64,
    /// Its CPU time from beginning to end, in seconds.
    pub(super) cpu_s: f64,
    /// Our daemon's last status.
    pub(super) status: Option<Value>,
}

/// How long either may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A watcher that takes less than this in so long has begun.
const CALM: Duration = Duration::from_millis(500);
const CALM_CPU_S: f64 = 0.01;

impl Watcher {
    /// Starts it in a fresh folder and waits until it watches.
    pub(super) fn start(who: Who, hertz: u64, whither: &str) -> Result<Self, String> {
        // Not among the task's streams: those are emptied for every run.
        let folder = std::env::temp_dir().join(format!("repro-watched-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut watcher = Watcher { who, child: None, folder, whither: whither.to_owned() };
        let hertz = hertz.to_string();
        let mut command = match who {
            Who::Bare => return Ok(watcher),
            Who::Ours(config) => {
                let mut command = Command::new(whither);
                command.args(["daemon", "start", "--foreground", "--config", config, "-F", &hertz]);
                command.arg("--db").arg(watcher.folder.join("db"));
                command
            }
            Who::Perf => {
                let mut command = Command::new("perf");
                command.args(["record", "-q", "-a", "-e", "cpu-clock", "-F", &hertz, "-o"]);
                command.arg(watcher.folder.join("perf.data"));
                command
            }
        };
        let log = std::fs::File::create(watcher.folder.join("log"))
            .map_err(|e| format!("{}: {e}", watcher.folder.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child =
            command.spawn().map_err(|e| format!("{} cannot be started: {e}", who.name()))?;
        watcher.child = Some(child);
        watcher.wait_until_it_watches()?;
        Ok(watcher)
    }

    fn wait_until_it_watches(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while !self.watches() {
            let ended = self.child.as_mut().and_then(|child| child.try_wait().ok()).flatten();
            if ended.is_some() || began.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                let last = log.lines().last().unwrap_or("it said nothing").to_owned();
                return Err(format!("{} does not watch: {last}", self.who.name()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Our daemon answers; perf has written the head of its file and mapped its rings.
    fn watches(&self) -> bool {
        match self.who {
            Who::Bare => true,
            Who::Ours(_) => self.status().is_ok(),
            Who::Perf => {
                let maps = self.child.as_ref().map(|child| format!("/proc/{}/maps", child.id()));
                let maps = maps.and_then(|path| std::fs::read_to_string(path).ok());
                maps.is_some_and(|maps| maps.contains("[perf_event]"))
            }
        }
    }

    fn ask(&self, what: &str) -> Result<Value, String> {
        let output = Command::new(&self.whither)
            .args(["daemon", what, "--json", "--db"])
            .arg(self.folder.join("db"))
            .output()
            .map_err(|e| format!("whither cannot run: {e}"))?;
        serde_json::from_slice(&output.stdout).map_err(|e| format!("the daemon's {what}: {e}"))
    }

    /// Our daemon's account of itself.
    pub(super) fn status(&self) -> Result<Value, String> {
        self.ask("status")
    }

    /// Brings our daemon to where perf always is: everything taken so far is on disk.
    pub(super) fn flush(&self) -> Result<(), String> {
        match self.who {
            Who::Ours(_) => self.ask("flush").map(drop),
            Who::Bare | Who::Perf => Ok(()),
        }
    }

    /// Time on a CPU so far, in seconds, of every thread. Ticks of a hundredth of a second would be
    /// coarser than what a watcher takes in a short window.
    pub(super) fn cpu_seconds(&self) -> Option<f64> {
        let pid = self.child.as_ref()?.id();
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let nanoseconds = |thread: std::fs::DirEntry| -> Option<f64> {
            let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse().ok()
        };
        Some(threads.filter_map(nanoseconds).sum::<f64>() / 1e9)
    }

    /// Waits until what it does only once is behind it: perf describes every process that it finds
    /// after it has begun to watch.
    pub(super) fn settle(&self) {
        let began = Instant::now();
        let mut before = self.cpu_seconds();
        while began.elapsed() < PATIENCE {
            std::thread::sleep(CALM);
            let now = self.cpu_seconds();
            let (Some(then), Some(now)) = (before, now) else { return };
            if now - then < CALM_CPU_S {
                return;
            }
            before = Some(now);
        }
    }

    /// Ends it in good order; the status is taken after everything was drained.
    pub(super) fn stop(mut self) -> Result<Done, String> {
        let mut done = Done::default();
        if let Who::Ours(_) = self.who {
            self.flush()?;
            done.status = Some(self.status()?);
            self.ask("stop")?;
        }
        if let (Who::Perf, Some(child)) = (self.who, &self.child) {
            // SAFETY: our own child, not yet waited for.
            unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
        }
        if let Some(child) = self.child.take() {
            done.cpu_s = ended(&child).map_err(|e| format!("{}: {e}", self.who.name()))?;
        }
        done.bytes = match self.who {
            Who::Bare => 0,
            Who::Ours(_) => bytes_below(&self.folder.join("db")),
            Who::Perf => bytes_below(&self.folder.join("perf.data")),
        };
        Ok(done)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Waits for the end of a child; its CPU time, in seconds, that of all its threads.
fn ended(child: &Child) -> std::io::Result<f64> {
    let mut status = 0;
    // SAFETY: rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: our own child, not yet waited for; both pointers are to live locals.
        let got = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, &raw mut usage) };
        if got >= 0 {
            break;
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

fn bytes_below(path: &Path) -> u64 {
    let Ok(data) = std::fs::symlink_metadata(path) else { return 0 };
    if !data.is_dir() {
        return data.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes_below(&entry.path())).sum()
}
