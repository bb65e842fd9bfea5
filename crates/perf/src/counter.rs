//! An event that is counted, not sampled.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use vocab::{Count, Event};

use crate::Refusal;
use crate::attr::{Attr, flag, read};
use crate::open::open;

/// An event counted for a program and everything that it starts.
#[derive(Debug)]
pub struct Counter {
    file: File,
}

/// What a counter held when it was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reading {
    /// The raw count.
    pub count: Count,
    /// How long the event was meant to count, in nanoseconds.
    pub enabled_ns: u64,
    /// How long it really had a counter. Zero means that it was never counted, not that nothing
    /// happened.
    pub running_ns: u64,
}

impl Counter {
    /// Counts from the next exec of the process on, its children included.
    pub fn on_exec(event: &Event, pid: u32) -> Result<Counter, Refusal> {
        let mut attr = Attr::of(event);
        attr.flags |= flag::INHERIT | flag::ENABLE_ON_EXEC;
        attr.read_format = read::TIME_ENABLED | read::TIME_RUNNING;
        let fd: OwnedFd = open(&attr, pid as i32, -1, -1)?;
        Ok(Counter { file: File::from(fd) })
    }

    /// The count so far; children are included once they have ended.
    pub fn read(&mut self) -> std::io::Result<Reading> {
        let mut words = [0_u8; 24];
        self.file.read_exact(&mut words)?;
        let word = |place: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&words[place * 8..place * 8 + 8]);
            u64::from_ne_bytes(bytes)
        };
        Ok(Reading { count: Count(word(0)), enabled_ns: word(1), running_ns: word(2) })
    }
}
