//! The daemon's own directory inside the database: one for each host, so that many hosts can share
//! a database and each has one daemon.
//!
//! ```text
//! DB/HOST/daemon/  lock    held while the daemon lives; its pid inside
//!                  socket  0600
//!                  log     what the daemon had to say
//!                  jit/, namespaces: see `aside`
//! ```

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::{ERROR, Failure};

/// A daemon that lives holds its lock for longer than all of these together.
const LOCK_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// Where the daemon of this host keeps its things.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Room {
    pub(super) folder: PathBuf,
    pub(super) database: PathBuf,
    pub(super) host: String,
}

/// Held while the daemon lives.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Room {
    /// The room of this host; nothing is made.
    pub(super) fn of(database: &Path) -> Room {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = as_file_name(host.trim());
        Room { folder: database.join(&host).join("daemon"), database: database.into(), host }
    }

    /// Makes the directories, for the owner alone.
    pub(super) fn make(&self) -> Result<(), Failure> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(|error| {
            let folder = self.folder.display();
            Failure::new(ERROR, format!("cannot make {folder}: {error}"))
                .kept("nothing was started")
                .remedy("name a directory of your own with --db")
        })
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Takes the lock, or says who has it.
    pub(super) fn lock(&self) -> Result<Lock, Failure> {
        let path = self.folder.join("lock");
        let failed = |error: io::Error| {
            Failure::new(ERROR, format!("cannot lock {}: {error}", path.display()))
                .kept("nothing was started")
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let mut tries = 0;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                // Whoever only asks whether there is a daemon holds it for a moment, too.
                Err(TryLockError::WouldBlock) if tries < LOCK_TRIES => {
                    tries += 1;
                    std::thread::sleep(BETWEEN_TRIES);
                }
                Err(TryLockError::WouldBlock) => return Err(self.taken(&mut file)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        // Who holds it, for whoever comes second. A full disk does not stop us from collecting.
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(std::process::id().to_string().as_bytes()));
        Ok(Lock { _file: file })
    }

    fn taken(&self, file: &mut File) -> Failure {
        let mut holder = String::new();
        let _ = file.take(20).read_to_string(&mut holder);
        let who = match holder.trim().parse::<u32>() {
            Ok(pid) => format!("a daemon (pid {pid})"),
            Err(_) => "a daemon".to_owned(),
        };
        Failure::new(
            ERROR,
            format!("{who} already collects into {} on {}", self.database.display(), self.host),
        )
        .kept("it goes on, and nothing was started")
        .remedy("`whither daemon stop` ends it")
    }

    /// The pid in the lock, if somebody holds it.
    pub(super) fn holder(&self) -> Option<u32> {
        let mut file = File::open(self.folder.join("lock")).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).ok()?;
                holder.trim().parse().ok()
            }
            _ => None,
        }
    }
}

/// A host may call itself anything; a directory may not be called so.
fn as_file_name(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' };
    let name: String = host.chars().take(64).map(plain).collect();
    match name.trim_start_matches('.') {
        "" => "host".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_name_becomes_one_part_of_a_path() {
        assert_eq!(as_file_name("build-7.example.org"), "build-7.example.org");
        assert_eq!(as_file_name("../../etc"), "_.._etc");
        assert_eq!(as_file_name(".."), "host");
        assert_eq!(as_file_name("a/b\u{1b}[2J"), "a_b__2J");
    }

    #[test]
    fn the_second_to_come_is_told_who_is_there() {
        let folder = std::env::temp_dir().join(format!("whither-room-{}", std::process::id()));
        let room = Room::of(&folder);
        room.make().unwrap();
        let lock = room.lock().unwrap();
        let refused = room.lock().unwrap_err().sentence();
        assert!(refused.contains(&format!("pid {}", std::process::id())), "{refused}");
        assert_eq!(room.holder(), Some(std::process::id()));
        drop(lock);
        assert_eq!(room.holder(), None);
        room.lock().unwrap();
        fs::remove_dir_all(&folder).unwrap();
    }
}
