//! The folder that every process of a modelled run writes its log into, read while it fills.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use counters::LogReader;
use pmu::log::Record;

use super::Received;
use crate::failure::Failure;

/// One for each run of this process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A folder of our own, gone when dropped.
#[derive(Debug)]
pub(super) struct LogFolder {
    path: PathBuf,
    /// A reader for each log, none for one that is damaged.
    logs: BTreeMap<PathBuf, Option<LogReader>>,
}

impl LogFolder {
    /// In shared memory, where there is some: the logs are read once and dropped.
    pub(super) fn create() -> io::Result<LogFolder> {
        let shared = Path::new("/dev/shm");
        let root = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = root.join(format!("whither-counters-{}-{number}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(LogFolder { path, logs: BTreeMap::new() })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes everything that was written since the last look.
    pub(super) fn look(
        &mut self,
        take: &mut impl FnMut(Received) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            if path.extension().is_some_and(|e| e == "counters") && !self.logs.contains_key(&path) {
                let reader = LogReader::open(&path).ok();
                self.logs.insert(path, reader);
            }
        }
        for log in self.logs.values_mut() {
            while let Some(reader) = log {
                match reader.next_record() {
                    Ok(None) => break,
                    // Every log has the header that the run was planned with.
                    Ok(Some(Record::Header(_))) => {}
                    Ok(Some(record)) => take(Received::Record(record))?,
                    Err(error) => {
                        take(Received::Damage(format!("a part is missing: {error}")))?;
                        *log = None;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for LogFolder {
    fn drop(&mut self) {
        // What cannot be removed is left; the next reboot takes it.
        let _ = fs::remove_dir_all(&self.path);
    }
}
