//! Samples of every process, aggregated before this process sees them.
//!
//! Three routes to the same entries:
//!
//! ```text
//! program   interrupt ─► handler in the kernel ─► table ───────────────────┐
//! ring      interrupt ─► record ─► ring ─► PlainTable in this process ─────┼─► Entry{pid,pc,event,count}
//! own       the same, for this user's own processes, user mode alone ──────┘
//! ```

mod chains;
mod pace;
mod presence;
mod program;
mod ring;

use std::fmt;
use std::os::fd::RawFd;

use perf::{NotLoaded, Record, Refusal};
use vocab::{Cpu, Event};

pub use chains::{Chain, ChainTable};
pub use pace::Expected;

use crate::table::{Drained, Entry, Geometry, Taking};
use program::ProgramRoute;
use ring::RingRoute;

/// An event and how often it is sampled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sampled {
    /// The event.
    pub event: Event,
    /// The mean number of occurrences between samples (nanoseconds for a clock). The real ones are
    /// drawn anew every few seconds.
    pub period: u64,
    /// Whether it shares its turn with the others that do.
    pub in_turn: bool,
}

/// Which way samples come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Counted in the kernel by a program of ours.
    Program,
    /// Through rings, counted here; needed for chains of callers.
    Ring {
        /// Whether to keep chains of callers.
        chains: bool,
    },
    /// Through rings, of these threads and whatever they start.
    Own {
        /// Whether to keep chains of callers.
        chains: bool,
    },
}

/// What is to be collected.
#[derive(Clone, Debug)]
pub struct Request {
    /// The events.
    pub events: Vec<Sampled>,
    /// The CPUs that are online.
    pub cpus: Vec<Cpu>,
    /// The sizes of the tables.
    pub geometry: Geometry,
    /// The way.
    pub route: Route,
    /// Whether places in the kernel are counted process by process. If not, most of what short
    /// processes do in the kernel falls on few entries.
    pub kernel_by_process: bool,
    /// The threads to follow, for [`Route::Own`].
    pub own_threads: Vec<u32>,
}

/// Why nothing can be collected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CollectError {
    /// An event could not be opened.
    Event(String, Refusal),
    /// The kernel would not take the table.
    Table(Refusal),
    /// The kernel would not take the program.
    Program(NotLoaded),
    /// More events than an entry can tell apart, or none.
    Events(usize),
    /// Pids of this kernel do not fit into an entry.
    WidePids(u64),
}

impl fmt::Display for CollectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CollectError::Event(name, refusal) => write!(f, "cannot sample {name}: {refusal}"),
            CollectError::Table(refusal) => {
                write!(f, "cannot share a sample table with the kernel: {refusal}")
            }
            CollectError::Program(failed) => failed.fmt(f),
            CollectError::Events(count) => {
                write!(
                    f,
                    "1 to {} events can be collected at a time, not {count}",
                    crate::table::EVENTS
                )
            }
            CollectError::WidePids(max) => {
                write!(f, "this kernel's process numbers go up to {max}, more than a sample holds")
            }
        }
    }
}

impl std::error::Error for CollectError {}

impl CollectError {
    /// Whether another route may still work.
    pub fn is_about_programs(&self) -> bool {
        matches!(self, CollectError::Table(_) | CollectError::Program(_))
    }
}

/// Something that collects.
#[derive(Debug)]
pub struct Collector {
    route: Routed,
}

#[derive(Debug)]
enum Routed {
    Program(ProgramRoute),
    Ring(Box<RingRoute>),
}

impl Collector {
    /// Opens everything; nothing is sampled until [`Collector::begin`].
    pub fn open(request: &Request) -> Result<Collector, CollectError> {
        let count = request.events.len();
        if count == 0 || count > usize::from(crate::table::EVENTS) {
            return Err(CollectError::Events(count));
        }
        let route = match request.route {
            Route::Program => Routed::Program(ProgramRoute::open(request)?),
            Route::Ring { chains } => {
                Routed::Ring(Box::new(RingRoute::open(request, chains, false)?))
            }
            Route::Own { chains } => {
                Routed::Ring(Box::new(RingRoute::open(request, chains, true)?))
            }
        };
        Ok(Collector { route })
    }

    /// Samples from now on. Periods are drawn anew again and again, and events take turns, from a
    /// thread on each CPU. Whoever is sampled should be known by now: a process that ended between
    /// the opening of the watch and the scan of /proc would be in neither.
    pub fn begin(&mut self, seed: u64) -> Result<(), CollectError> {
        match &mut self.route {
            Routed::Program(route) => route.begin(seed),
            Routed::Ring(route) => route.begin(seed),
        }
    }

    /// Whether `pid_max` (of /proc/sys/kernel) fits into an entry.
    pub fn check_pids(pid_max: u64) -> Result<(), CollectError> {
        if pid_max > 1 << crate::table::PID_BITS {
            return Err(CollectError::WidePids(pid_max));
        }
        Ok(())
    }

    /// Follows CPUs as they come and go: returns those that were opened anew, since they have come
    /// or come back. To be called now and then, with those that are online.
    pub fn follow_cpus(&mut self, online: &[Cpu]) -> Vec<Cpu> {
        match &mut self.route {
            Routed::Program(route) => route.follow_cpus(online),
            Routed::Ring(route) => route.follow_cpus(online),
        }
    }

    /// For `poll`: readable when something fills up.
    pub fn raw_fds(&self) -> Vec<RawFd> {
        match &self.route {
            Routed::Program(route) => route.raw_fds(),
            Routed::Ring(route) => route.raw_fds(),
        }
    }

    /// Takes in what waits in rings, handing on records that are no samples; says whether it is
    /// time to drain.
    pub fn attend(&mut self, other: impl FnMut(Record)) -> bool {
        match &mut self.route {
            Routed::Program(route) => route.was_woken(),
            Routed::Ring(route) => route.attend(other),
        }
    }

    /// Turns collection to fresh spills, or to fresh tables too, so that what was counted until now
    /// can be taken.
    pub fn flip(&mut self, taking: Taking) {
        if let Routed::Program(route) = &mut self.route {
            route.flip(taking);
        }
    }

    /// Hands out what the [`Collector::flip`] before, of the same kind, turned away from, one CPU
    /// after the other.
    pub fn drain(&mut self, taking: Taking, each: impl FnMut(Entry)) -> Drained {
        match &mut self.route {
            Routed::Program(route) => route.drain(taking, each),
            Routed::Ring(route) => route.drain(taking, each),
        }
    }

    /// Chains of callers since the last time, where they are kept.
    pub fn take_chains(&mut self) -> Option<ChainTable> {
        match &mut self.route {
            Routed::Program(_) => None,
            Routed::Ring(route) => route.take_chains(),
        }
    }

    /// Samples that were counted and not drained yet.
    pub fn waiting(&self) -> u64 {
        match &self.route {
            Routed::Program(route) => route.waiting(),
            Routed::Ring(route) => route.waiting(),
        }
    }

    /// Samples that the events should have given until now, by event.
    pub fn expected(&self) -> Vec<Expected> {
        match &self.route {
            Routed::Program(route) => route.expected(),
            Routed::Ring(route) => route.expected(),
        }
    }

    /// How many times the kernel said that it paused sampling; none where it cannot say.
    pub fn throttled(&self) -> Option<u64> {
        match &self.route {
            Routed::Program(_) => None,
            Routed::Ring(route) => Some(route.throttled()),
        }
    }

    /// Follows more threads, where only some are followed; returns how many were refused.
    pub fn follow(&mut self, threads: &[u32]) -> usize {
        match &mut self.route {
            Routed::Program(_) => 0,
            Routed::Ring(route) => route.follow(threads),
        }
    }

    /// Bytes in the kernel for each CPU.
    pub fn kernel_bytes_per_cpu(&self) -> u64 {
        match &self.route {
            Routed::Program(route) => route.kernel_bytes_per_cpu(),
            Routed::Ring(route) => route.kernel_bytes_per_cpu(),
        }
    }
}
