//! Periods drawn anew, and turns taken, from a thread on each CPU.
//!
//! A fixed period keeps step with whatever else is periodic, and then sees one part of it only. The
//! kernel cannot vary the period of a clock and neither can the program in the interrupt, but
//! changing it from outside is cheap on the event's own CPU.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use perf::{CpuEvent, Reading};
use vocab::{Cpu, EventId};

use super::Sampled;

/// An event of one CPU with its period.
#[derive(Debug)]
pub(super) struct Paced {
    pub(super) event: CpuEvent,
    pub(super) id: EventId,
    /// The mean period.
    nominal: u64,
    pub(super) in_turn: bool,
    pub(super) name: String,
    since: Mutex<Since>,
}

#[derive(Debug)]
struct Since {
    period: u64,
    count: u64,
    /// Samples that were due until the period last changed.
    due: f64,
}

/// What an event should have given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Expected {
    /// The event.
    pub event: EventId,
    /// Occurrences ÷ period, summed over every period that was in force.
    pub samples: f64,
    /// How long it was meant to count, in nanoseconds, summed over CPUs.
    pub enabled_ns: u64,
    /// How long it had a counter.
    pub running_ns: u64,
}

impl Paced {
    pub(super) fn new(event: CpuEvent, id: EventId, sampled: &Sampled) -> Paced {
        let (nominal, in_turn) = (sampled.period, sampled.in_turn);
        let since = Mutex::new(Since { period: nominal, count: 0, due: 0.0 });
        Paced { event, id, nominal, in_turn, name: sampled.event.name.clone(), since }
    }

    fn read(&self) -> Reading {
        let nothing = Reading { count: vocab::Count::ZERO, enabled_ns: 0, running_ns: 0 };
        self.event.read().unwrap_or(nothing)
    }

    /// Puts another period in force.
    fn set_period(&self, period: u64) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let count = self.read().count.0;
        since.due += count.saturating_sub(since.count) as f64 / since.period as f64;
        since.count = count;
        if self.event.set_period(period).is_ok() {
            since.period = period;
        }
    }

    pub(super) fn expected(&self) -> Expected {
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = self.read();
        let more = reading.count.0.saturating_sub(since.count) as f64 / since.period as f64;
        Expected {
            event: self.id,
            samples: since.due + more,
            enabled_ns: reading.enabled_ns,
            running_ns: reading.running_ns,
        }
    }
}

/// Sums over CPUs, one line an event.
pub(super) fn sum(lines: impl Iterator<Item = Expected>) -> Vec<Expected> {
    let mut sums: Vec<Expected> = Vec::new();
    for line in lines {
        match sums.iter_mut().find(|sum| sum.event == line.event) {
            Some(sum) => {
                sum.samples += line.samples;
                sum.enabled_ns += line.enabled_ns;
                sum.running_ns += line.running_ns;
            }
            None => sums.push(line),
        }
    }
    sums
}

/// The thread of one CPU; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct Pacer {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// A thread that only sleeps and makes system calls needs little.
const STACK_BYTES: usize = 64 * 1024;

impl Pacer {
    /// Starts it. Without one the periods stay as they are; nothing is lost but their randomness.
    pub(super) fn start(cpu: Cpu, events: Arc<Vec<Paced>>, seed: u64) -> Pacer {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name(format!("pace-{}", cpu.0))
            .stack_size(STACK_BYTES)
            .spawn(move || pace(cpu, &events, seed, &stopped));
        Pacer { stop: Some(stop), thread: thread.ok() }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn pace(cpu: Cpu, events: &[Paced], seed: u64, stopped: &Receiver<()>) {
    // Not permitted in some containers: then changing the period costs an interrupt elsewhere.
    let _ = perf::pin_thread(cpu);
    let mut draw = Draw::new(seed ^ u64::from(cpu.0) << 32);
    let in_turn: Vec<&Paced> = events.iter().filter(|paced| paced.in_turn).collect();
    let mut turn = 0;
    let (shortest_ms, longest_ms) = pauses(in_turn.len());
    loop {
        let pause = Duration::from_millis(draw.between(shortest_ms, longest_ms));
        match stopped.recv_timeout(pause) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
        for paced in events {
            let (low, high) = around(paced.nominal);
            paced.set_period(draw.between(low, high));
        }
        if in_turn.len() > 1 {
            if let Some(before) = in_turn.get(turn) {
                let _ = before.event.disable();
            }
            turn = (turn + 1) % in_turn.len();
            if let Some(next) = in_turn.get(turn) {
                let _ = next.event.enable();
            }
        }
    }
}

/// How long a period stays, at least and at most, in milliseconds. Waking up costs a hundred times
/// what changing a period does: ten times a minute is enough against whatever keeps step, and all
/// that a quiet daemon does. Turns are shorter, or programs that live for seconds would see one
/// event only.
fn pauses(in_turn: usize) -> (u64, u64) {
    if in_turn > 1 { (100, 1000) } else { (1000, 10_000) }
}

/// The paper drew from 60K to 64K: one part in 31 to either side.
fn around(nominal: u64) -> (u64, u64) {
    let side = nominal / 31;
    (nominal - side, nominal + side)
}

/// Numbers by chance: splitmix64.
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(seed: u64) -> Draw {
        Draw(seed)
    }

    /// Uniform, both ends included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        low + (z ^ z >> 31) % (high - low).saturating_add(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_stay_within_the_papers_spread_and_average_to_the_nominal() {
        let (low, high) = around(62_000);
        assert_eq!((low, high), (60_000, 64_000));
        let mut draw = Draw::new(1);
        let drawn: Vec<u64> = (0..20_000).map(|_| draw.between(low, high)).collect();
        assert!(drawn.iter().all(|period| (low..=high).contains(period)));
        let mean = drawn.iter().sum::<u64>() as f64 / drawn.len() as f64;
        // Standard deviation 1155, of the mean 8.2: five of those.
        assert!((mean - 62_000.0).abs() < 41.0, "{mean}");
        assert_eq!(around(1), (1, 1));
    }
}
