//! Double samples: two interrupts close together, and what ran between them.
//!
//! ```text
//! cycle     100   101   102   103   104
//! retires   A B   -     C     D E   F
//!           ^ first           ^ second       gap 3: A B C passed, and D is next
//! ```
//!
//! What retires in a cycle is passed if the first interrupt came in that cycle or one of the
//! `gap − 1` before it. First interrupts are spread evenly over time, so every instruction, and
//! every way out of one, is passed `gap / period` times as often as it ran, however long anything
//! stalled. One interrupt alone finds an instruction in proportion to its time instead.
//!
//! The modelled second interrupt disturbs nothing. On a real core the first would have drained the
//! pipeline: there a pair tells an order and no time.

use super::sampler::Dice;
use crate::core::{Life, Watcher};
use crate::machine::Machine;

/// How double samples are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Doubling {
    /// The shortest and longest period between first interrupts, in cycles; each is drawn evenly
    /// between them. None is shorter than the gap.
    pub period_cycles: (u64, u64),
    /// Cycles from the first interrupt to the second.
    pub gap_cycles: u64,
}

/// Two interrupts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DoubleSample {
    /// When the first came.
    pub cycle: u64,
    /// What retired between them, in order, as places in the program.
    pub passed: Vec<u32>,
    /// The instruction that the second points at: the next to retire.
    pub second: u32,
}

impl DoubleSample {
    /// The instruction that the first points at: whatever retired next, if only behind the gap.
    pub fn first(&self) -> u32 {
        self.passed.first().copied().unwrap_or(self.second)
    }

    /// Every instruction that was passed, with the one that followed it.
    pub fn ways(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let onward = self.passed.iter().skip(1).chain(std::iter::once(&self.second));
        self.passed.iter().copied().zip(onward.copied())
    }
}

/// Takes double samples from the lives of micro-ops.
#[derive(Clone, Debug)]
pub struct DoubleSampler {
    doubling: Doubling,
    dice: Dice,
    skid: u64,
    /// When the counter overflows next.
    overflow: u64,
    passed: Vec<u32>,
    samples: Vec<DoubleSample>,
}

impl DoubleSampler {
    /// A sampler with a seed for its periods.
    pub fn new(machine: &Machine, doubling: Doubling, seed: u64) -> DoubleSampler {
        let mut sampler = DoubleSampler {
            doubling,
            dice: Dice::new(seed),
            skid: u64::from(machine.pmu.skid_cycles),
            overflow: 0,
            passed: Vec::new(),
            samples: Vec::new(),
        };
        sampler.wind();
        sampler
    }

    /// Takes the samples out.
    pub fn take(&mut self) -> Vec<DoubleSample> {
        std::mem::take(&mut self.samples)
    }

    /// Draws the next period.
    fn wind(&mut self) {
        let gap = self.doubling.gap_cycles.max(1);
        let (low, high) = self.doubling.period_cycles;
        let low = low.max(gap);
        self.overflow += self.dice.between(low, high.max(low));
    }
}

impl Watcher for DoubleSampler {
    fn lived(&mut self, life: &Life) {
        // An instruction retires with its last micro-op.
        if !life.is_last {
            return;
        }
        loop {
            let first = self.overflow + self.skid;
            if life.committed < first {
                return;
            }
            if life.committed < first + self.doubling.gap_cycles.max(1) {
                self.passed.push(life.instruction);
                return;
            }
            let passed = std::mem::take(&mut self.passed);
            self.samples.push(DoubleSample { cycle: first, passed, second: life.instruction });
            self.wind();
        }
    }
}
