//! One interrupt, before anything is known about it.

use crate::Pc;

/// A CPU by the kernel's number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cpu(pub u32);

/// A process (the kernel's tgid).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pid(pub u32);

/// The place of an event in the list that the profile holds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventId(pub u16);

/// A sample as the interrupt delivers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RawSample {
    /// Where it was taken.
    pub cpu: Cpu,
    /// The process that ran.
    pub pid: Pid,
    /// The address that the interrupt found.
    pub pc: Pc,
    /// The event whose counter overflowed.
    pub event: EventId,
}

/// Why a sample has no image. Each reason is counted and printed apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Unplaced {
    /// No record ever named the process.
    UnknownProcess,
    /// The process is known, but nothing is mapped at the address.
    UnknownAddress,
    /// A kernel address, and the kernel does not say where its code lies.
    HiddenKernel,
}
