//! One entry: sixteen bytes.

use vocab::{EventId, Pc, Pid};

/// A count by process, address and event.
///
/// ```text
/// pc u64 | pid 24 bits, event 8 bits, count 32 bits
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entry {
    /// The address.
    pub pc: Pc,
    /// The process.
    pub pid: Pid,
    /// The event.
    pub event: EventId,
    /// How many samples.
    pub count: u32,
}

/// Bits of a pid. The kernel never gives out more than 22 (`PID_MAX_LIMIT`).
pub(crate) const PID_BITS: u32 = 24;
/// Stands for whichever process was in the kernel. The kernel's places are the same in all of them,
/// so that entries need not differ by process; the idle task (0) stays itself.
pub(crate) const ANY_PID: Pid = Pid((1 << PID_BITS) - 1);
/// Events that fit.
pub(crate) const EVENTS: u16 = 1 << 8;
pub(super) const COUNT_SHIFT: u32 = 32;

impl Entry {
    /// From the two words; a count of zero is an empty place.
    pub fn unpack(pc: u64, rest: u64) -> Option<Entry> {
        let count = (rest >> COUNT_SHIFT) as u32;
        (count > 0).then_some(Entry {
            pc: Pc(pc),
            pid: Pid(rest as u32 & ((1 << PID_BITS) - 1)),
            event: EventId((rest >> PID_BITS) as u16 & (EVENTS - 1)),
            count,
        })
    }

    /// The process under which an address is counted where the kernel's are not kept apart.
    pub(crate) fn counted_under(pid: Pid, pc: Pc) -> Pid {
        if (pc.0 as i64) < 0 && pid != Pid(0) { ANY_PID } else { pid }
    }

    /// The second word without the count.
    pub fn key(pid: Pid, event: EventId) -> u32 {
        pid.0 | u32::from(event.0) << PID_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_pid_and_event_fit_beside_each_other() {
        let (pid, event) = (Pid((1 << 22) - 1), EventId(255));
        let rest = u64::from(Entry::key(pid, event)) | 7 << COUNT_SHIFT;
        let entry = Entry::unpack(0x1234, rest).unwrap();
        assert_eq!((entry.pid, entry.event, entry.count, entry.pc), (pid, event, 7, Pc(0x1234)));
        assert_eq!(Entry::unpack(0x1234, rest & 0xffff_ffff), None);
    }
}
