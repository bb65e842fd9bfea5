//! `perf_event_open`, and questions that are answered by trying.

use std::os::fd::{FromRawFd, OwnedFd};

use vocab::Event;

use crate::Refusal;
use crate::attr::Attr;

/// Closed on exec, so that the sampled program does not inherit our descriptors.
const FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;

/// The number for the process is a descriptor of a control group.
pub(crate) const FLAG_PID_CGROUP: libc::c_ulong = 1 << 2;

pub(crate) fn open(attr: &Attr, pid: i32, cpu: i32, group: i32) -> Result<OwnedFd, Refusal> {
    open_with(attr, pid, cpu, group, 0)
}

pub(crate) fn open_with(
    attr: &Attr,
    pid: i32,
    cpu: i32,
    group: i32,
    flags: libc::c_ulong,
) -> Result<OwnedFd, Refusal> {
    // SAFETY: the kernel reads `size` bytes from the pointer, and `Attr::of` set that to the size
    // of the structure.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attr),
            pid,
            cpu,
            group,
            FLAG_FD_CLOEXEC | flags,
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

#[cfg(test)]
mod tests {
    use vocab::{EventCode, Mode};

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
