//! Records of the kernel's own kinds.

use perf::{ForkOrExit, Mapping};
use vocab::{BuildId, Count, Pc, Pid};

use crate::attr::{RecordedEvent, holds};
use crate::bytes::Cursor;
use crate::item::Body;
use crate::sample;

/// Numbers of record kinds: the kernel's below 64, perf's own from there.
pub(crate) mod kind {
    pub(crate) const MMAP: u32 = 1;
    pub(crate) const LOST: u32 = 2;
    pub(crate) const COMM: u32 = 3;
    pub(crate) const THROTTLE: u32 = 5;
    pub(crate) const FORK: u32 = 7;
    pub(crate) const SAMPLE: u32 = 9;
    pub(crate) const MMAP2: u32 = 10;
    pub(crate) const LOST_SAMPLES: u32 = 13;
    pub(crate) const FIRST_OF_PERF: u32 = 64;
    pub(crate) const ATTR: u32 = 64;
    pub(crate) const TRACING_DATA: u32 = 66;
    pub(crate) const BUILD_ID: u32 = 67;
    pub(crate) const FINISHED_ROUND: u32 = 68;
    pub(crate) const AUXTRACE: u32 = 71;
    pub(crate) const EVENT_UPDATE: u32 = 78;
    pub(crate) const FEATURE: u32 = 80;
    pub(crate) const COMPRESSED: u32 = 81;
    pub(crate) const COMPRESSED2: u32 = 83;
}

const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;
const MODE_KERNEL: u16 = 1;

/// What a record that is no sample says, and when; `None` if it is too short. `Some(None)` is a
/// record that nobody needs.
pub(crate) fn parse(
    event: Option<&RecordedEvent>,
    kind: u32,
    misc: u16,
    body: &[u8],
) -> Option<Option<(u64, Body)>> {
    let (body, time_ns) = split_trailer(event, body)?;
    let mut from = Cursor::new(body);
    let body = match kind {
        kind::MMAP | kind::MMAP2 => {
            let mapping = mapping(kind, misc, from)?;
            let in_kernel = misc & 7 == MODE_KERNEL;
            Body::Mapped { mapping, in_kernel }
        }
        kind::COMM => {
            let (pid, _tid) = (Pid(from.u32()?), from.u32()?);
            Body::Named { pid, exec: misc & MISC_COMM_EXEC != 0, name: from.text() }
        }
        kind::FORK => {
            let (pid, parent, tid) = (Pid(from.u32()?), Pid(from.u32()?), from.u32()?);
            Body::Forked(ForkOrExit { pid, parent, tid })
        }
        kind::LOST => {
            let _id = from.u64()?;
            Body::Lost(Count(from.u64()?))
        }
        kind::LOST_SAMPLES => Body::Lost(Count(from.u64()?)),
        kind::THROTTLE => Body::Throttled,
        _ => return Some(None),
    };
    Some(Some((time_ns, body)))
}

/// Since Linux 2.6.38 every record may end with who and when.
fn split_trailer<'a>(event: Option<&RecordedEvent>, body: &'a [u8]) -> Option<(&'a [u8], u64)> {
    let Some(event) = event.filter(|event| event.sample_id_all) else { return Some((body, 0)) };
    let has = |bit: u64| usize::from(event.sample_type & bit != 0) * 8;
    let bits =
        [holds::TID, holds::TIME, holds::ID, holds::STREAM_ID, holds::CPU, holds::IDENTIFIER];
    let length: usize = bits.into_iter().map(has).sum();
    let (body, trailer) = body.split_at_checked(body.len().checked_sub(length)?)?;
    if has(holds::TIME) == 0 {
        return Some((body, 0));
    }
    let time_ns = Cursor::new(trailer.get(has(holds::TID)..)?).u64()?;
    Some((body, time_ns))
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
    Some(Mapping { pid, start, length, file_offset, executable, path: from.text(), build_id })
}

/// Where the kernel's records differ from the mode of a sample, the lowest bits of `misc` agree.
pub(crate) fn sample_item(event: &RecordedEvent, misc: u16, body: &[u8]) -> Option<(u64, Body)> {
    let (time_ns, sample) = sample::parse(event, misc, body)?;
    Some((time_ns, Body::Sample(Box::new(sample))))
}
