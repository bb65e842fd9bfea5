//! What is counted.

/// What the kernel is asked for, in its own terms (`perf_event_attr`'s type and config).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventCode {
    /// The kernel's `perf_type_id`, or the number of a PMU in sysfs.
    pub kind: u32,
    /// The event within that kind.
    pub config: u64,
    /// Further words that some PMUs need.
    pub config1: u64,
    /// Further words that some PMUs need.
    pub config2: u64,
}

impl EventCode {
    /// A code that needs one word only.
    pub const fn new(kind: u32, config: u64) -> EventCode {
        EventCode { kind, config, config1: 0, config2: 0 }
    }
}

/// Which privilege levels an event counts in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Mode {
    /// User and kernel.
    #[default]
    Both,
    /// User only (`:u`).
    User,
    /// Kernel only (`:k`).
    Kernel,
}

/// An event with the name that the user gave it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Event {
    /// The name as printed, without modifiers.
    pub name: String,
    /// What the kernel is asked for.
    pub code: EventCode,
    /// Where it counts.
    pub mode: Mode,
}
