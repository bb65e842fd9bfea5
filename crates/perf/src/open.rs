//! `perf_event_open`, and questions that are answered by trying.

use std::os::fd::{FromRawFd, OwnedFd};

use vocab::{Event, EventCode, Mode};

use crate::Refusal;
use crate::attr::{Attr, flag};

/// Closed on exec, so that the sampled program does not inherit our descriptors.
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

pub(crate) fn open(attr: &Attr, pid: i32, cpu: i32, group: i32) -> Result<OwnedFd, Refusal> {
    // SAFETY: the kernel reads `size` bytes from the pointer, and `Attr::of` set that to the size
    // of the structure.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attr),
            pid,
            cpu,
            group,
            FLAG_FD_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(Refusal::last());
    }
    // SAFETY: the call succeeded, so the descriptor is new and ours.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// Whether an event could be counted for this process, found out by opening it.
pub fn probe(event: &Event) -> Result<(), Refusal> {
    open(&Attr::of(event), 0, -1, -1).map(drop)
}

/// Whether an event could be counted for every process of a CPU.
pub fn probe_system_wide(event: &Event, cpu: u32) -> Result<(), Refusal> {
    open(&Attr::of(event), -1, cpu as i32, -1).map(drop)
}

/// What a hardware breakpoint waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BreakpointKind {
    /// The instruction at the address.
    Execute,
    /// A write to the address.
    Write,
}

impl BreakpointKind {
    fn bits(self) -> u32 {
        match self {
            BreakpointKind::Execute => 4,
            BreakpointKind::Write => 2,
        }
    }
}

/// Whether this process could set a hardware breakpoint on one of its own addresses.
pub fn probe_breakpoint(kind: BreakpointKind, address: u64) -> Result<(), Refusal> {
    const PERF_TYPE_BREAKPOINT: u32 = 5;
    let code = EventCode { kind: PERF_TYPE_BREAKPOINT, config: 0, config1: address, config2: 8 };
    let event = Event { name: "breakpoint".into(), code, mode: Mode::User };
    let mut attr = Attr::of(&event);
    attr.breakpoint_kind = kind.bits();
    attr.flags |= flag::EXCLUDE_GUEST;
    open(&attr, 0, -1, -1).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u32, config: u64) -> Event {
        Event { name: "t".into(), code: EventCode::new(kind, config), mode: Mode::User }
    }

    #[test]
    fn an_event_kind_that_no_kernel_has_is_not_there() {
        match probe(&event(0x7fff_fff0, 0)) {
            Err(Refusal::NoSuchEvent) => {}
            // Inside a sandbox without the call there is nothing to tell apart.
            Err(refusal) if refusal.is_permission() || refusal == Refusal::NoSuchCall => {}
            other => panic!("{other:?}"),
        }
    }
}
