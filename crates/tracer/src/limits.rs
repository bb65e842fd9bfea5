//! Limits that the process inherited (`ulimit`), and which of them leave an engine no room.

use std::fmt;

use crate::settings::Engine;

/// Such a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// The length of a file: a longer one would bring SIGXFSZ.
    FileSize,
    /// All that the process maps.
    AddressSpace,
    /// What it maps to write to, for itself.
    Data,
}

/// What an engine needs at least: the engine itself is a file that is written first, and ours reserves
/// room for code, which both kinds of memory count.
const FILE_BYTES_MIN: u64 = 64 << 20;
const MEMORY_BYTES_MIN: u64 = 2 << 30;

impl Limit {
    /// What it is now, in bytes.
    pub(crate) fn now(self) -> u64 {
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        let place = &raw mut limit;
        // SAFETY: `limit` is a valid place for the answer.
        let outcome = unsafe {
            match self {
                Limit::FileSize => libc::getrlimit(libc::RLIMIT_FSIZE, place),
                Limit::AddressSpace => libc::getrlimit(libc::RLIMIT_AS, place),
                Limit::Data => libc::getrlimit(libc::RLIMIT_DATA, place),
            }
        };
        if outcome == 0 { limit.rlim_cur } else { u64::MAX }
    }

    /// A limit below what an engine needs, if there is one.
    pub(crate) fn in_the_way_of(engine: &Engine) -> Option<Limit> {
        let memory = if *engine == Engine::Native { MEMORY_BYTES_MIN } else { 0 };
        [(Limit::FileSize, FILE_BYTES_MIN), (Limit::AddressSpace, memory), (Limit::Data, memory)]
            .into_iter()
            .find(|(limit, least)| limit.now() < *least)
            .map(|(limit, _)| limit)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, option) = match self {
            Limit::FileSize => ("the length of files", 'f'),
            Limit::AddressSpace => ("address space", 'v'),
            Limit::Data => ("data", 'd'),
        };
        write!(
            f,
            "the limit on {what} leaves the tracer no room; raise it for this command (ulimit -{option})"
        )
    }
}
