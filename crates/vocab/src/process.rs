//! Whose samples they were, and when.

use crate::Pid;

/// A process as a profile remembers it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Process {
    /// The kernel's number. Numbers come round again: with the name it is what can be known.
    pub pid: Pid,
    /// The name it gave itself. Untrusted text.
    pub name: String,
}

/// The place of a [`Process`] in the profile that holds it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId(pub u32);

/// A stretch of an epoch's time: the n-th, each as long as the epoch says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slice(pub u32);

/// What counts can be kept apart by, beside image, offset and event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Owner {
    /// The process, where processes are kept apart.
    pub process: Option<ProcessId>,
    /// The time slice, where time is kept apart.
    pub slice: Option<Slice>,
}

impl Owner {
    /// Kept apart by nothing.
    pub const NOBODY: Owner = Owner { process: None, slice: None };
}
