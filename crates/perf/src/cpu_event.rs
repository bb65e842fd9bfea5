//! An event on one CPU, for every process there or for one task: what a collector that is always
//! on samples with.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use vocab::{Count, Cpu, Event, EventCode, Mode};

use crate::attr::{Attr, flag, read, sample};
use crate::open::open;
use crate::{Program, Reading, Refusal, Ring};

const IOC_ENABLE: libc::c_ulong = 0x2400;
const IOC_DISABLE: libc::c_ulong = 0x2401;
const IOC_PERIOD: libc::c_ulong = 0x4008_2404;
const IOC_SET_OUTPUT: libc::c_ulong = 0x2405;
const IOC_SET_BPF: libc::c_ulong = 0x4004_2408;

/// Bit of `sample_type` for the chain of callers.
const SAMPLE_CALLCHAIN: u64 = 1 << 5;

/// Whose samples are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Everything that runs on the CPU.
    Everyone,
    /// One thread, and whatever it starts from now on.
    Task(u32),
}

/// What is to be opened.
#[derive(Clone, Debug)]
pub struct CpuEventRequest {
    /// The event.
    pub event: Event,
    /// A sample every so many occurrences (nanoseconds for a clock).
    pub period: u64,
    /// Whose.
    pub scope: Scope,
    /// Whether samples in a ring carry the chain of callers.
    pub chains: bool,
    /// Whether the ring also hears of maps, names, beginnings and ends.
    pub maps: bool,
}

/// The event; disabled until it is told otherwise.
#[derive(Debug)]
pub struct CpuEvent {
    file: File,
    /// What was granted: user mode only, where the kernel's part is not permitted.
    pub mode: Mode,
}

impl CpuEvent {
    /// Opens it, without the kernel's part where that is not permitted.
    pub fn open(request: &CpuEventRequest, cpu: Cpu) -> Result<CpuEvent, Refusal> {
        match open_in(request, cpu, request.event.mode) {
            Err(refusal) if refusal.is_permission() && request.event.mode == Mode::Both => {
                open_in(request, cpu, Mode::User)
            }
            other => other,
        }
    }

    /// Records of what is mapped, named, begun and ended on a CPU; no samples. On from the start.
    pub fn watch(cpu: Cpu, scope: Scope) -> Result<CpuEvent, Refusal> {
        const DUMMY: EventCode = EventCode::new(1, 9);
        let event = Event { name: "dummy".into(), code: DUMMY, mode: Mode::User };
        let mut refusal = Refusal::NotUnderstood;
        for build_ids in [flag::BUILD_ID, 0] {
            let mut attr = records(&event, scope);
            attr.flags &= !flag::DISABLED;
            attr.flags |= MAPS | build_ids;
            match open(&attr, task(scope), cpu.0 as i32, -1) {
                Ok(fd) => return Ok(CpuEvent { file: File::from(fd), mode: Mode::User }),
                Err(why) => refusal = why,
            }
        }
        Err(refusal)
    }

    /// Runs a program at every overflow.
    pub fn attach(&self, program: &Program) -> Result<(), Refusal> {
        self.control(IOC_SET_BPF, program.raw_fd() as libc::c_ulong)
    }

    /// Maps a ring for its records, smaller where little memory may be locked.
    pub fn ring(&self, pages: usize) -> Result<Ring, Refusal> {
        let fd = OwnedFd::from(self.file.try_clone().map_err(|_| Refusal::Exhausted)?);
        let mut pages = pages.next_power_of_two();
        loop {
            match Ring::map(&fd, pages) {
                Err(_) if pages > 1 => pages /= 2,
                other => return other,
            }
        }
    }

    /// Sends the records to another event's ring, on the same CPU.
    pub fn share_ring_of(&self, other: &CpuEvent) -> Result<(), Refusal> {
        self.control(IOC_SET_OUTPUT, other.raw_fd() as libc::c_ulong)
    }

    /// Counts and samples from now on.
    pub fn enable(&self) -> Result<(), Refusal> {
        self.control(IOC_ENABLE, 0)
    }

    /// Stops for now.
    pub fn disable(&self) -> Result<(), Refusal> {
        self.control(IOC_DISABLE, 0)
    }

    /// Another period, from now on; cheap on the event's own CPU.
    pub fn set_period(&self, period: u64) -> Result<(), Refusal> {
        self.control(IOC_PERIOD, std::ptr::from_ref(&period) as libc::c_ulong)
    }

    /// The count so far.
    pub fn read(&self) -> std::io::Result<Reading> {
        let mut words = [[0_u8; 8]; 3];
        (&self.file).read_exact(words.as_flattened_mut())?;
        let [count, enabled_ns, running_ns] = words.map(u64::from_ne_bytes);
        Ok(Reading { count: Count(count), enabled_ns, running_ns })
    }

    /// For `poll`: readable when its ring is half full.
    pub fn raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    fn control(&self, request: libc::c_ulong, argument: libc::c_ulong) -> Result<(), Refusal> {
        // SAFETY: a perf descriptor that we own; the argument is a number, a descriptor or the
        // address of a live word, as the request wants it.
        match unsafe { libc::ioctl(self.raw_fd(), request, argument) } {
            -1 => Err(Refusal::last()),
            _ => Ok(()),
        }
    }
}

fn open_in(request: &CpuEventRequest, cpu: Cpu, mode: Mode) -> Result<CpuEvent, Refusal> {
    let event = Event { mode, ..request.event.clone() };
    let mut attr = records(&event, request.scope);
    attr.sample_period_or_freq = request.period;
    attr.read_format = read::TIME_ENABLED | read::TIME_RUNNING;
    if request.chains {
        attr.sample_type |= SAMPLE_CALLCHAIN;
    }
    let (pid, cpu) = (task(request.scope), cpu.0 as i32);
    let fd = if request.maps {
        attr.flags |= MAPS | flag::BUILD_ID;
        open(&attr, pid, cpu, -1).or_else(|_| {
            attr.flags &= !flag::BUILD_ID;
            open(&attr, pid, cpu, -1)
        })?
    } else {
        open(&attr, pid, cpu, -1)?
    };
    Ok(CpuEvent { file: File::from(fd), mode })
}

/// Records of what is mapped, named, begun and ended.
const MAPS: u64 = flag::MMAP | flag::MMAP2 | flag::COMM | flag::COMM_EXEC | flag::TASK;

/// What samples and other records have in common here, so that one parser reads them all.
fn records(event: &Event, scope: Scope) -> Attr {
    let mut attr = Attr::of(event);
    attr.flags |= flag::SAMPLE_ID_ALL | flag::USE_CLOCKID | flag::WATERMARK | flag::EXCLUDE_GUEST;
    if scope != Scope::Everyone {
        attr.flags |= flag::INHERIT;
    }
    attr.clock = libc::CLOCK_MONOTONIC;
    attr.sample_type = sample::IP | sample::TID | sample::TIME | sample::CPU;
    attr.wakeup = WAKE_BYTES;
    attr
}

/// A ring wakes its reader at this fill: half of the smallest that is worth having.
const WAKE_BYTES: u32 = 32 * 1024;

fn task(scope: Scope) -> i32 {
    match scope {
        Scope::Everyone => -1,
        Scope::Task(tid) => tid as i32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_event_counts_no_further() {
        const PAGE_FAULTS: EventCode = EventCode::new(1, 2);
        let event = Event { name: "page-faults".into(), code: PAGE_FAULTS, mode: Mode::User };
        let scope = Scope::Task(0);
        let request =
            CpuEventRequest { event, period: u64::MAX >> 1, scope, chains: false, maps: false };
        // Whichever CPU this thread is on.
        let events: Vec<CpuEvent> =
            (0..64).map_while(|cpu| CpuEvent::open(&request, Cpu(cpu)).ok()).collect();
        if events.is_empty() {
            eprintln!("skipped: perf events are not permitted here");
            return;
        }
        let total = || events.iter().map(|e| e.read().unwrap().count.0).sum::<u64>();
        let touch = || drop(std::hint::black_box(vec![1_u8; 1 << 24]));
        touch();
        assert_eq!(total(), 0);
        events.iter().for_each(|event| event.enable().unwrap());
        touch();
        events.iter().for_each(|event| event.disable().unwrap());
        let stopped = total();
        assert!(stopped > 0);
        touch();
        assert_eq!(total(), stopped);
    }
}
