//! One record of a ring, from bytes.
//!
//! Written here rather than taken from a crate because our samplers ask for one fixed layout, and
//! because a record that lies about its length must end in `None`, not in a panic.
//!
//! ```text
//! header: type u32 | misc u16 | size u16
//! sample: ip u64 | pid u32 tid u32 | time u64 | cpu u32 reserved u32
//! others: body …                   | pid u32 tid u32 | time u64 | cpu u32 reserved u32   (trailer)
//! ```

use vocab::{BuildId, Count, Cpu, Pc, Pid};

/// Where the processor was when it was sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SampleMode {
    /// In the program.
    User,
    /// In the kernel.
    Kernel,
    /// In a guest or hypervisor: no map of ours applies.
    Elsewhere,
}

/// A stretch of an image that appeared in a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
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
    /// The kernel's name for it: a path, `[vdso]`, `//anon`. Untrusted.
    pub path: String,
    /// The image's build-id, where the kernel knows it.
    pub build_id: Option<BuildId>,
}

/// A thread that began or ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForkOrExit {
    /// Its process.
    pub pid: Pid,
    /// The process that made it.
    pub parent: Pid,
    /// The thread itself.
    pub tid: u32,
}

/// What a record says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RecordBody {
    /// The event happened here.
    Sample {
        /// Where the processor was.
        mode: SampleMode,
        /// The process.
        pid: Pid,
        /// The address.
        pc: Pc,
        /// The CPU.
        cpu: Cpu,
    },
    /// Code or data was mapped.
    Mapped(Mapping),
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
    /// A thread or process ended.
    Exited(ForkOrExit),
    /// So many records found no room.
    Lost(Count),
    /// The kernel paused sampling.
    Throttled,
    /// Something that nobody asked for.
    Ignored,
}

/// One record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// When, on the monotonic clock.
    pub time_ns: u64,
    /// What.
    pub body: RecordBody,
}

mod kind {
    pub(super) const MMAP: u32 = 1;
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const LOST_SAMPLES: u32 = 13;
}

const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;
const TRAILER: usize = 24;
const PROT_EXEC: u32 = 4;

/// A record from its bytes, header included; `None` if they are too short for what it says it is.
pub fn parse_record(bytes: &[u8]) -> Option<Record> {
    let mut header = Cursor { bytes };
    let (kind, misc, size) = (header.u32()?, header.u16()?, header.u16()?);
    let body = bytes.get(8..usize::from(size))?;
    if kind == kind::SAMPLE {
        return sample(Cursor { bytes: body }, misc);
    }
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(TRAILER)?)?;
    let time_ns = Cursor { bytes: trailer.get(8..)? }.u64()?;
    let body = parse_body(kind, misc, body)?;
    Some(Record { time_ns, body })
}

fn sample(mut from: Cursor<'_>, misc: u16) -> Option<Record> {
    let pc = Pc(from.u64()?);
    let (pid, _tid) = (Pid(from.u32()?), from.u32()?);
    let time_ns = from.u64()?;
    let cpu = Cpu(from.u32()?);
    let mode = match misc & 7 {
        1 => SampleMode::Kernel,
        2 => SampleMode::User,
        _ => SampleMode::Elsewhere,
    };
    Some(Record { time_ns, body: RecordBody::Sample { mode, pid, pc, cpu } })
}

/// What a record that is no sample says, from what is between its header and its trailer; files
/// hold the same records with other trailers.
pub fn parse_body(kind: u32, misc: u16, body: &[u8]) -> Option<RecordBody> {
    let mut from = Cursor { bytes: body };
    Some(match kind {
        kind::MMAP | kind::MMAP2 => RecordBody::Mapped(mapping(kind, misc, from)?),
        kind::COMM => {
            let (pid, _tid) = (Pid(from.u32()?), from.u32()?);
            RecordBody::Named { pid, exec: misc & MISC_COMM_EXEC != 0, name: from.text() }
        }
        kind::FORK => RecordBody::Forked(fork_or_exit(from)?),
        kind::EXIT => RecordBody::Exited(fork_or_exit(from)?),
        kind::LOST => {
            let _id = from.u64()?;
            RecordBody::Lost(Count(from.u64()?))
        }
        kind::LOST_SAMPLES => RecordBody::Lost(Count(from.u64()?)),
        kind::THROTTLE => RecordBody::Throttled,
        _ => RecordBody::Ignored,
    })
}

fn fork_or_exit(mut from: Cursor<'_>) -> Option<ForkOrExit> {
    let (pid, parent, tid) = (Pid(from.u32()?), Pid(from.u32()?), from.u32()?);
    Some(ForkOrExit { pid, parent, tid })
}

fn mapping(kind: u32, misc: u16, mut from: Cursor<'_>) -> Option<Mapping> {
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
    Some(Mapping { pid, start, length, file_offset, executable, path, build_id })
}

/// Bytes that are read from the front; running out is `None`.
struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(front)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_ne_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    /// Up to the first zero byte, or all of it.
    fn text(&mut self) -> String {
        let end = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(self.bytes.len());
        String::from_utf8_lossy(&self.bytes[..end]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((8 + body.len() as u16).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn mmap2() -> Vec<u8> {
        let mut body = words(&[7 | 8 << 32, 0x1000, 0x2000, 0x3000]);
        body.extend([20, 0, 0, 0]);
        body.extend([0xab; 20]);
        body.extend(words(&[5]));
        body.extend(b"/bin/x\0\0");
        body.extend(words(&[7 | 8 << 32, 99, 0]));
        record(kind::MMAP2, MISC_BUILD_ID | 2, &body)
    }

    #[test]
    fn a_sample_gives_its_pc_process_time_and_cpu() {
        let bytes = record(kind::SAMPLE, 2, &words(&[0x4010, 7 | 8 << 32, 99, 1]));
        let body =
            RecordBody::Sample { mode: SampleMode::User, pid: Pid(7), pc: Pc(0x4010), cpu: Cpu(1) };
        assert_eq!(parse_record(&bytes), Some(Record { time_ns: 99, body }));
    }

    #[test]
    fn a_mapping_carries_its_build_id_and_the_trailer_its_time() {
        let record = parse_record(&mmap2()).unwrap();
        assert_eq!(record.time_ns, 99);
        let RecordBody::Mapped(mapping) = record.body else { panic!("not a mapping") };
        assert_eq!((mapping.start, mapping.length), (Pc(0x1000), 0x2000));
        assert_eq!((mapping.file_offset, mapping.executable), (0x3000, true));
        assert_eq!(mapping.path, "/bin/x");
        assert_eq!(mapping.build_id.unwrap().as_bytes(), [0xab; 20]);
    }

    #[test]
    fn every_truncation_and_every_flipped_byte_is_survived() {
        let whole = mmap2();
        for end in 0..whole.len() {
            assert_eq!(parse_record(&whole[..end]), None, "cut at {end}");
        }
        for place in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[place] = value;
                let _ = parse_record(&bytes);
            }
        }
    }

    #[test]
    fn lost_records_are_counted() {
        let bytes = record(kind::LOST, 0, &words(&[1, 42, 0, 5, 0]));
        let body = RecordBody::Lost(Count(42));
        assert_eq!(parse_record(&bytes), Some(Record { time_ns: 5, body }));
    }
}
