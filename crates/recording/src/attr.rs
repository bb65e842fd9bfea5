//! What was recorded: `struct perf_event_attr` of any age.

use vocab::{Event, EventCode, Mode};

use crate::bytes::Cursor;

/// Bits of `sample_type`.
pub(crate) mod holds {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const BRANCH_STACK: u64 = 1 << 11;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const WEIGHT: u64 = 1 << 14;
    pub(crate) const DATA_SRC: u64 = 1 << 15;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
    pub(crate) const WEIGHT_STRUCT: u64 = 1 << 24;
}

const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// The period is a rate.
const FREQUENCY: u64 = 1 << 10;
const SAMPLE_ID_ALL: u64 = 1 << 18;
/// The first published size of the structure; nothing is shorter.
const SMALLEST: usize = 64;

/// One recorded event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedEvent {
    /// Its name and code. The name is untrusted text.
    pub event: Event,
    /// How many of it lie between two samples, where that is fixed; nanoseconds of a clock.
    pub period: Option<u64>,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_id_all: bool,
    pub(crate) ids: Vec<u64>,
}

impl RecordedEvent {
    /// From the structure's bytes. Fields that an older perf did not know are zero.
    pub(crate) fn parse(bytes: &[u8]) -> Option<RecordedEvent> {
        if bytes.len() < SMALLEST {
            return None;
        }
        let word = |at: usize| bytes.get(at..).and_then(|rest| Cursor::new(rest).u64());
        let kind = Cursor::new(bytes).u32()?;
        let flags = word(40)?;
        let mode = match (flags & EXCLUDE_USER != 0, flags & EXCLUDE_KERNEL != 0) {
            (false, true) => Mode::User,
            (true, false) => Mode::Kernel,
            _ => Mode::Both,
        };
        let code = EventCode {
            kind,
            config: word(8)?,
            config1: word(56).unwrap_or(0),
            config2: word(64).unwrap_or(0),
        };
        Some(RecordedEvent {
            event: Event { name: plain_name(code), code, mode },
            period: period(code, word(16)?, flags & FREQUENCY != 0),
            sample_type: word(24)?,
            read_format: word(32)?,
            branch_sample_type: word(72).unwrap_or(0),
            sample_regs_user: word(80).unwrap_or(0),
            sample_id_all: flags & SAMPLE_ID_ALL != 0,
            ids: Vec::new(),
        })
    }

    /// An event of a live ring: what `perf::Sampler` asks the kernel for.
    pub(crate) fn live(event: Event, chains: bool) -> RecordedEvent {
        let chain = if chains { holds::CALLCHAIN } else { 0 };
        RecordedEvent {
            event,
            period: None,
            sample_type: holds::IP | holds::TID | holds::TIME | holds::CPU | chain,
            read_format: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_id_all: true,
            ids: Vec::new(),
        }
    }

    /// Takes perf's own name for it. The mode is a modifier and stands apart.
    pub(crate) fn rename(&mut self, name: &str) {
        let bare = match name.rsplit_once(':') {
            // perf's modifiers: precision, hypervisor, host, pinned and so on, beside the mode.
            Some((bare, modifiers)) if modifiers.chars().all(|c| "ukhGHpPSDeIW".contains(c)) => {
                bare
            }
            _ => name,
        };
        if !bare.is_empty() {
            self.event.name = bare.chars().take(200).collect();
        }
    }

    /// Where a sample holds its event's id, in bytes from the body's front.
    pub(crate) fn id_place(&self) -> Option<usize> {
        if self.sample_type & holds::IDENTIFIER != 0 {
            return Some(0);
        }
        let before = [holds::IP, holds::TID, holds::TIME, holds::ADDR];
        let words = before.iter().filter(|&&bit| self.sample_type & bit != 0).count();
        (self.sample_type & holds::ID != 0).then_some(words * 8)
    }
}

/// The kernel's clocks keep a rate by a fixed period; every other event's period follows its rate.
fn period(code: EventCode, told: u64, is_rate: bool) -> Option<u64> {
    let is_clock = code.kind == 1 && code.config <= 1;
    match (is_rate, is_clock) {
        (false, _) => Some(told),
        (true, true) => 1_000_000_000_u64.checked_div(told),
        (true, false) => None,
    }
    .filter(|&period| period > 0)
}

/// The kernel's names, for recordings that carry none.
fn plain_name(code: EventCode) -> String {
    const HARDWARE: [&str; 10] = [
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ];
    const SOFTWARE: [&str; 10] = [
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
    ];
    // The upper half of a hardware event's config names one of several core types.
    let place = (code.config & 0xffff_ffff) as usize;
    let known = match code.kind {
        0 => HARDWARE.get(place),
        1 => SOFTWARE.get(place),
        _ => None,
    };
    known.map_or_else(|| format!("{}:{:#x}", code.kind, code.config), |&name| name.into())
}
