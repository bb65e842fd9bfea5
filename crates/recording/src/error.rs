//! What is wrong with a recording.

use std::fmt;

/// One sentence; whatever came before it has been handed out.
#[derive(Debug)]
pub enum RecordingError {
    /// It does not begin as perf.data does.
    NotARecording,
    /// Written by a machine with the other order of bytes.
    OtherByteOrder,
    /// The bytes could not be read.
    Io(std::io::Error),
    /// It ends in the middle.
    CutShort {
        /// What was being read.
        what: &'static str,
        /// Where, from the beginning of the file or pipe.
        at: u64,
    },
    /// A record that cannot be what it says it is.
    Record {
        /// What is wrong with it.
        what: String,
        /// Where, from the beginning of the file or pipe.
        at: u64,
    },
    /// The header or one of its tables makes no sense.
    Header(&'static str),
    /// Compressed records that do not unpack.
    Compressed(String),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::NotARecording => f.write_str("this is not a perf.data file"),
            RecordingError::OtherByteOrder => {
                f.write_str("it was recorded on a machine with the other byte order")
            }
            RecordingError::Io(error) => write!(f, "it cannot be read: {error}"),
            RecordingError::CutShort { what, at } => {
                write!(f, "it ends in the middle of {what} at byte {at}")
            }
            RecordingError::Record { what, at } => write!(f, "the record at byte {at} {what}"),
            RecordingError::Header(what) => write!(f, "its header makes no sense: {what}"),
            RecordingError::Compressed(what) => {
                write!(f, "its compressed records do not unpack: {what}")
            }
        }
    }
}

impl std::error::Error for RecordingError {}
