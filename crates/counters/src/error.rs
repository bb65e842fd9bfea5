//! Why nothing can be counted at all. What cannot be counted beside other things is in the
//! outcome, with its reason.

use std::fmt;
use std::io;
use std::path::PathBuf;

use perf::{GroupRefusal, Refusal};
use pmu::GroupError;
use vocab::Cpu;

/// Why a measurement cannot begin.
#[derive(Debug)]
pub enum CountError {
    /// No event was named.
    NoEvents,
    /// None of the events can be counted; the first, and why.
    NoneCounts(String, Refusal),
    /// No slot is free for any of the breakpoints; the first.
    NoSlot(String),
    /// The process is not there.
    Gone(u32),
    /// The thread is not there.
    NoThread(u32),
    /// The process is another user's, and the event may not be counted for it.
    NotOurs(u32, String),
    /// The CPU is not there, or offline.
    NoCpu(Cpu),
    /// The control group cannot be opened.
    Cgroup(PathBuf, String),
    /// Events that can never be counted together were asked for together, or an event needs what
    /// the machine does not have.
    Grouping(GroupError),
    /// The kernel would not take a group.
    Refused(GroupRefusal),
    /// Slices were asked for in an event that cannot be counted here; and why.
    NoBoundary(String, Option<Refusal>),
    /// A call on an open event failed.
    Kernel(io::Error),
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CountError::NoEvents => f.write_str("no event was named"),
            CountError::NoneCounts(name, why) if why.is_permission() => write!(
                f,
                "'{name}' may not be counted here: {why}; it needs CAP_PERFMON (a container must \
                 be given it) or a lower kernel.perf_event_paranoid"
            ),
            CountError::NoneCounts(name, why @ Refusal::NoSuchEvent) => {
                write!(f, "none of the events can be counted here: '{name}' is {why}")
            }
            CountError::NoneCounts(name, why) => {
                write!(f, "none of the events can be counted here: '{name}': {why}")
            }
            CountError::NoCpu(cpu) => write!(f, "there is no CPU {} online", cpu.0),
            CountError::NoSlot(name) => write!(
                f,
                "'{name}' cannot be counted: no breakpoint slot is free, because others hold \
                 them all; a CPU has few (four on x86)"
            ),
            CountError::Gone(pid) => write!(f, "there is no process {pid}"),
            CountError::NoThread(tid) => write!(f, "there is no thread {tid}"),
            CountError::NotOurs(pid, name) => write!(
                f,
                "'{name}' may not be counted for {pid}, which is another user's: that needs \
                 CAP_PERFMON (a container must be given it)"
            ),
            CountError::Cgroup(directory, why) => {
                write!(f, "the control group {} cannot be opened: {why}", directory.display())
            }
            CountError::Grouping(why) => why.fmt(f),
            CountError::Refused(why) => why.fmt(f),
            CountError::NoBoundary(event, Some(why)) => {
                write!(f, "slices cannot be measured in '{event}' here: it is {why}")
            }
            CountError::NoBoundary(event, None) => write!(
                f,
                "slices cannot be measured in '{event}' here: the counters have no room for it in \
                 every group"
            ),
            CountError::Kernel(why) => write!(f, "the kernel stopped answering: {why}"),
        }
    }
}

impl std::error::Error for CountError {}

impl From<io::Error> for CountError {
    fn from(error: io::Error) -> CountError {
        CountError::Kernel(error)
    }
}

impl From<GroupError> for CountError {
    fn from(error: GroupError) -> CountError {
        CountError::Grouping(error)
    }
}
