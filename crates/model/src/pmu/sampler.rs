//! Interrupts of the modelled counters.
//!
//! A counter overflows at the retirement that brings it to its period. The interrupt comes `skid`
//! cycles later, and its sample is the instruction that retires next:
//!
//! ```text
//! cycle      100      101 .. 129           130
//! retires    load A   (stall on B)         B, C
//!            ^ overflow            ^ +skid  -> sample: B, though A caused it
//! ```
//!
//! Time-proportional sampling instead draws the owner of the cycle itself.

use std::collections::VecDeque;
use std::fmt;

use crate::cause::Cause;
use crate::core::{Life, Stalled, Watcher};
use crate::event::Event;
use crate::machine::{Class, Machine};
use crate::units::Level;
use crate::uop::Flow;

/// Whom a sample of time points at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Attribution {
    /// The instruction that retires next, as interrupts do.
    #[default]
    NextCommitting,
    /// Whoever owns the cycle: one of those that retire in it, the oldest during a stall, the
    /// mispredicted branch while the window is empty after it.
    TimeProportional,
}

/// One event sampled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sampling {
    /// What is counted.
    pub event: Event,
    /// The shortest and longest period; each is drawn evenly between them.
    pub period: (u64, u64),
    /// Whom a sample points at.
    pub attribution: Attribution,
}

/// An interrupt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Which of the samplings it belongs to.
    pub sampling: usize,
    /// The instruction it points at, as a place in the program.
    pub instruction: u32,
    /// Its address.
    pub pc: u64,
    /// The instruction that made the counter overflow.
    pub overflowed: u32,
    /// When the interrupt came.
    pub cycle: u64,
    /// Whether the instruction, a conditional branch, is about to be taken: the handler reads it
    /// off the flags that were saved. None for anything else.
    pub turns: Option<bool>,
}

/// An event that interrupts cannot be taken on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SamplerError(Event);

impl fmt::Display for SamplerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} belongs to no instruction and cannot be sampled", self.0.name())
    }
}

impl std::error::Error for SamplerError {}

/// A fixed source of periods.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(2).wrapping_add(1))
    }

    fn roll(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// One of the numbers from `low` to `high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.roll() % (high - low + 1)
    }
}

#[derive(Clone, Debug)]
struct Line {
    sampling: Sampling,
    value: u64,
    next: u64,
    /// Interrupt due at a cycle, and who caused it.
    due: Option<(u64, u32)>,
    /// The sample drawn so far for a due cycle, while others may retire in the same cycle.
    drawn: Option<(Sample, u64)>,
}

/// Takes samples from the lives of micro-ops.
#[derive(Clone, Debug)]
pub struct Sampler {
    lines: Vec<Line>,
    skid: u64,
    dice: Dice,
    last_commit: u64,
    /// The latest mispredicted branch, which owns the empty window after it.
    branch: Option<(u32, u64)>,
    /// Stalls whose last micro-op has not been told of yet.
    stalls: VecDeque<Stalled>,
    samples: Vec<Sample>,
    lost: u64,
}

impl Sampler {
    /// A sampler with a seed for its periods.
    pub fn new(
        machine: &Machine,
        samplings: &[Sampling],
        seed: u64,
    ) -> Result<Sampler, SamplerError> {
        if let Some(bad) = samplings.iter().find(|s| !can_sample(s.event)) {
            return Err(SamplerError(bad.event));
        }
        let lines = samplings.iter().map(|&sampling| Line {
            sampling,
            value: 0,
            next: 0,
            due: None,
            drawn: None,
        });
        let mut sampler = Sampler {
            lines: lines.collect(),
            skid: u64::from(machine.pmu.skid_cycles),
            dice: Dice::new(seed),
            last_commit: 0,
            branch: None,
            stalls: VecDeque::new(),
            samples: Vec::new(),
            lost: 0,
        };
        for k in 0..sampler.lines.len() {
            let period = sampler.period(k);
            sampler.lines[k].next = period;
        }
        Ok(sampler)
    }

    /// The samples so far.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Takes the samples out.
    pub fn take(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Overflows that came while an interrupt was still on its way.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    fn period(&mut self, k: usize) -> u64 {
        let (low, high) = self.lines[k].sampling.period;
        let low = low.max(1);
        self.dice.between(low, high.max(low))
    }

    fn advance(&mut self, k: usize, life: &Life) {
        let event = self.lines[k].sampling.event;
        let is_time = event == Event::Cycles;
        let step = if is_time { life.committed - self.last_commit } else { weight(event, life) };
        self.lines[k].value += step;
        while self.lines[k].value >= self.lines[k].next {
            let over = self.lines[k].value - self.lines[k].next;
            let at = if is_time { life.committed - over } else { life.committed };
            let period = self.period(k);
            self.lines[k].next += period;
            let skid = match self.lines[k].sampling.attribution {
                Attribution::NextCommitting => self.skid,
                Attribution::TimeProportional => 0,
            };
            if self.lines[k].due.is_some() {
                self.lost += 1;
            } else {
                self.lines[k].due = Some((at + skid, life.instruction));
            }
            self.deliver(k, life);
        }
    }

    /// Takes the sample if its moment has come.
    fn deliver(&mut self, k: usize, life: &Life) {
        let Some((due, overflowed)) = self.lines[k].due else { return };
        if life.committed < due {
            return;
        }
        self.lines[k].due = None;
        let is_proportional = self.lines[k].sampling.attribution == Attribution::TimeProportional;
        let mut sample = Sample {
            sampling: k,
            instruction: life.instruction,
            pc: life.pc,
            overflowed,
            cycle: due,
            turns: turns(life),
        };
        if is_proportional
            && life.committed > due
            && self.is_the_branchs(due, life)
            && let Some((branch, pc)) = self.branch
        {
            // The branch has gone its way already.
            (sample.instruction, sample.pc, sample.turns) = (branch, pc, None);
        }
        if is_proportional && life.committed == due {
            // Others may retire in the same cycle: each gets its chance as it comes by.
            self.lines[k].drawn = Some((sample, u64::from(life.is_last)));
        } else {
            self.samples.push(sample);
        }
    }

    /// Whether a cycle of the stall that a micro-op ended belongs to the mispredicted branch before
    /// it, by the rule of the account; a core that tells of no stalls is taken at the window's word.
    fn is_the_branchs(&self, due: u64, life: &Life) -> bool {
        match self.stalls.front().filter(|stall| stall.ended == life.committed) {
            Some(stall) => {
                let into = due.saturating_sub(stall.ended - stall.cycles - 1);
                stall.front == Cause::Mispredict && into <= stall.front_cycles
            }
            None => life.dispatched > due,
        }
    }

    /// Gives a later member of the same cycle its chance, or closes the draw.
    fn draw(&mut self, k: usize, life: &Life) {
        let Some((mut sample, count)) = self.lines[k].drawn else { return };
        if life.committed > sample.cycle {
            self.lines[k].drawn = None;
            self.samples.push(sample);
        } else if life.is_last {
            if self.dice.roll().is_multiple_of(count + 1) {
                (sample.instruction, sample.pc) = (life.instruction, life.pc);
                sample.turns = turns(life);
            }
            self.lines[k].drawn = Some((sample, count + 1));
        }
    }
}

impl Watcher for Sampler {
    fn lived(&mut self, life: &Life) {
        while self.stalls.front().is_some_and(|stall| stall.ended < life.committed) {
            self.stalls.pop_front();
        }
        let is_told = self.stalls.front().is_some_and(|stall| stall.ended == life.committed);
        if let Some((_, pc)) = self.branch
            && life.dispatched <= self.last_commit
            && pc != life.pc
            && !is_told
        {
            // The window is full again: the branch owns nothing any more.
            self.branch = None;
        }
        for k in 0..self.lines.len() {
            self.draw(k, life);
            self.deliver(k, life);
            self.advance(k, life);
        }
        self.last_commit = life.committed;
        if life.mispredicted {
            self.branch = Some((life.instruction, life.pc));
        }
    }

    fn stalled(&mut self, stall: &Stalled) {
        self.stalls.push_back(*stall);
    }
}

/// Which way a conditional branch goes.
fn turns(life: &Life) -> Option<bool> {
    (life.flow == Flow::Conditional && life.is_last).then_some(life.taken)
}

fn can_sample(event: Event) -> bool {
    use Event as E;
    matches!(
        event,
        E::Cycles
            | E::Instructions
            | E::Uops
            | E::Loads
            | E::Stores
            | E::Branches
            | E::TakenBranches
            | E::BranchMisses
            | E::L1iMisses
            | E::L2CodeMisses
            | E::L1dLoadMisses
            | E::L1dJoins
            | E::L2LoadMisses
            | E::Divides
            | E::Multiplies
            | E::Calls
            | E::Returns
    )
}

/// How much a micro-op adds to an event.
fn weight(event: Event, life: &Life) -> u64 {
    let counts = match event {
        Event::Instructions => life.is_last,
        Event::Uops => true,
        Event::Loads => life.class.is_load(),
        Event::Stores => life.class == Class::StoreAddress,
        Event::Branches => life.flow.is_branch(),
        Event::TakenBranches => life.taken,
        Event::BranchMisses => life.mispredicted,
        Event::L1iMisses => life.missed_l1i && life.is_last,
        Event::L2CodeMisses => life.missed_l2i && life.is_last,
        Event::L1dLoadMisses => life.class.is_load() && life.missed_l1d,
        Event::L1dJoins => life.class.is_load() && !life.missed_l1d && life.from > Level::L1,
        Event::L2LoadMisses => life.class.is_load() && life.missed_l2d,
        Event::Divides => matches!(life.class, Class::Div32 | Class::Div64),
        Event::Multiplies => life.class == Class::Mul,
        Event::Calls => matches!(life.flow, Flow::Call | Flow::IndirectCall),
        Event::Returns => life.flow == Flow::Return,
        _ => false,
    };
    u64::from(counts)
}
