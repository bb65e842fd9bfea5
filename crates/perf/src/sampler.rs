//! One event sampled on one CPU for a program and everything that it starts.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use vocab::{Cpu, Event, Mode};

use crate::attr::{Attr, flag, sample};
use crate::open::open;
use crate::{Refusal, Ring};

/// How often to sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    /// So many samples a second of run time; the kernel adjusts the period.
    Hertz(u64),
    /// A sample every so many occurrences.
    Period(u64),
}

/// How close to the event the sampled pc is, as the kernel grants it: 0 may skid, 3 may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Precision(pub u8);

/// What is to be sampled.
#[derive(Clone, Debug)]
pub struct SamplerRequest {
    /// The event.
    pub event: Event,
    /// How often.
    pub rate: Rate,
    /// Whether to ask for a precise pc; only hardware events have one.
    pub precise: bool,
    /// Pages of the ring that hold data: a power of two.
    pub ring_pages: usize,
}

/// What a sampler does beside sampling one program from its exec on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SamplerExtras {
    /// Carry the chain of calls, by frame pointers.
    pub chains: bool,
    /// Begin at once rather than at the next exec.
    pub at_once: bool,
}

/// A sampler with its ring. Sampling begins at the program's exec, unless it was asked otherwise.
#[derive(Debug)]
pub struct Sampler {
    fd: OwnedFd,
    /// Where the records arrive.
    pub ring: Ring,
    /// What the kernel granted.
    pub precision: Precision,
    /// Whether the kernel was let into the sample.
    pub mode: Mode,
}

impl Sampler {
    /// Opens the event, asking for less where the kernel is older or stricter than hoped:
    /// first less precision, then maps without build-ids, then user mode only.
    pub fn open(request: &SamplerRequest, pid: u32, cpu: Cpu) -> Result<Sampler, Refusal> {
        Sampler::open_with(request, SamplerExtras::default(), Some(pid), cpu)
    }

    /// The same with extras, of one process or of whatever runs on the CPU.
    pub fn open_with(
        request: &SamplerRequest,
        extras: SamplerExtras,
        pid: Option<u32>,
        cpu: Cpu,
    ) -> Result<Sampler, Refusal> {
        let pid = pid.map_or(-1, |pid| pid as i32);
        let mut refusal = Refusal::NotUnderstood;
        let modes = match request.event.mode {
            Mode::Both => &[Mode::Both, Mode::User][..],
            Mode::User => &[Mode::User],
            Mode::Kernel => &[Mode::Kernel],
        };
        let precisions = if request.precise { 0..=3_u8 } else { 0..=0 };
        for &mode in modes {
            for build_ids in [true, false] {
                for precision in precisions.clone().rev() {
                    let mut attr = attr(request, mode, Precision(precision), build_ids);
                    if extras.chains {
                        attr.sample_type |= sample::CALLCHAIN;
                    }
                    if extras.at_once {
                        attr.flags &= !(flag::ENABLE_ON_EXEC | flag::DISABLED);
                    }
                    match open(&attr, pid, cpu.0 as i32, -1) {
                        Ok(fd) => return Sampler::map(fd, request, mode, Precision(precision)),
                        Err(why) => refusal = why,
                    }
                }
            }
            // Less of the kernel is the answer to a lack of permission, not to anything else.
            if !refusal.is_permission() {
                break;
            }
        }
        Err(refusal)
    }

    fn map(
        fd: OwnedFd,
        request: &SamplerRequest,
        mode: Mode,
        precision: Precision,
    ) -> Result<Sampler, Refusal> {
        // Unprivileged users may lock little memory: halve the ring until it fits.
        let mut pages = request.ring_pages.next_power_of_two();
        let ring = loop {
            match Ring::map(&fd, pages) {
                Ok(ring) => break ring,
                Err(_) if pages > 1 => pages /= 2,
                Err(refusal) => return Err(refusal),
            }
        };
        Ok(Sampler { fd, ring, precision, mode })
    }

    /// For `poll`: readable when the ring is half full.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn attr(request: &SamplerRequest, mode: Mode, precision: Precision, build_ids: bool) -> Attr {
    let mut attr = Attr::of(&Event { mode, ..request.event.clone() });
    attr.flags |= flag::INHERIT
        | flag::ENABLE_ON_EXEC
        | flag::MMAP
        | flag::MMAP2
        | flag::COMM
        | flag::COMM_EXEC
        | flag::TASK
        | flag::SAMPLE_ID_ALL
        | flag::USE_CLOCKID
        | flag::WATERMARK
        | flag::EXCLUDE_GUEST
        | u64::from(precision.0) << flag::PRECISE_SHIFT;
    if build_ids {
        attr.flags |= flag::BUILD_ID;
    }
    attr.clock = libc::CLOCK_MONOTONIC;
    attr.sample_type = sample::IP | sample::TID | sample::TIME | sample::CPU;
    attr.sample_period_or_freq = match request.rate {
        Rate::Hertz(hertz) => {
            attr.flags |= flag::FREQ;
            hertz
        }
        Rate::Period(period) => period,
    };
    attr.wakeup = (request.ring_pages * Ring::page_size() / 2) as u32;
    attr
}
