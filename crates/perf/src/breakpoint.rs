//! Hardware breakpoints as events: what the debug registers catch is counted exactly.
//!
//! They are the oracle of the counters' tests: four slots a CPU, no skid, no multiplexing by the
//! kernel, and there even where a virtual machine has no PMU.

use vocab::{Event, EventCode, Mode};

use crate::Refusal;
use crate::attr::{Attr, BREAKPOINT, flag};
use crate::open::open;

/// What a hardware breakpoint waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BreakpointKind {
    /// The instruction at the address.
    Execute,
    /// A write to the address.
    Write,
}

impl BreakpointKind {
    fn bits(self) -> u64 {
        match self {
            BreakpointKind::Execute => 4,
            BreakpointKind::Write => 2,
        }
    }

    /// Arm's instructions are four bytes; x86 wants the size of a word for execution.
    fn length(self) -> u64 {
        match self {
            BreakpointKind::Execute if cfg!(target_arch = "aarch64") => 4,
            BreakpointKind::Execute => size_of::<usize>() as u64,
            BreakpointKind::Write => 8,
        }
    }
}

/// A breakpoint on an address of the counted program, as an event like any other. User mode only:
/// the address is the program's.
pub fn breakpoint(kind: BreakpointKind, address: u64) -> Event {
    let code = EventCode {
        kind: BREAKPOINT,
        config: kind.bits(),
        config1: address,
        config2: kind.length(),
    };
    let letter = if kind == BreakpointKind::Execute { 'x' } else { 'w' };
    Event { name: format!("mem:{address:#x}:{letter}"), code, mode: Mode::User }
}

/// Whether this process could set a hardware breakpoint on one of its own addresses.
pub fn probe_breakpoint(kind: BreakpointKind, address: u64) -> Result<(), Refusal> {
    let mut attr = Attr::of(&breakpoint(kind, address));
    attr.flags |= flag::EXCLUDE_GUEST;
    open(&attr, 0, -1, -1).map(drop)
}
