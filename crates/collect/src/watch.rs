//! Maps, names, beginnings and ends of every process, as they happen.

use std::os::fd::RawFd;

use perf::{CpuEvent, Refusal, Ring, Scope, parse_record};
use vocab::{Cpu, EventId};

use crate::Merge;

/// Pages of each ring: two thousand maps or so between two looks.
const RING_PAGES: usize = 64;
/// These records belong to no event.
const NO_EVENT: EventId = EventId(u16::MAX);

/// One event without samples on every CPU.
#[derive(Debug)]
pub struct Watch {
    cpus: Vec<(CpuEvent, Ring)>,
    /// Records that could not be read.
    pub malformed: u64,
}

impl Watch {
    /// Hears of everything from now on. To be opened before /proc is scanned.
    pub fn open(cpus: &[Cpu]) -> Result<Watch, Refusal> {
        let mut opened = Vec::new();
        for &cpu in cpus {
            match CpuEvent::watch(cpu, Scope::Everyone) {
                Ok(event) => {
                    let ring = event.ring(RING_PAGES)?;
                    opened.push((event, ring));
                }
                Err(Refusal::NoSuchEvent) if !opened.is_empty() => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(Watch { cpus: opened, malformed: 0 })
    }

    /// For `poll`: readable when a ring is half full.
    pub fn raw_fds(&self) -> Vec<RawFd> {
        self.cpus.iter().map(|(event, _)| event.raw_fd()).collect()
    }

    /// Reads every ring once.
    pub fn read(&mut self, merge: &mut Merge) {
        let Watch { cpus, malformed } = self;
        for (_, ring) in cpus {
            let read = ring.drain(|bytes| match parse_record(bytes) {
                Some(record) => merge.push(NO_EVENT, record),
                None => *malformed += 1,
            });
            *malformed += u64::from(read.skipped_bytes > 0);
        }
    }
}
