//! Packs the results of processes that have ended while others still run.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::scratch::{Scratch, is_alive};
use crate::results::pack;

/// Bytes of results, of all processes together, from which those that have ended are packed.
const PACKED_FROM: u64 = 1 << 30;
/// Results smaller than this are left alone.
const WORTH_PACKING: u64 = 1 << 20;
/// How often that is looked at.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks at a directory of results until it is dropped.
#[derive(Debug)]
pub(super) struct Packer {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Packer {
    pub(super) fn start(scratch: &Arc<Scratch>) -> Packer {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, scratch) = (Arc::clone(&is_over), Arc::clone(scratch));
        let look = move || {
            while !over.load(Acquire) {
                thread::park_timeout(PAUSE);
                pack_ended(scratch.path(), PACKED_FROM);
            }
        };
        // Without a thread results stay as they are, which only takes more room.
        let thread = thread::Builder::new().name("packer".to_owned()).spawn(look).ok();
        Packer { is_over, thread }
    }
}

impl Drop for Packer {
    fn drop(&mut self) {
        self.is_over.store(true, Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A results file: of which process, its place among that one's, and the room it takes.
struct Results {
    path: PathBuf,
    pid: i32,
    sequence: u32,
    bytes: u64,
}

/// Packs what processes left that have ended, or have become another program, if all results together
/// take so many bytes.
fn pack_ended(dir: &Path, from_bytes: u64) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let all: Vec<Results> = entries.flatten().filter_map(|entry| results(&entry.path())).collect();
    if all.iter().map(|results| results.bytes).sum::<u64>() < from_bytes {
        return;
    }
    for one in all.iter().filter(|results| results.bytes >= WORTH_PACKING) {
        let became = |other: &Results| other.pid == one.pid && other.sequence > one.sequence;
        if all.iter().any(became) || !is_alive(one.pid) {
            // Where there is no room it stays as it is.
            let _ = pack(&one.path);
        }
    }
}

fn results(path: &Path) -> Option<Results> {
    let name = path.file_name()?.to_str()?.strip_suffix(".results")?;
    let (pid, sequence) = name.split_once('.')?;
    let bytes = fs::metadata(path).ok()?.blocks().saturating_mul(512);
    Some(Results {
        path: path.to_owned(),
        pid: pid.parse().ok()?,
        sequence: sequence.parse().ok()?,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{ResultsFile, Started, read};

    /// A file with rows that take more room than is worth packing.
    fn left_by(dir: &Path, pid: u32) -> PathBuf {
        let file = ResultsFile::create(dir, pid, Started::default()).unwrap();
        for chunk in 0..30 {
            let rows = file.rows(1, chunk * 1000).unwrap();
            rows.iter().for_each(|cell| cell.store(7, std::sync::atomic::Ordering::Relaxed));
        }
        dir.join(file.key().file_name())
    }

    #[test]
    fn what_ended_processes_left_is_packed_once_there_is_much() {
        let scratch = Scratch::new().unwrap();
        let dir = scratch.path();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let dead = child.id();
        child.wait().unwrap();
        let ended = left_by(dir, dead);
        let before = left_by(dir, std::process::id());
        let now = left_by(dir, std::process::id());
        let len = |path: &Path| fs::metadata(path).unwrap().len();
        let told = [&ended, &before, &now].map(|path| read(path).unwrap());
        pack_ended(dir, u64::MAX);
        assert!([&ended, &before, &now].iter().all(|path| len(path) > 1 << 20), "too little yet");
        pack_ended(dir, 1 << 20);
        assert_eq!((len(&ended), len(&before)), (4096, 4096));
        assert!(len(&now) > 1 << 20, "it still runs");
        assert_eq!([&ended, &before, &now].map(|path| read(path).unwrap()), told);
        assert_eq!(told[0].modelled[&1].rows[&1000].ticks, 7);
    }
}
