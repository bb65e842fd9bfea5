//! What a profiler would have seen, and what it cannot see.

use std::collections::HashMap;

use metrology::Draws;
use model::cause::Cause;
use model::core::{Life, Stalled, Watcher};
use model::event::Event;
use model::machine::Machine;
use model::pmu::{Attribution, DoubleSample, DoubleSampler, Doubling, Sampler, Sampling};
use model::uop::Flow;

use super::{Periods, Question};

/// What is sampled, for each seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line {
    /// Cycles, delivered late to the oldest instruction that has not retired.
    Cycles,
    /// Cycles, drawn from the owner of the cycle.
    Owned,
    /// Instructions, by the one that did it.
    Instructions,
    /// Misses of the instruction cache, by the instruction that was fetched.
    CodeMisses,
    /// Loads that missed, by the load.
    DataMisses,
    /// Mispredicts, by the branch.
    Mispredicts,
    /// Loads that waited for a line on its way, by the load.
    DataJoins,
    /// Cycles that found a conditional branch about to be taken.
    Taken,
    /// Cycles that found a conditional branch about to go straight on.
    Straight,
    /// Times that it retired between two interrupts.
    Passed,
    /// Pairs of interrupts between which it did.
    Pairs,
    /// Pairs between which it was the first to.
    Begun,
}

/// How many there are.
pub const LINES: usize = 12;
/// How many of them counters are programmed for.
const SAMPLED: usize = 7;
/// Cycles between the two interrupts of a double sample.
pub const GAP_CYCLES: u64 = 16;
/// Branches in a stack: as many as the last-branch records of current cores hold at least.
pub const STACK: usize = 16;

/// Whether a sample names who made the counter overflow, rather than who retires next.
const IS_PRECISE: [bool; SAMPLED] = [false, false, true, true, true, true, true];

/// The shortest and the longest period around a mean.
fn around(period: u64) -> (u64, u64) {
    let spread = (period / 16).max(1);
    (period - spread.min(period - 1), period + spread)
}

fn samplings(periods: &Periods) -> [Sampling; SAMPLED] {
    let sampling = |event: Event, period: u64, attribution: Attribution| Sampling {
        event,
        period: around(period),
        attribution,
    };
    let now = Attribution::TimeProportional;
    [
        sampling(Event::Cycles, periods.cycles, Attribution::NextCommitting),
        sampling(Event::Cycles, periods.cycles, now),
        sampling(Event::Instructions, periods.instructions, now),
        sampling(Event::L1iMisses, periods.events, now),
        sampling(Event::L1dLoadMisses, periods.events, now),
        sampling(Event::BranchMisses, periods.events, now),
        sampling(Event::L1dJoins, periods.events, now),
    ]
}

/// Stacks of taken branches, taken at every so many.
#[derive(Clone, Debug)]
struct Stacks {
    draws: Draws,
    period: u64,
    left: u64,
    seen: HashMap<(u32, u32), u64>,
}

/// Watches one thread.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    samplers: Vec<Sampler>,
    doubles: Vec<DoubleSampler>,
    /// Branches and jumps between double interrupts, by seed.
    passed: Vec<HashMap<(u32, u32), u64>>,
    /// Whether each instruction is a branch or jump within a procedure, as a rule.
    turns: Vec<bool>,
    /// Samples by instruction, seed and line.
    counts: Vec<u32>,
    causes: Vec<[u64; Cause::ALL.len()]>,
    stacks: Vec<Stacks>,
    ring: [(u32, u32); STACK],
    at: usize,
    /// A branch that was taken, until it is known where to.
    open: Option<u32>,
}

impl Watch {
    pub(super) fn new(machine: &Machine, question: &Question) -> Result<Watch, String> {
        let lines = samplings(&question.periods);
        let sampler =
            |&seed: &u64| Sampler::new(machine, &lines, seed).map_err(|error| error.to_string());
        let stack = |&seed: &u64| Stacks {
            draws: Draws::new(seed),
            period: question.periods.taken,
            left: 1 + seed % question.periods.taken,
            seen: HashMap::new(),
        };
        let doubling =
            Doubling { period_cycles: around(question.periods.cycles), gap_cycles: GAP_CYCLES };
        // Another seed, so that its interrupts are not those of the single samples.
        let double = |&seed: &u64| DoubleSampler::new(machine, doubling, !seed);
        Ok(Watch {
            doubles: question.seeds.iter().map(double).collect(),
            passed: vec![HashMap::new(); question.seeds.len()],
            turns: Vec::new(),
            samplers: question.seeds.iter().map(sampler).collect::<Result<_, _>>()?,
            counts: Vec::new(),
            causes: Vec::new(),
            stacks: question.seeds.iter().map(stack).collect(),
            ring: [(0, 0); STACK],
            at: 0,
            open: None,
        })
    }

    /// Adds up what the samplers hold.
    pub(super) fn gather(&mut self) {
        for seed in 0..self.samplers.len() {
            for sample in self.samplers[seed].take() {
                let is_precise = IS_PRECISE.get(sample.sampling).copied().unwrap_or(false);
                let who = if is_precise { sample.overflowed } else { sample.instruction };
                self.count(who, seed, sample.sampling);
                let is_time = sample.sampling == Line::Cycles as usize;
                if let Some(taken) = sample.turns.filter(|_| is_time) {
                    let line = if taken { Line::Taken } else { Line::Straight };
                    self.count(who, seed, line as usize);
                }
            }
            for sample in self.doubles[seed].take() {
                self.pass(seed, &sample);
            }
        }
    }

    fn count(&mut self, who: u32, seed: usize, line: usize) {
        let width = self.samplers.len() * LINES;
        let place = who as usize * width + seed * LINES + line;
        if self.counts.len() <= place {
            self.counts.resize((place + 1).next_multiple_of(width * 64), 0);
        }
        self.counts[place] += 1;
    }

    fn pass(&mut self, seed: usize, sample: &DoubleSample) {
        for (k, &who) in sample.passed.iter().enumerate() {
            self.count(who, seed, Line::Passed as usize);
            if !sample.passed[..k].contains(&who) {
                self.count(who, seed, Line::Pairs as usize);
            }
        }
        if !sample.passed.is_empty() {
            self.count(sample.first(), seed, Line::Begun as usize);
        }
        for way in sample.ways() {
            if self.turns.get(way.0 as usize).copied().unwrap_or(false) {
                *self.passed[seed].entry(way).or_default() += 1;
            }
        }
    }

    pub(super) fn samples(&self, instruction: usize) -> Vec<u32> {
        let width = self.samplers.len() * LINES;
        let held = self.counts.get(instruction * width..(instruction + 1) * width);
        held.map_or_else(|| vec![0; width], <[u32]>::to_vec)
    }

    pub(super) fn causes(&self, instruction: usize) -> Vec<(u8, u64)> {
        let held = self.causes.get(instruction);
        let sparse = held.into_iter().flatten().enumerate().filter(|(_, cycles)| **cycles > 0);
        sparse.map(|(cause, &cycles)| (cause as u8, cycles)).collect()
    }

    pub(super) fn stacks(&self) -> impl Iterator<Item = &HashMap<(u32, u32), u64>> {
        self.stacks.iter().map(|stacks| &stacks.seen)
    }

    pub(super) fn passed(&self) -> &[HashMap<(u32, u32), u64>] {
        &self.passed
    }

    fn branched(&mut self, from: u32, to: u32) {
        self.ring[self.at] = (from, to);
        self.at = (self.at + 1) % STACK;
        for stacks in &mut self.stacks {
            stacks.left -= 1;
            if stacks.left == 0 {
                let spread = stacks.period / 8;
                stacks.left = (stacks.period - spread / 2
                    + stacks.draws.below(spread as usize + 1) as u64)
                    .max(1);
                for &way in self.ring.iter().filter(|way| **way != (0, 0)) {
                    *stacks.seen.entry(way).or_default() += 1;
                }
            }
        }
    }
}

impl Watcher for Watch {
    fn lived(&mut self, life: &Life) {
        if let Some(from) = self.open.take() {
            self.branched(from, life.instruction);
        }
        for sampler in &mut self.samplers {
            sampler.lived(life);
        }
        for double in &mut self.doubles {
            double.lived(life);
        }
        if matches!(life.flow, Flow::Conditional | Flow::Jump | Flow::IndirectJump) {
            let place = life.instruction as usize;
            if self.turns.len() <= place {
                self.turns.resize((place + 1).next_multiple_of(256), false);
            }
            self.turns[place] = true;
        }
        if life.taken {
            self.open = Some(life.instruction);
        }
    }

    fn stalled(&mut self, stall: &Stalled) {
        for sampler in &mut self.samplers {
            sampler.stalled(stall);
        }
        let place = stall.instruction as usize;
        if self.causes.len() <= place {
            self.causes.resize((place + 1).next_multiple_of(256), [0; Cause::ALL.len()]);
        }
        self.causes[place][stall.front as usize] += stall.front_cycles;
        self.causes[place][stall.work as usize] += stall.cycles - stall.front_cycles;
    }
}
