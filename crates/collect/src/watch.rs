//! Maps, names, beginnings and ends of every process, as they happen.

use std::os::fd::RawFd;

use perf::{CpuEvent, Refusal, Ring, Scope};
use vocab::Cpu;

use crate::Processes;

/// Pages of each ring: two thousand maps or so between two looks.
const RING_PAGES: usize = 64;

/// One event without samples on every CPU.
#[derive(Debug)]
pub struct Watch {
    cpus: Vec<(Cpu, CpuEvent, Ring)>,
    /// Records that could not be read.
    pub malformed: u64,
}

impl Watch {
    /// Hears of everything from now on. To be opened before /proc is scanned.
    pub fn open(cpus: &[Cpu]) -> Result<Watch, Refusal> {
        let mut opened = Vec::new();
        for &cpu in cpus {
            match open(cpu) {
                Ok(one) => opened.push(one),
                Err(Refusal::NoSuchEvent) if !opened.is_empty() => {}
                Err(refusal) => return Err(refusal),
            }
        }
        Ok(Watch { cpus: opened, malformed: 0 })
    }

    /// Follows CPUs as they come and go; true if what there is to poll has changed. An event ends
    /// with its CPU: `returned` are those that came back since the last time. To be called right
    /// after [`Watch::read`], since what a ring that is let go still held is lost with it.
    pub fn follow_cpus(&mut self, online: &[Cpu], returned: &[Cpu]) -> bool {
        let before = self.cpus.len();
        self.cpus.retain(|(cpu, ..)| online.contains(cpu) && !returned.contains(cpu));
        let mut changed = self.cpus.len() != before;
        for &cpu in online {
            if self.cpus.iter().any(|(known, ..)| *known == cpu) {
                continue;
            }
            // One that cannot be opened is tried again the next time.
            if let Ok(one) = open(cpu) {
                self.cpus.push(one);
                changed = true;
            }
        }
        changed
    }

    /// For `poll`: readable when a ring is half full.
    pub fn raw_fds(&self) -> Vec<RawFd> {
        self.cpus.iter().map(|(_, event, _)| event.raw_fd()).collect()
    }

    /// Reads every ring once. The processes put it in order: [`Processes::end_round`].
    pub fn read(&mut self, processes: &mut Processes) {
        let Watch { cpus, malformed } = self;
        for (_, _, ring) in cpus {
            let read = ring.drain(|bytes| *malformed += u64::from(!processes.hear(bytes)));
            *malformed += u64::from(read.skipped_bytes > 0);
        }
    }
}

fn open(cpu: Cpu) -> Result<(Cpu, CpuEvent, Ring), Refusal> {
    let event = CpuEvent::watch(cpu, Scope::Everyone)?;
    let ring = event.ring(RING_PAGES)?;
    Ok((cpu, event, ring))
}
