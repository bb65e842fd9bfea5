//! `struct perf_event_attr`, as the kernel lays it out.

use vocab::{Event, Mode};

/// The kernel's structure at its eighth published size (136 bytes). Older kernels accept a larger
/// one as long as the bytes that they do not know are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period_or_freq: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup: u32,
    pub(crate) breakpoint_kind: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clock: i32,
    pub(crate) sample_regs_intr: u64,
    pub(crate) aux_watermark: u32,
    pub(crate) sample_max_stack: u16,
    pub(crate) reserved_2: u16,
    pub(crate) aux_sample_size: u32,
    pub(crate) reserved_3: u32,
    pub(crate) sig_data: u64,
    pub(crate) config3: u64,
}

const _: () = assert!(size_of::<Attr>() == 136);
const _: () = assert!(std::mem::offset_of!(Attr, flags) == 40);
const _: () = assert!(std::mem::offset_of!(Attr, config1) == 56);
const _: () = assert!(std::mem::offset_of!(Attr, clock) == 92);

/// Bits of `flags`, by their place in the kernel's bit field.
pub(crate) mod flag {
    pub(crate) const DISABLED: u64 = 1 << 0;
    pub(crate) const INHERIT: u64 = 1 << 1;
    pub(crate) const PINNED: u64 = 1 << 2;
    pub(crate) const EXCLUDE_USER: u64 = 1 << 4;
    pub(crate) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(crate) const EXCLUDE_HV: u64 = 1 << 6;
    pub(crate) const FREQ: u64 = 1 << 10;
    pub(crate) const ENABLE_ON_EXEC: u64 = 1 << 12;
    pub(crate) const TASK: u64 = 1 << 13;
    pub(crate) const WATERMARK: u64 = 1 << 14;
    pub(crate) const PRECISE_SHIFT: u32 = 15;
    pub(crate) const MMAP: u64 = 1 << 8;
    pub(crate) const COMM: u64 = 1 << 9;
    pub(crate) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(crate) const EXCLUDE_GUEST: u64 = 1 << 20;
    pub(crate) const MMAP2: u64 = 1 << 23;
    pub(crate) const COMM_EXEC: u64 = 1 << 24;
    pub(crate) const USE_CLOCKID: u64 = 1 << 25;
    pub(crate) const BUILD_ID: u64 = 1 << 34;
    pub(crate) const INHERIT_THREAD: u64 = 1 << 35;
}

/// Bits of `sample_type`.
pub(crate) mod sample {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const CPU: u64 = 1 << 7;
}

/// The kernel's `perf_type_id` of breakpoints.
pub(crate) const BREAKPOINT: u32 = 5;

/// Bits of `read_format`.
pub(crate) mod read {
    pub(crate) const TIME_ENABLED: u64 = 1 << 0;
    pub(crate) const TIME_RUNNING: u64 = 1 << 1;
    pub(crate) const ID: u64 = 1 << 2;
    pub(crate) const GROUP: u64 = 1 << 3;
}

impl Attr {
    /// What every request has in common.
    pub(crate) fn of(event: &Event) -> Attr {
        let mode = match event.mode {
            Mode::Both => 0,
            Mode::User => flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV,
            Mode::Kernel => flag::EXCLUDE_USER,
        };
        // The kernel keeps a breakpoint's kind in a word of its own; ours travels in `config`.
        let (config, breakpoint_kind) = match event.code.kind {
            BREAKPOINT => (0, event.code.config as u32),
            _ => (event.code.config, 0),
        };
        Attr {
            kind: event.code.kind,
            size: size_of::<Attr>() as u32,
            config,
            breakpoint_kind,
            config1: event.code.config1,
            config2: event.code.config2,
            flags: flag::DISABLED | mode,
            ..Attr::default()
        }
    }
}
