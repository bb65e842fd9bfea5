//! One writer a host.
//!
//! A host writes into its own folder only, so that two writers can meet only on one host, where
//! each can see whether the other still lives. That is what makes a plain file enough:
//!
//! ```text
//! DB/HOST/lock: machine, boot, pid namespace, pid, start time of the holder, and a random token
//!   another machine of this name       refused: give one of them another name
//!   another boot, or no such process   stale: replaced by rename, then read back
//!   a process that lives               refused
//! ```
//! `flock` on the folder comes first: where it works (every local file system) it settles the
//! matter, and dies with its holder. Over NFS it may be emulated, refused, or local to a client;
//! an error other than 'somebody has it' is passed over, and the file decides. A new lock is made
//! by `link(2)`, which is atomic on every server, unlike `O_EXCL` on old ones. Before every change
//! that readers can see the writer reads its token back, so that one whose lock was removed by
//! hand stops instead of writing over its successor.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::durable::Unfinished;

const NAME: &str = "lock";

/// Who writes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Holder {
    host: String,
    /// Tells two machines of one name apart; empty where the machine has none.
    machine: String,
    boot: String,
    /// Numbers of processes mean something in one of these only.
    pid_namespace: String,
    pid: u32,
    /// In clock ticks after boot: a number that comes round again has another.
    started: u64,
    token: String,
}

impl Holder {
    fn this(host: &str) -> Holder {
        let pid = std::process::id();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Holder {
            host: host.into(),
            machine: line("/etc/machine-id"),
            boot: line("/proc/sys/kernel/random/boot_id"),
            pid_namespace: pid_namespace(),
            pid,
            started: started(pid).unwrap_or(0),
            token: format!("{pid}-{}", now.as_nanos()),
        }
    }

    /// Whether the holder of a lock that we found has gone, judged from where we are.
    fn has_gone(&self, ours: &Holder) -> bool {
        if self.machine != ours.machine {
            return false;
        }
        if self.boot != ours.boot {
            return true;
        }
        self.pid_namespace == ours.pid_namespace && started(self.pid) != Some(self.started)
    }

    fn describe(&self, ours: &Holder) -> String {
        if self.machine != ours.machine {
            return format!("another machine that calls itself '{}'", self.host);
        }
        format!("process {} of host '{}'", self.pid, self.host)
    }
}

fn line(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

fn pid_namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// When a process started; `None` if there is none.
fn started(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold spaces and brackets: fields are counted from the last bracket.
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

/// A lock that is held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    token: String,
    /// Holds the `flock`.
    _folder: Option<File>,
}

impl Lock {
    /// Takes the lock of a host's folder.
    pub(crate) fn take(folder: &Path, host: &str) -> Result<Lock, StoreError> {
        let path = folder.join(NAME);
        let ours = Holder::this(host);
        let held = match File::open(folder) {
            Ok(file) => match file.try_lock() {
                Ok(()) => Some(file),
                Err(TryLockError::WouldBlock) => return Err(refused(&path, &ours)),
                Err(TryLockError::Error(_)) => None,
            },
            Err(error) => return Err(StoreError::io("open", folder)(error)),
        };
        let mut unfinished = Unfinished::create(&folder.join(format!("{NAME}-{}", ours.token)))?;
        let text = serde_json::to_vec_pretty(&ours).map_err(StoreError::damaged(&path))?;
        let written = unfinished.file.write_all(&text).map_err(StoreError::io("write", &path));
        let taken = written.and_then(|()| place(unfinished.path(), &path, &ours));
        if taken.is_err() || taken.as_ref().is_ok_and(|placed| *placed == Placed::Linked) {
            unfinished.discard();
        }
        taken?;
        let lock = Lock { path, token: ours.token, _folder: held };
        lock.check()?;
        Ok(lock)
    }

    /// Whether it is still ours; read before every change that readers can see.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match read(&self.path) {
            Some(holder) if holder.token == self.token => Ok(()),
            _ => Err(StoreError::Displaced { path: self.path.clone() }),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.check().is_ok() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Placed {
    Linked,
    Renamed,
}

/// Puts our file where the lock is, if nobody who lives is there.
fn place(from: &Path, path: &Path, ours: &Holder) -> Result<Placed, StoreError> {
    match std::fs::hard_link(from, path) {
        Ok(()) => return Ok(Placed::Linked),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        // A file system without links has one machine only: flock has settled it.
        Err(_) if !path.exists() => {}
        Err(error) => return Err(StoreError::io("take", path)(error)),
    }
    // A lock that cannot be read was being written when its machine failed.
    if read(path).is_some_and(|holder| !holder.has_gone(ours)) {
        return Err(refused(path, ours));
    }
    std::fs::rename(from, path).map_err(StoreError::io("take", path))?;
    Ok(Placed::Renamed)
}

fn read(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn refused(path: &Path, ours: &Holder) -> StoreError {
    let holder = read(path).map_or("another process".into(), |holder| holder.describe(ours));
    StoreError::Locked { path: path.to_owned(), holder }
}
