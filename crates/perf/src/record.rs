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

use crate::told::{Cursor, MappedText, Told, kind, split, tell, told_of};

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

/// A record from its bytes, header included; `None` if they are too short for what it says it is.
pub fn parse_record(bytes: &[u8]) -> Option<Record> {
    let (kind, misc, body) = split(bytes)?;
    if kind == kind::SAMPLE {
        return sample(Cursor { bytes: body }, misc);
    }
    let (time_ns, told) = told_of(kind, misc, body)?;
    Some(Record { time_ns, body: told.into() })
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
    tell(kind, misc, body).map(RecordBody::from)
}

impl From<Told<'_>> for RecordBody {
    fn from(told: Told<'_>) -> RecordBody {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match told {
            Told::Mapped(mapped) => RecordBody::Mapped(Mapping {
                pid: mapped.pid,
                start: mapped.start,
                length: mapped.length,
                file_offset: mapped.file_offset,
                executable: mapped.executable,
                path: text(mapped.path),
                build_id: mapped.build_id,
            }),
            Told::Named { pid, exec, name } => RecordBody::Named { pid, exec, name: text(name) },
            Told::Forked(fork) => RecordBody::Forked(fork),
            Told::Exited(exit) => RecordBody::Exited(exit),
            Told::Lost(count) => RecordBody::Lost(count),
            Told::Throttled => RecordBody::Throttled,
            Told::Ignored => RecordBody::Ignored,
        }
    }
}

impl Mapping {
    /// The same, its path borrowed.
    pub fn as_told(&self) -> MappedText<'_> {
        MappedText {
            pid: self.pid,
            start: self.start,
            length: self.length,
            file_offset: self.file_offset,
            executable: self.executable,
            path: self.path.as_bytes(),
            build_id: self.build_id,
        }
    }
}

impl RecordBody {
    /// The same, its texts borrowed; a sample tells nothing of processes.
    pub fn as_told(&self) -> Told<'_> {
        match self {
            RecordBody::Mapped(mapping) => Told::Mapped(mapping.as_told()),
            RecordBody::Named { pid, exec, name } => {
                Told::Named { pid: *pid, exec: *exec, name: name.as_bytes() }
            }
            RecordBody::Forked(fork) => Told::Forked(*fork),
            RecordBody::Exited(exit) => Told::Exited(*exit),
            RecordBody::Lost(count) => Told::Lost(*count),
            RecordBody::Throttled => Told::Throttled,
            RecordBody::Sample { .. } | RecordBody::Ignored => Told::Ignored,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::told::{MISC_BUILD_ID, parse_told};

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
            assert!(parse_told(&whole[..end]).is_none(), "cut at {end}");
        }
        for place in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[place] = value;
                let read = parse_record(&bytes);
                let Some((time_ns, told)) = parse_told(&bytes) else { continue };
                // Read in place or into values of its own, a record says the same.
                let body = RecordBody::from(told);
                assert_eq!(read, Some(Record { time_ns, body }));
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
