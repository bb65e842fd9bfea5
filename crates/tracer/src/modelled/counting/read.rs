//! What the processes of a counted run left.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use pmu::Reading;
use pmu::estimate::{Counted, totals};
use pmu::log::{Follower, Header, LogError, Record};

/// One process's log, read so far.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CountedProcess {
    /// What the log is about.
    pub header: Header,
    /// The process's number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// The slices of each thread, in order of time.
    pub threads: BTreeMap<u32, Vec<Reading>>,
    /// Threads that have ended.
    pub ended: Vec<u32>,
}

impl CountedProcess {
    /// Takes a record; the header comes first.
    pub fn add(&mut self, record: Record) {
        match record {
            Record::Header(header) => self.header = header,
            Record::Process { pid, name, .. } => (self.pid, self.name) = (pid, name),
            Record::Slice(slice) => self.threads.entry(slice.tid).or_default().push(slice.reading),
            Record::End { tid, .. } => self.ended.push(tid),
        }
    }

    /// From the bytes of a log. What stands before any damage is kept, and the damage said.
    pub fn parse(bytes: &[u8]) -> (CountedProcess, Option<LogError>) {
        let mut process = CountedProcess::default();
        let mut follower = Follower::new();
        follower.feed(bytes);
        loop {
            match follower.next_record() {
                Ok(Some(record)) => process.add(record),
                Ok(None) => return (process, None),
                Err(error) => return (process, Some(error)),
            }
        }
    }

    /// The totals of all threads, in the order of the header's events.
    pub fn totals(&self) -> Vec<Option<Counted>> {
        let readings: Vec<Reading> = self.threads.values().flatten().cloned().collect();
        totals(&self.header.grouping(), &readings)
    }
}

/// Every process's log in a directory, in order of the files' names.
///
/// # Errors
///
/// The directory or a file cannot be read.
pub fn read_logs(logs: &Path) -> io::Result<Vec<CountedProcess>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(logs)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "counters") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| Ok(CountedProcess::parse(&fs::read(path)?).0)).collect()
}
