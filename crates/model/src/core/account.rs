//! What was counted, in total and by static instruction, and how long each instruction took.
//!
//! Time is exact: every cycle belongs to someone. A cycle in which instructions commit is divided
//! among them; a cycle in which none does belongs to the oldest, or, while the window is empty
//! after a mispredicted branch, to that branch.

use crate::cause::Cause;
use crate::event::{self, Counts, Event};

/// Parts of a cycle, so that a cycle divides among any group of up to ten, exactly.
pub const TICKS: u64 = 2520;

/// What each of so many gets of a cycle; a division would be felt.
const SHARES: [u64; 11] = [
    0,
    TICKS,
    TICKS / 2,
    TICKS / 3,
    TICKS / 4,
    TICKS / 5,
    TICKS / 6,
    TICKS / 7,
    TICKS / 8,
    TICKS / 9,
    TICKS / 10,
];

/// The counts of a core.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// In total.
    pub totals: Counts,
    /// By static instruction, in ticks.
    time: Vec<u64>,
    /// How often a run of a block began at an instruction, less how often one had ended before it:
    /// its runs are the sum from the first instruction on.
    steps: Vec<i64>,
    /// Happenings by static instruction.
    happenings: Vec<[u64; event::HAPPENINGS]>,
}

impl Account {
    /// Makes room for static instructions.
    pub(crate) fn grow(&mut self, instructions: usize) {
        self.time.resize(instructions, 0);
        self.steps.resize(instructions + 1, 0);
        self.happenings.resize(instructions, [0; event::HAPPENINGS]);
    }

    /// So many instructions from the first of a block on ran once.
    #[inline]
    pub(crate) fn ran(&mut self, first: usize, count: usize) {
        self.steps[first] += 1;
        self.steps[first + count] -= 1;
    }

    #[inline]
    pub(crate) fn happened(&mut self, instruction: usize, event: Event) {
        self.totals[event] += 1;
        if let Some(place) = event.happening() {
            self.happenings[instruction][place] += 1;
        }
    }

    #[inline]
    pub(crate) fn took(&mut self, instruction: usize, ticks: u64) {
        self.time[instruction] += ticks;
    }

    /// Divides one cycle among those that commit in it.
    #[inline]
    pub(crate) fn share(&mut self, instructions: &[u32]) {
        let count = instructions.len() as u64;
        let Some(&first) = instructions.first() else { return };
        if count == 1 {
            self.time[first as usize] += TICKS;
            return;
        }
        let each = match SHARES.get(count as usize) {
            Some(&each) => each,
            None => TICKS / count,
        };
        for &instruction in instructions {
            self.time[instruction as usize] += each;
        }
        self.time[first as usize] += TICKS - each * count;
    }

    /// Counts a stall of which so many cycles are the front's and the rest the work's. A stall
    /// counter sees the front alone if it was there at all.
    #[inline]
    pub(crate) fn stalled(&mut self, cycles: u64, of_front: u64, front: Cause, work: Cause) {
        self.totals[Event::StallCycles] += cycles;
        self.totals[front.exact_event()] += of_front;
        self.totals[work.exact_event()] += cycles - of_front;
        let ends = if of_front > 0 { front } else { work };
        self.totals[ends.charged_event()] += cycles;
    }

    /// How many static instructions there is room for.
    pub fn instructions(&self) -> usize {
        self.time.len()
    }

    /// Exact time of a static instruction in cycles.
    pub fn cycles(&self, instruction: usize) -> f64 {
        self.ticks(instruction) as f64 / TICKS as f64
    }

    /// Exact time of a static instruction in ticks.
    pub fn ticks(&self, instruction: usize) -> u64 {
        self.time.get(instruction).copied().unwrap_or(0)
    }

    /// How often each static instruction ran.
    pub fn runs(&self) -> Vec<u64> {
        let sums = self.steps.iter().scan(0_i64, |sum, step| {
            *sum += step;
            Some(*sum as u64)
        });
        sums.take(self.time.len()).collect()
    }

    /// How often something happened to a static instruction.
    pub fn happenings(&self, instruction: usize, event: Event) -> Option<u64> {
        let place = event.happening()?;
        self.happenings.get(instruction).map(|row| row[place])
    }

    /// All ticks; `TICKS` times the cycles.
    pub fn ticks_total(&self) -> u64 {
        self.time.iter().sum()
    }
}
