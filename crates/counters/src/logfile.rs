//! The counter log as a file that grows, and a reader that follows it.
//!
//! Records are appended whole, in one write each time, so that another process may read along; the
//! bytes are `pmu::log`'s. docs/COUNTER-LOG.md describes them for other programs.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use pmu::log::{Follower, Header, LogError, Record, Slice, append, begin};
use pmu::{Grouping, Reading};

/// Writes a log.
#[derive(Debug)]
pub struct LogWriter {
    file: File,
    /// How far each thread has come, by what ends its slices.
    at: std::collections::BTreeMap<(u32, u32), u64>,
    bytes: Vec<u8>,
}

/// The header of a log over perf events, whose slices are measured in an anchor.
pub fn log_header(grouping: &Grouping, mode: &str, boundary: &str, slice: u64) -> Header {
    Header {
        source: "perf events".into(),
        machine: std::env::consts::ARCH.into(),
        mode: mode.into(),
        boundary: boundary.into(),
        slice,
        events: grouping.events.clone(),
        anchors: grouping.anchors,
        groups: grouping.groups.iter().map(|group| group.events.clone()).collect(),
    }
}

impl LogWriter {
    /// Begins a log, in place of whatever the file held.
    pub fn create(path: &Path, header: Header) -> io::Result<LogWriter> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.write_all(&begin(header))?;
        Ok(LogWriter { file, at: Default::default(), bytes: Vec::new() })
    }

    /// Names a process.
    pub fn process(&mut self, pid: u32, parent: u32, name: &str) -> io::Result<()> {
        self.put(&[Record::Process { pid, parent, name: name.into() }])
    }

    /// Appends slices of a thread; `column` is the anchor that they are measured in.
    pub fn slices(
        &mut self,
        pid: u32,
        tid: u32,
        column: usize,
        readings: &[Reading],
    ) -> io::Result<()> {
        let at = self.at.entry((pid, tid)).or_default();
        let mut records = Vec::with_capacity(readings.len());
        for reading in readings {
            *at = at.saturating_add(reading.counts.get(column).copied().unwrap_or(0));
            records.push(Record::Slice(Slice { pid, tid, at: *at, reading: reading.clone() }));
        }
        self.put(&records)
    }

    /// A thread has ended.
    pub fn end(&mut self, pid: u32, tid: u32) -> io::Result<()> {
        self.put(&[Record::End { pid, tid }])
    }

    fn put(&mut self, records: &[Record]) -> io::Result<()> {
        self.bytes.clear();
        records.iter().for_each(|record| append(&mut self.bytes, record));
        self.file.write_all(&self.bytes)
    }
}

/// Follows a log, from its beginning.
#[derive(Debug)]
pub struct LogReader {
    file: File,
    follower: Follower,
    read: u64,
}

/// Why a log cannot be followed further.
#[derive(Debug)]
pub enum LogReadError {
    /// The file cannot be read.
    File(io::Error),
    /// Its bytes make no sense from here on.
    Log(LogError),
}

impl std::fmt::Display for LogReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LogReadError::File(why) => write!(f, "the counter log cannot be read: {why}"),
            LogReadError::Log(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for LogReadError {}

impl LogReader {
    /// Opens a log, which may still be written.
    pub fn open(path: &Path) -> Result<LogReader, LogReadError> {
        let file = File::open(path).map_err(LogReadError::File)?;
        Ok(LogReader { file, follower: Follower::new(), read: 0 })
    }

    /// The next record; none while the writer has not come further.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogReadError> {
        if let Some(record) = self.follower.next_record().map_err(LogReadError::Log)? {
            return Ok(Some(record));
        }
        // What is pending may have been laid out and not filled when it was read: read it again.
        self.read = self.read.saturating_sub(self.follower.pending() as u64);
        self.follower.forget_pending();
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.read)).map_err(LogReadError::File)?;
        self.read += self.file.read_to_end(&mut bytes).map_err(LogReadError::File)? as u64;
        self.follower.feed(&bytes);
        self.follower.next_record().map_err(LogReadError::Log)
    }

    /// The next record, looking now and again until it comes or the time is up.
    pub fn wait(&mut self, at_most: Duration) -> Result<Option<Record>, LogReadError> {
        const LOOKING: Duration = Duration::from_millis(2);
        let until = std::time::Instant::now() + at_most;
        loop {
            match self.next_record()? {
                None if std::time::Instant::now() < until => std::thread::sleep(LOOKING),
                answer => return Ok(answer),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::Counters;

    fn file(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("whither-log-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_reader_follows_what_a_writer_appends() {
        let units = [vec!["a".to_owned()], vec!["b".to_owned()]];
        let grouping = pmu::group(&Counters::alike(2), &["time"], &units).unwrap();
        let header = log_header(&grouping, "user", "time", 1000);
        let path = file("follow");
        let mut writer = LogWriter::create(&path, header.clone()).unwrap();
        let mut reader = LogReader::open(&path).unwrap();
        assert_eq!(reader.next_record().unwrap(), Some(Record::Header(header)));
        assert_eq!(reader.next_record().unwrap(), None);
        let reading = |count| Reading { group: 0, round: 0, counts: vec![10, count] };
        writer.process(7, 1, "sh").unwrap();
        writer.slices(7, 7, 0, &[reading(3), reading(4)]).unwrap();
        let mut at = Vec::new();
        while let Some(record) = reader.next_record().unwrap() {
            if let Record::Slice(slice) = record {
                at.push((slice.at, slice.reading.counts[1]));
            }
        }
        assert_eq!(at, [(10, 3), (20, 4)]);
        writer.end(7, 7).unwrap();
        let end = reader.wait(Duration::from_secs(10)).unwrap();
        assert_eq!(end, Some(Record::End { pid: 7, tid: 7 }));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn half_a_record_waits_and_another_file_is_refused() {
        let path = file("half");
        let header =
            log_header(&pmu::group(&Counters::alike(1), &["time"], &[]).unwrap(), "", "", 1);
        let bytes = begin(header);
        std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        let mut reader = LogReader::open(&path).unwrap();
        assert_eq!(reader.next_record().unwrap(), None);
        std::fs::write(&path, &bytes).unwrap();
        assert!(matches!(reader.next_record().unwrap(), Some(Record::Header(_))));
        std::fs::write(&path, "something else").unwrap();
        let error = LogReader::open(&path).unwrap().next_record().unwrap_err();
        assert_eq!(error.to_string(), "this is not a counter log");
        std::fs::remove_file(&path).unwrap();
    }
}
