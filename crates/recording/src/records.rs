//! Records of the kernel's own kinds.

use perf::RecordBody;

use crate::attr::{RecordedEvent, holds};
use crate::bytes::Cursor;
use crate::item::Body;
use crate::sample;

/// Numbers of the record kinds that are told apart here: the kernel's below 64, perf's own from
/// there.
pub(crate) mod kind {
    pub(crate) const SAMPLE: u32 = 9;
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
    let body = match perf::parse_body(kind, misc, body)? {
        RecordBody::Mapped(mapping) => Body::Mapped { mapping, in_kernel: misc & 7 == MODE_KERNEL },
        RecordBody::Named { pid, exec, name } => Body::Named { pid, exec, name },
        RecordBody::Forked(fork) => Body::Forked(fork),
        RecordBody::Lost(count) => Body::Lost(count),
        RecordBody::Throttled => Body::Throttled,
        RecordBody::Exited(_) | RecordBody::Ignored | RecordBody::Sample { .. } => {
            return Some(None);
        }
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

/// Where the kernel's records differ from the mode of a sample, the lowest bits of `misc` agree.
pub(crate) fn sample_item(event: &RecordedEvent, misc: u16, body: &[u8]) -> Option<(u64, Body)> {
    let (time_ns, sample) = sample::parse(event, misc, body)?;
    Some((time_ns, Body::Sample(Box::new(sample))))
}
