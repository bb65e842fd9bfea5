//! How long a core runs unmeasured before its window.
//!
//! It begins with nothing on its way. Where lines come from memory all the time it takes some of their
//! latencies until as many of them wait for each other as in truth: on a wide core a copy that has its
//! lines in time ran past two of them before its windows, which were 8 to 15 % slow.
//!
//! ```text
//! lines on their way    __.-'-.__.---.___.--------------------------
//!                       |p p p|M M M| too soon       |M M M|
//! ```
//!
//! How long that takes follows from the windows before, not from what runs now: were a window to begin
//! when so many cycles had passed, it would begin after slow places more often than elsewhere.

use super::plan::Plan;
use crate::machine::Machine;

/// Latencies of memory after which what comes from there comes as in truth.
const SETTLED: f64 = 8.0;
/// Lines on their way at a time, on average, from which on that matters.
const STREAMING: f64 = 0.25;
/// Priming is never so many times as long as usual, or longer.
const TIMES_MAX: f64 = 6.0;
/// Windows that are looked back on: what was seen of one fades with those that follow.
const WINDOWS: f64 = 16.0;

/// What windows took of late, an instruction: cycles, and lines from memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settling {
    cycles: f64,
    lines: f64,
    weight: f64,
    memory_cycles: f64,
    /// Instructions that are primed where nothing else is known.
    usual: u64,
}

impl Settling {
    pub(super) fn new(plan: &Plan, machine: &Machine) -> Settling {
        Settling {
            cycles: 0.0,
            lines: 0.0,
            weight: 0.0,
            memory_cycles: f64::from(machine.memory.latency_cycles),
            usual: plan.prime_instructions,
        }
    }

    /// A window took so many cycles and lines from memory an instruction.
    pub(super) fn note(&mut self, cycles: f64, lines: f64) {
        let fading = 1.0 - 1.0 / WINDOWS;
        self.cycles = fading * self.cycles + cycles;
        self.lines = fading * self.lines + lines;
        self.weight = fading * self.weight + 1.0;
    }

    /// Instructions to prime before the next window.
    pub(super) fn prime_instructions(&self) -> u64 {
        if self.lines * self.memory_cycles <= STREAMING * self.cycles {
            return self.usual;
        }
        let usual = self.usual as f64;
        let settled = SETTLED * self.memory_cycles * self.weight / self.cycles;
        settled.clamp(usual, TIMES_MAX * usual) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a machine whose memory takes 400 cycles.
    fn settling() -> Settling {
        let machine = crate::testing::machine("zen4", &[("memory.latency_cycles", "400")]);
        Settling::new(&Plan { prime_instructions: 3_500, ..Plan::default() }, &machine)
    }

    #[test]
    fn a_stream_is_primed_for_eight_latencies() {
        let mut settling = settling();
        assert_eq!(settling.prime_instructions(), 3_500, "nothing is known yet");
        settling.note(0.4, 0.02);
        assert_eq!(settling.prime_instructions(), 8_000, "3200 cycles");
        (0..100).for_each(|_| settling.note(0.05, 0.01));
        assert_eq!(settling.prime_instructions(), 21_000, "there is an end");
        (0..100).for_each(|_| settling.note(4.0, 0.02));
        assert_eq!(settling.prime_instructions(), 3_500, "slow code takes longer than that");
    }

    #[test]
    fn what_hardly_waits_for_memory_is_primed_as_usual() {
        let mut settling = settling();
        (0..100).for_each(|_| settling.note(0.4, 0.0002));
        assert_eq!(settling.prime_instructions(), 3_500, "a line on its way a fifth of the time");
        settling.note(0.4, 0.02);
        assert!(settling.prime_instructions() > 7_000, "one window tells");
    }
}
