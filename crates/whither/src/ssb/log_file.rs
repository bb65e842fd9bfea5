//! The counter log beside a watch: every record as it comes.

use std::io;
use std::path::{Path, PathBuf};

use counters::LogWriter;
use pmu::log::{Header, Record};

use crate::failure::{Failure, RUN_FAILED};

/// A log that is being written.
#[derive(Debug)]
pub(super) struct Log {
    writer: LogWriter,
    path: PathBuf,
    /// The anchor that slices are measured in.
    column: usize,
}

impl Log {
    /// Begins a new log; nothing runs yet.
    pub(super) fn create(path: &Path, header: Header) -> Result<Log, Failure> {
        let column = header.events.iter().position(|event| *event == header.boundary);
        let column = column.unwrap_or(0);
        let writer = LogWriter::create(path, header).map_err(|error| {
            Failure::new(RUN_FAILED, format!("cannot write {}: {error}", path.display()))
                .kept("the program was not started")
                .remedy("name another file with --log")
        })?;
        Ok(Log { writer, path: path.to_owned(), column })
    }

    pub(super) fn write(&mut self, record: &Record) -> Result<(), Failure> {
        let written: io::Result<()> = match record {
            Record::Header(_) => Ok(()),
            Record::Process { pid, parent, name } => self.writer.process(*pid, *parent, name),
            Record::End { pid, tid } => self.writer.end(*pid, *tid),
            Record::Slice(slice) => {
                let reading = std::slice::from_ref(&slice.reading);
                self.writer.slices(slice.pid, slice.tid, self.column, reading)
            }
        };
        written.map_err(|error| {
            Failure::new(RUN_FAILED, format!("cannot write {}: {error}", self.path.display()))
                .kept("what was logged before stands")
        })
    }
}
