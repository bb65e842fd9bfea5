//! One sample, by the bits of its event's `sample_type`.

use perf::SampleMode;
use vocab::{LoadLevel, Pc, Pid};

use crate::attr::{RecordedEvent, holds};
use crate::bytes::Cursor;
use crate::item::{RawBranch, RawLoad, Sample};

const BRANCH_HW_INDEX: u64 = 1 << 17;
const BRANCH_COUNTERS: u64 = 1 << 19;
const READ_ENABLED: u64 = 1;
const READ_RUNNING: u64 = 2;
const READ_ID: u64 = 4;
const READ_GROUP: u64 = 8;
const READ_LOST: u64 = 16;
/// Frames of a chain that are no addresses say which mode the next ones ran in.
const CONTEXT_FIRST: u64 = -4095_i64 as u64;
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;

/// From the two lowest bits of a record's `misc`.
pub(crate) fn mode_of(misc: u16) -> SampleMode {
    match misc & 7 {
        1 => SampleMode::Kernel,
        2 => SampleMode::User,
        _ => SampleMode::Elsewhere,
    }
}

/// The sample and its time; `None` if it is shorter than its event says.
pub(crate) fn parse(event: &RecordedEvent, misc: u16, body: &[u8]) -> Option<(u64, Sample)> {
    let kinds = event.sample_type;
    let has = |bit: u64| kinds & bit != 0;
    let mut from = Cursor::new(body);
    let word = |from: &mut Cursor<'_>, bit: u64| {
        if has(bit) { from.u64().map(Some) } else { Some(None) }
    };
    word(&mut from, holds::IDENTIFIER)?;
    let pc = word(&mut from, holds::IP)?;
    let pid = word(&mut from, holds::TID)?.unwrap_or(0) as u32;
    let time_ns = word(&mut from, holds::TIME)?.unwrap_or(0);
    for bit in [holds::ADDR, holds::ID, holds::STREAM_ID, holds::CPU] {
        word(&mut from, bit)?;
    }
    let period = word(&mut from, holds::PERIOD)?;
    if has(holds::READ) {
        skip_read(&mut from, event.read_format)?;
    }
    let mode = mode_of(misc);
    let chain = if has(holds::CALLCHAIN) { chain(&mut from, mode)? } else { Vec::new() };
    if has(holds::RAW) {
        let size = usize::try_from(from.u32()?).ok()?;
        from.take(size)?;
    }
    let branches = if has(holds::BRANCH_STACK) {
        branches(&mut from, event.branch_sample_type)?
    } else {
        Vec::new()
    };
    let load = load(&mut from, event)?;
    let pc = Pc(pc.unwrap_or(0));
    Some((time_ns, Sample { mode, pid: Pid(pid), pc, chain, branches, load, period }))
}

fn skip_read(from: &mut Cursor<'_>, format: u64) -> Option<()> {
    let has = |bit: u64| u64::from(format & bit != 0);
    let times = has(READ_ENABLED) + has(READ_RUNNING);
    let each = 1 + has(READ_ID) + has(READ_LOST);
    if format & READ_GROUP == 0 {
        return from.skip_words(times + each);
    }
    let count = from.u64()?;
    from.skip_words(times.checked_add(count.checked_mul(each)?)?)
}

fn chain(from: &mut Cursor<'_>, mut mode: SampleMode) -> Option<Vec<(SampleMode, Pc)>> {
    let count = usize::try_from(from.u64()?).ok()?;
    let mut frames = Cursor::new(from.take(count.checked_mul(8)?)?);
    let mut chain = Vec::new();
    while let Some(frame) = frames.u64() {
        match frame {
            CONTEXT_KERNEL => mode = SampleMode::Kernel,
            CONTEXT_USER => mode = SampleMode::User,
            CONTEXT_FIRST.. => mode = SampleMode::Elsewhere,
            address => chain.push((mode, Pc(address))),
        }
    }
    Some(chain)
}

fn branches(from: &mut Cursor<'_>, kinds: u64) -> Option<Vec<RawBranch>> {
    let count = usize::try_from(from.u64()?).ok()?;
    if kinds & BRANCH_HW_INDEX != 0 {
        from.u64()?;
    }
    let mut entries = Cursor::new(from.take(count.checked_mul(24)?)?);
    let mut branches = Vec::new();
    while let (Some(source), Some(to), Some(flags)) = (entries.u64(), entries.u64(), entries.u64())
    {
        // mispredicted:1 predicted:1 in_tx:1 abort:1 cycles:16
        let cycles = (flags >> 4) as u16;
        branches.push(RawBranch {
            from: Pc(source),
            to: Pc(to),
            mispredicted: flags & 1 != 0,
            cycles: (cycles > 0).then_some(cycles),
        });
    }
    if kinds & BRANCH_COUNTERS != 0 {
        from.skip_words(count as u64)?;
    }
    Some(branches)
}

/// Weight and data source come after the user's registers and stack.
fn load(from: &mut Cursor<'_>, event: &RecordedEvent) -> Option<Option<RawLoad>> {
    let has = |bit: u64| event.sample_type & bit != 0;
    if !has(holds::DATA_SRC) {
        return Some(None);
    }
    if has(holds::REGS_USER) && from.u64()? != 0 {
        from.skip_words(u64::from(event.sample_regs_user.count_ones()))?;
    }
    if has(holds::STACK_USER) {
        let size = usize::try_from(from.u64()?).ok()?;
        from.take(size)?;
        if size > 0 {
            from.u64()?;
        }
    }
    let latency_cycles = match (has(holds::WEIGHT), has(holds::WEIGHT_STRUCT)) {
        (true, _) => Some(from.u64()?),
        // var1:32 is the latency; the two 16-bit parts belong to other questions.
        (false, true) => Some(from.u64()? & 0xffff_ffff),
        (false, false) => None,
    };
    let source = from.u64()?;
    Some(
        latency_cycles
            .filter(|_| is_load(source))
            .map(|latency_cycles| RawLoad { level: level(source), latency_cycles }),
    )
}

/// The lowest five bits: not available 1, load 2, store 4, prefetch 8, code 16.
fn is_load(source: u64) -> bool {
    source & 0b11 != 0
}

/// `mem_lvl_num` where the processor gives it, else the older bits of `mem_lvl`.
fn level(source: u64) -> LoadLevel {
    let remote = source >> 37 & 1 != 0;
    match source >> 33 & 0xf {
        1 => return LoadLevel::L1,
        2 => return LoadLevel::L2,
        3 if remote => return LoadLevel::RemoteCache,
        3 => return LoadLevel::L3,
        4 => return LoadLevel::L4,
        0xc => return LoadLevel::FillBuffer,
        0xd | 0xe | 9 if remote => return LoadLevel::RemoteMemory,
        0xd | 0xe | 9 => return LoadLevel::Memory,
        0xb if remote => return LoadLevel::RemoteCache,
        8 | 0xa => return LoadLevel::Uncached,
        _ => {}
    }
    let bits = source >> 5 & 0x3fff;
    let older = [
        (0x0008, LoadLevel::L1),
        (0x0010, LoadLevel::FillBuffer),
        (0x0020, LoadLevel::L2),
        (0x0040, LoadLevel::L3),
        (0x0080, LoadLevel::Memory),
        (0x0300, LoadLevel::RemoteMemory),
        (0x0c00, LoadLevel::RemoteCache),
        (0x3000, LoadLevel::Uncached),
    ];
    older.iter().find(|(bit, _)| bits & bit != 0).map_or(LoadLevel::Unknown, |&(_, level)| level)
}
