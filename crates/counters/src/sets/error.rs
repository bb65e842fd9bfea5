//! What can go wrong with a set. Misuse is an answer, never undefined.

use std::fmt;

use perf::{GroupRefusal, Refusal};
use pmu::{EventError, GroupError};

/// Why a call on an event set failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SetError {
    /// There is no such set (any more).
    NoSuchSet,
    /// The set belongs to another thread.
    NotYours,
    /// The set runs and would have to be stopped first.
    IsRunning,
    /// The set does not run.
    NotRunning,
    /// The set has no events.
    Empty,
    /// The event is in the set already.
    Twice(String),
    /// The name names no event.
    Unknown(EventError),
    /// The event cannot be counted here.
    Refused(String, Refusal),
    /// The events can never be counted.
    Grouping(GroupError),
    /// The kernel would not take a group.
    Kernel(GroupRefusal),
    /// A call on an open event failed, by its `errno`.
    Call(i32),
    /// The thread is ending.
    Ending,
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetError::NoSuchSet => f.write_str("there is no such event set"),
            SetError::NotYours => f.write_str("the event set belongs to another thread"),
            SetError::IsRunning => f.write_str("the event set is running; stop it first"),
            SetError::NotRunning => f.write_str("the event set is not running"),
            SetError::Empty => f.write_str("the event set has no events"),
            SetError::Twice(name) => write!(f, "'{name}' is in the event set already"),
            SetError::Unknown(why) => why.fmt(f),
            SetError::Refused(name, why) => write!(f, "'{name}' cannot be counted: {why}"),
            SetError::Grouping(why) => why.fmt(f),
            SetError::Kernel(why) => why.fmt(f),
            SetError::Call(errno) => std::io::Error::from_raw_os_error(*errno).fmt(f),
            SetError::Ending => f.write_str("the thread is ending"),
        }
    }
}

impl std::error::Error for SetError {}

impl From<std::io::Error> for SetError {
    fn from(error: std::io::Error) -> SetError {
        SetError::Call(error.raw_os_error().unwrap_or(0))
    }
}
