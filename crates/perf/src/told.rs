//! What a record tells of processes, read where it lies.
//!
//! A machine that compiles sends thousands of these a second, each with a path that is known
//! already: nothing is copied out of the ring until somebody needs it.

use vocab::{BuildId, Count, Pc, Pid};

use crate::ForkOrExit;

/// What a record that is no sample says; texts are still in the ring, and untrusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told<'a> {
    /// Code or data was mapped.
    Mapped(MappedText<'a>),
    /// A process took a name; with `exec`, it became another program.
    Named {
        /// The process.
        pid: Pid,
        /// Whether it is a new program.
        exec: bool,
        /// The name.
        name: &'a [u8],
    },
    /// A thread or process began.
    Forked(ForkOrExit),
    /// A thread or process ended.
    Exited(ForkOrExit),
    /// So many records found no room.
    Lost(Count),
    /// The kernel paused sampling.
    Throttled,
    /// Something that nobody asked for.
    Ignored,
}

/// A [`crate::Mapping`] whose path was not copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MappedText<'a> {
    /// The process.
    pub pid: Pid,
    /// First address.
    pub start: Pc,
    /// How many bytes.
    pub length: u64,
    /// Where in the file they come from.
    pub file_offset: u64,
    /// Whether code may run there.
    pub executable: bool,
    /// The kernel's name for it.
    pub path: &'a [u8],
    /// The image's build-id, where the kernel knows it.
    pub build_id: Option<BuildId>,
}

pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const EXIT: u32 = 4;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
}

const MISC_COMM_EXEC: u16 = 1 << 13;
pub(crate) const MISC_BUILD_ID: u16 = 1 << 14;
const TRAILER: usize = 24;
const PROT_EXEC: u32 = 4;

/// A record that is no sample, from its bytes, header included: when, and what.
pub fn parse_told(bytes: &[u8]) -> Option<(u64, Told<'_>)> {
    let (kind, misc, body) = split(bytes)?;
    if kind == kind::SAMPLE {
        return Some((0, Told::Ignored));
    }
    told_of(kind, misc, body)
}

/// Kind, flags, and what follows the header.
pub(crate) fn split(bytes: &[u8]) -> Option<(u32, u16, &[u8])> {
    let mut header = Cursor { bytes };
    let (kind, misc, size) = (header.u32()?, header.u16()?, header.u16()?);
    Some((kind, misc, bytes.get(8..usize::from(size))?))
}

/// The trailer's time, and what comes before it.
pub(crate) fn told_of(kind: u32, misc: u16, body: &[u8]) -> Option<(u64, Told<'_>)> {
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER)?)?;
    let time_ns = Cursor { bytes: trailer.get(8..)? }.u64()?;
    Some((time_ns, tell(kind, misc, body)?))
}

/// What is between a header and a trailer.
pub(crate) fn tell(kind: u32, misc: u16, body: &[u8]) -> Option<Told<'_>> {
    let mut from = Cursor { bytes: body };
    Some(match kind {
        kind::MMAP | kind::MMAP2 => Told::Mapped(mapped(kind, misc, from)?),
        kind::COMM => {
            let (pid, _tid) = (Pid(from.u32()?), from.u32()?);
            Told::Named { pid, exec: misc & MISC_COMM_EXEC != 0, name: from.text() }
        }
        kind::FORK => Told::Forked(fork_or_exit(from)?),
        kind::EXIT => Told::Exited(fork_or_exit(from)?),
        kind::LOST => {
            let _id = from.u64()?;
            Told::Lost(Count(from.u64()?))
        }
        kind::LOST_SAMPLES => Told::Lost(Count(from.u64()?)),
        kind::THROTTLE => Told::Throttled,
        _ => Told::Ignored,
    })
}

fn fork_or_exit(mut from: Cursor<'_>) -> Option<ForkOrExit> {
    let (pid, parent, tid) = (Pid(from.u32()?), Pid(from.u32()?), from.u32()?);
    Some(ForkOrExit { pid, parent, tid })
}

fn mapped(kind: u32, misc: u16, mut from: Cursor<'_>) -> Option<MappedText<'_>> {
    let (pid, _tid) = (Pid(from.u32()?), from.u32()?);
    let (start, length, file_offset) = (Pc(from.u64()?), from.u64()?, from.u64()?);
    let mut build_id = None;
    let mut executable = true;
    if kind == kind::MMAP2 {
        let identity = from.take(24)?;
        if misc & MISC_BUILD_ID != 0 {
            let length = usize::from(*identity.first()?);
            build_id = BuildId::new(identity.get(4..4 + length)?);
        }
        executable = from.u32()? & PROT_EXEC != 0;
        let _flags = from.u32()?;
    }
    let path = from.text();
    Some(MappedText { pid, start, length, file_offset, executable, path, build_id })
}

/// Bytes that are read from the front; running out is `None`.
pub(crate) struct Cursor<'a> {
    pub(crate) bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(front)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_ne_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Up to the first zero byte, or all of it.
    fn text(&mut self) -> &'a [u8] {
        let end = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(self.bytes.len());
        self.bytes.get(..end).unwrap_or_default()
    }
}
