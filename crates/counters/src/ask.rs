//! What is to be counted, on whom, and how turns are taken.

use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use perf::{Inherit, Target, cpus_online, threads_of};
use vocab::{Cpu, Event};

use crate::CountError;

/// A measurement as it is asked for.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The events; those of one inner list stay together (braces).
    pub units: Vec<Vec<Event>>,
    /// Whom they are counted for.
    pub on: On,
    /// How turns are taken.
    pub slicing: Slicing,
    /// Only so many events at a time, whatever the machine could do. Events that do not compete by
    /// themselves (software, breakpoints) do then, so that multiplexing can be tried anywhere.
    pub counters: Option<u32>,
    /// Where the order of groups comes from.
    pub seed: u64,
    /// Whether groups whose events vary more get more turns.
    pub adapts: bool,
    /// What begins to be counted after the start of others: threads and processes.
    pub inherit: Inherit,
    /// What [`Slice::Occurrences`] counts.
    pub boundary: Option<Event>,
}

/// Whom events are counted for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum On {
    /// A held program, from its first instruction.
    Command(u32),
    /// A running process: its threads, and those to come.
    Process(u32),
    /// One thread.
    Thread(u32),
    /// The thread that asks.
    ThisThread,
    /// Everything on these CPUs; on all when none is named.
    Cpus(Vec<Cpu>),
    /// A control group, by its directory, on these CPUs; on all when none is named.
    Cgroup(PathBuf, Vec<Cpu>),
}

/// How turns are taken where not everything fits at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slicing {
    /// We switch groups ourselves.
    Own {
        /// How long a slice is.
        slice: Slice,
        /// Whether slices shorter than a hundred switches are made as asked. Their cost is then
        /// no longer small.
        however_short: bool,
    },
    /// The kernel rotates groups by its own tick, and is asked now and again how far it got.
    Kernel,
}

/// How long a slice is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slice {
    /// Of the target's own time.
    Nanoseconds(u64),
    /// In cycles; in nanoseconds of a 1 GHz clock where cycles cannot be counted.
    Cycles(u64),
    /// In retired instructions; they must be countable.
    Instructions(u64),
    /// In occurrences of [`Ask::boundary`]; it must be countable.
    Occurrences(u64),
}

/// MPX's slice.
pub const SLICE_NS: u64 = 10_000_000;

impl Ask {
    /// Every event by itself, on someone, with the default slices.
    pub fn new(events: Vec<Event>, on: On) -> Ask {
        Ask {
            units: events.into_iter().map(|event| vec![event]).collect(),
            on,
            slicing: Slicing::Own { slice: Slice::Nanoseconds(SLICE_NS), however_short: false },
            counters: None,
            seed: 1,
            adapts: false,
            inherit: Inherit::All,
            boundary: None,
        }
    }
}

impl On {
    /// The targets, in sets that are switched together: a CPU is switched by a thread of its own.
    pub(crate) fn targets(&self) -> Result<Vec<Vec<Target>>, CountError> {
        let online = cpus_online();
        let all = |cpus: &[Cpu]| match cpus.iter().find(|cpu| !online.contains(cpu)) {
            Some(&cpu) => Err(CountError::NoCpu(cpu)),
            None if cpus.is_empty() => Ok(online.clone()),
            None => Ok(cpus.to_vec()),
        };
        Ok(match self {
            On::Thread(tid) if !is_there(*tid) => return Err(CountError::NoThread(*tid)),
            On::Command(pid) | On::Thread(pid) => vec![vec![Target::Thread(*pid)]],
            On::ThisThread => vec![vec![Target::ThisThread]],
            On::Process(pid) => {
                let threads = threads_of(*pid);
                if threads.is_empty() {
                    return Err(CountError::Gone(*pid));
                }
                vec![threads.into_iter().map(Target::Thread).collect()]
            }
            On::Cpus(cpus) => all(cpus)?.into_iter().map(|cpu| vec![Target::Cpu(cpu)]).collect(),
            On::Cgroup(directory, cpus) => {
                let open = |cpu| {
                    Target::cgroup(directory, cpu)
                        .map(|target| vec![target])
                        .map_err(|error| CountError::Cgroup(directory.clone(), error.to_string()))
                };
                all(cpus)?.into_iter().map(open).collect::<Result<_, _>>()?
            }
        })
    }

    /// The process or thread that is to be counted, if it is another user's.
    pub(crate) fn stranger(&self) -> Option<u32> {
        let (On::Process(pid) | On::Thread(pid)) = self else { return None };
        let user = |path: String| std::fs::metadata(path).ok().map(|about| about.uid());
        (user(format!("/proc/{pid}"))? != user("/proc/self".into())?).then_some(*pid)
    }
}

/// Whether there is a process or thread of that number.
pub fn is_there(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}
