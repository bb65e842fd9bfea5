//! A daemon and a database of a test's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use store::Database;
use vocab::Tally;

/// Two daemons at a time would sample each other; the machine has few CPUs.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A database of this test, gone afterwards; its daemon ends with it.
pub(crate) struct Scene {
    pub(crate) folder: PathBuf,
    pub(crate) daemon: Option<Child>,
    _turn: std::sync::MutexGuard<'static, ()>,
}

impl Scene {
    /// None where this machine does not let us.
    pub(crate) fn new(name: &str) -> Option<Scene> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
        let bits = u64::from_str_radix(effective.trim(), 16).unwrap();
        if bits >> 38 & 3 != 3 {
            eprintln!("skipped: CAP_PERFMON and CAP_BPF are missing here");
            return None;
        }
        let folder = std::env::temp_dir().join(format!("whither-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Some(Scene { folder, daemon: None, _turn: turn })
    }

    pub(crate) fn db(&self) -> PathBuf {
        self.folder.join("db")
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_whither"));
        command.arg("daemon").args(words).arg("--db").arg(self.db());
        command
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts one in the foreground and waits until it answers.
    pub(crate) fn start(&mut self, more: &[&str]) {
        let mut words = vec!["start", "--foreground", "--drain", "0.2s", "--merge", "0.4s"];
        words.extend(more);
        let log = fs::File::create(self.folder.join("said")).unwrap();
        let mut child = self.command(&words).stderr(log).stdin(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !self.ask(&["status"]).status.success() {
            assert!(child.try_wait().unwrap().is_none(), "it ended: {}", self.said());
            assert!(Instant::now() < deadline, "it does not answer: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.daemon = Some(child);
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    pub(crate) fn status(&self) -> Value {
        let output = self.ask(&["status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.status();
            if holds(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "{what} never came: {status}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// SIGKILL: nothing is said, nothing is written.
    pub(crate) fn kill(&mut self) {
        let mut child = self.daemon.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Ends it in good order.
    pub(crate) fn stop(&mut self) -> Output {
        let output = self.ask(&["stop"]);
        if let Some(mut child) = self.daemon.take() {
            child.wait().unwrap();
        }
        output
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Everything in a database: opens, loads without trouble, and adds up.
pub(crate) fn whole(db: &Path) -> (Tally, usize, u64) {
    let epochs = Database::open(db).epochs().unwrap();
    assert!(epochs.troubles.is_empty(), "{:?}", epochs.troubles);
    let (mut all, mut gaps, mut counted) = (Tally::default(), 0, 0);
    for epoch in &epochs.value {
        let loaded = epoch.load().unwrap();
        assert!(loaded.troubles.is_empty(), "{:?}", loaded.troubles);
        let tally = loaded.value.tally.clone();
        assert!(tally.is_whole(), "{tally:?}");
        counted += loaded.value.counts.values().map(|count| count.0).sum::<u64>();
        all.merge(&tally);
        gaps += epoch.gaps().len();
    }
    assert_eq!(counted, all.stored.0);
    (all, gaps, counted)
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
