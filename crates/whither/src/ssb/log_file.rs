//! The counter log as a file: written as slices come, and followed while it grows.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use pmu::log::{Follower, Header, Record, append, begin};

use crate::failure::{ERROR, Failure, RUN_FAILED};

/// A log that is being written.
#[derive(Debug)]
pub(super) struct LogWriter {
    file: File,
    path: PathBuf,
}

impl LogWriter {
    /// Begins a new log.
    pub(super) fn create(path: &Path, header: Header) -> Result<LogWriter, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::new(RUN_FAILED, format!("cannot write {}: {error}", path.display()))
                .kept("the program was not started")
                .remedy("name another file with --log")
        };
        let mut file = File::create(path).map_err(cannot)?;
        file.write_all(&begin(header)).map_err(cannot)?;
        Ok(LogWriter { file, path: path.to_owned() })
    }

    /// Appends a record in one call, so that a follower rarely meets half of one.
    pub(super) fn write(&mut self, record: &Record) -> Result<(), Failure> {
        if matches!(record, Record::Header(_)) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        append(&mut bytes, record);
        self.file.write_all(&bytes).map_err(|error| {
            Failure::new(RUN_FAILED, format!("cannot write {}: {error}", self.path.display()))
                .kept("what was logged before stands")
        })
    }
}

/// A log that is read, perhaps while it grows.
#[derive(Debug)]
pub(super) struct LogReader {
    file: File,
    path: PathBuf,
    follower: Follower,
}

impl LogReader {
    pub(super) fn open(path: &Path) -> Result<LogReader, Failure> {
        let file = File::open(path).map_err(|error| {
            Failure::new(ERROR, format!("cannot read {}: {error}", path.display()))
        })?;
        Ok(LogReader { file, path: path.to_owned(), follower: Follower::new() })
    }

    /// What has been written since.
    pub(super) fn more(&mut self) -> Result<Vec<Record>, Failure> {
        let failed = |what: String| Failure::new(ERROR, format!("{}: {what}", self.path.display()));
        // Half a record, or room that a writer laid out, is read again: it may be whole by now.
        self.follower.forget_pending();
        let mut bytes = Vec::new();
        self.file
            .seek(SeekFrom::Start(self.follower.offset()))
            .and_then(|_| self.file.read_to_end(&mut bytes))
            .map_err(|error| failed(error.to_string()))?;
        self.follower.feed(&bytes);
        let mut records = Vec::new();
        loop {
            match self.follower.next_record() {
                Ok(Some(record)) => records.push(record),
                Ok(None) => return Ok(records),
                Err(error) if records.is_empty() => return Err(failed(error.to_string())),
                // What came before stands; the next look meets the fault again.
                Err(_) => return Ok(records),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::Reading;
    use pmu::log::Slice;

    #[test]
    fn what_one_writes_another_reads_while_it_grows() {
        let path = std::env::temp_dir().join(format!("whither-log-{}", std::process::id()));
        let header = Header { events: vec!["cycles".into()], anchors: 1, ..Header::default() };
        let mut writer = LogWriter::create(&path, header.clone()).unwrap();
        let mut reader = LogReader::open(&path).unwrap();
        assert_eq!(reader.more().unwrap(), [Record::Header(header)]);
        assert_eq!(reader.more().unwrap(), []);
        for k in 0..3 {
            let reading = Reading { group: 0, round: k, counts: vec![k] };
            let record = Record::Slice(Slice { pid: 1, tid: 2, at: k, reading });
            writer.write(&record).unwrap();
            assert_eq!(reader.more().unwrap(), [record]);
        }
        // Half a record is waited for.
        let mut bytes = Vec::new();
        append(&mut bytes, &Record::End { pid: 1, tid: 2 });
        let (half, rest) = bytes.split_at(6);
        writer.file.write_all(half).unwrap();
        assert_eq!(reader.more().unwrap(), []);
        writer.file.write_all(rest).unwrap();
        assert_eq!(reader.more().unwrap(), [Record::End { pid: 1, tid: 2 }]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_no_log_is_refused_in_a_sentence() {
        let mut reader = LogReader::open(Path::new("/etc/passwd")).unwrap();
        assert!(reader.more().unwrap_err().sentence().contains("not a counter log"));
        assert!(LogReader::open(Path::new("/no/such/log")).is_err());
    }
}
