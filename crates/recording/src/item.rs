//! What a recording hands out.

use perf::{ForkOrExit, Mapping, SampleMode};
use vocab::{Count, LoadLevel, Pc, Pid};

/// One record, in the order in which it happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    /// When, on the recording's clock; 0 where it has none.
    pub time_ns: u64,
    /// The place of the event in [`crate::Outcome::events`].
    pub event: usize,
    /// What happened.
    pub body: Body,
}

/// What a record says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Body {
    /// The event happened here.
    Sample(Box<Sample>),
    /// Code or data was mapped; by the kernel itself where `in_kernel`.
    Mapped {
        /// Where and what.
        mapping: Mapping,
        /// Whether it is the kernel or a module, rather than a process.
        in_kernel: bool,
    },
    /// A process took a name; with `exec`, it became another program.
    Named {
        /// The process.
        pid: Pid,
        /// Whether it is a new program.
        exec: bool,
        /// The name. Untrusted.
        name: String,
    },
    /// A thread or process began.
    Forked(ForkOrExit),
    /// So many records found no room.
    Lost(Count),
    /// The kernel paused sampling.
    Throttled,
}

/// One sample with whatever it carried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Where the processor was.
    pub mode: SampleMode,
    /// The process.
    pub pid: Pid,
    /// The address.
    pub pc: Pc,
    /// The chain of calls, the innermost first, each with the mode that it ran in.
    pub chain: Vec<(SampleMode, Pc)>,
    /// The last branches taken, the newest first.
    pub branches: Vec<RawBranch>,
    /// What a sampled load met.
    pub load: Option<RawLoad>,
    /// How many of the event it stands for, where the recording says so of each.
    pub period: Option<u64>,
}

/// A branch as the processor recorded it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawBranch {
    /// The jump.
    pub from: Pc,
    /// Its target.
    pub to: Pc,
    /// Whether it was mispredicted.
    pub mispredicted: bool,
    /// Cycles since the one before it, where the processor counts them.
    pub cycles: Option<u16>,
}

/// A load as the processor recorded it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawLoad {
    /// Where the data was.
    pub level: LoadLevel,
    /// How long it took.
    pub latency_cycles: u64,
}
