//! Where a thread that switches does its work: beside its target.

use std::time::{Duration, Instant};

use perf::{Target, pin_to, running_on};
use vocab::Cpu;

/// How often a target is looked for; it seldom moves, and looking costs more than a switch.
const LOOKING: Duration = Duration::from_millis(20);

/// Where to be.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// On the CPU that is counted.
    Cpu { cpu: Cpu, is_there: bool },
    /// Where this thread runs.
    Beside { tid: u32, on: Option<Cpu>, looked: Option<Instant> },
    /// Anywhere: the target's own thread counts, or nothing is known.
    Anywhere,
}

impl Place {
    pub(crate) fn of(target: Option<&Target>) -> Place {
        match target {
            Some(Target::Thread(tid)) => Place::Beside { tid: *tid, on: None, looked: None },
            Some(Target::ThisThread) => {
                Place::Beside { tid: perf::this_thread(), on: None, looked: None }
            }
            Some(target) => match target.cpu() {
                Some(cpu) => Place::Cpu { cpu, is_there: false },
                None => Place::Anywhere,
            },
            None => Place::Anywhere,
        }
    }

    /// Moves the calling thread there if it is not. Failing is no loss: a switch works from
    /// everywhere, only at a higher price.
    pub(crate) fn go(&mut self) {
        match self {
            Place::Cpu { cpu, is_there } if !*is_there => {
                let _ = pin_to(*cpu);
                *is_there = true;
            }
            Place::Beside { tid, on, looked }
                if looked.is_none_or(|looked| looked.elapsed() >= LOOKING) =>
            {
                *looked = Some(Instant::now());
                if let Some(cpu) = running_on(*tid).filter(|cpu| *on != Some(*cpu)) {
                    let _ = pin_to(cpu);
                    *on = Some(cpu);
                }
            }
            _ => {}
        }
    }
}
