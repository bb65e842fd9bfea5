//! Timing a little of a program to know all of it, and how well.
//!
//! The first stretch is timed whole, so that short programs are known exactly. The rest is cut into
//! strata. In each, one window at a random place is timed; before it the core
//! runs a little unmeasured, and the rest of the stratum only warms the units. As long as the
//! estimate is good enough, strata grow:
//!
//! ```text
//! |CCCC|......pM......|...pM.........|..........pM.......|  C all timed  . warmed  p primed  M measured
//! ```

mod plan;
mod sums;
#[cfg(test)]
mod tests;

pub use plan::Plan;

use metrology::{Coverage, Estimate};

use crate::core::{Account, Accounting, Settings};
use crate::event::{Counts, Event};
use crate::fast::FastCore;
use crate::machine::Machine;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::warm::Warmer;
use sums::Sums;

/// A measured window.
#[derive(Clone, Debug)]
pub struct Window {
    /// Instructions that it stands for.
    pub stands_for: u64,
    /// What was counted in it.
    pub counts: Counts,
}

impl Window {
    fn rate(&self, event: Event) -> f64 {
        self.counts[event] as f64 / self.counts[Event::Instructions].max(1) as f64
    }
}

/// A stratum is never more than one part in so many of what ran before it.
const LEAST_WINDOWS: u64 = 300;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Certain,
    Warm,
    Prime,
    Measure,
}

/// A core that times windows and warms between them.
#[derive(Clone, Debug)]
pub struct SampledCore {
    plan: Plan,
    warmer: Warmer,
    core: FastCore,
    phase: Phase,
    /// Instructions so far, in this stratum, and where it and its window lie.
    instructions: u64,
    in_stratum: u64,
    stratum: u64,
    offset: u64,
    before: Counts,
    /// How many windows were measured, how many instructions they stand for, and the last one.
    windows: u64,
    covered: u64,
    last: Option<Window>,
    sums: Box<[Sums]>,
    /// What was counted in the stretch that was timed whole, once it is over.
    certain: Option<Counts>,
    /// As in an account: runs of every instruction, timed or not.
    steps: Vec<i64>,
    dice: u64,
    first_pcs: Vec<u64>,
}

impl SampledCore {
    /// A cold core.
    pub fn new(machine: &Machine, settings: Settings, plan: Plan) -> SampledCore {
        let mut sampled = SampledCore {
            warmer: Warmer::new(machine),
            core: FastCore::new(machine, settings),
            phase: Phase::Certain,
            instructions: 0,
            in_stratum: 0,
            stratum: plan.stratum_instructions,
            offset: 0,
            before: Counts::default(),
            windows: 0,
            covered: 0,
            last: None,
            sums: vec![Sums::default(); Event::COUNT].into(),
            certain: None,
            steps: Vec::new(),
            dice: plan.seed.wrapping_mul(2).wrapping_add(1),
            first_pcs: Vec::new(),
            plan,
        };
        sampled.begin_stratum();
        sampled
    }

    /// Instructions that have run.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// How many windows were measured so far.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// The window that was measured last.
    pub fn last_window(&self) -> Option<&Window> {
        self.last.as_ref()
    }

    /// The core that times the windows.
    pub fn core(&self) -> &FastCore {
        &self.core
    }

    /// How often each static instruction ran, timed or not: exact.
    pub fn runs(&self) -> Vec<u64> {
        running_sums(&self.steps)
    }

    /// Whether every instruction so far was timed.
    pub fn is_exact(&self) -> bool {
        self.certain.is_none()
    }

    /// The estimated count of an event over the whole run; none with fewer than two windows, unless
    /// everything was timed.
    ///
    /// Each stratum's rate is its window's. How far that may be off is judged by how much
    /// neighbouring windows differ, which overstates it where the program drifts.
    pub fn estimate(&self, event: Event) -> Option<Estimate> {
        let n = self.windows;
        let Some(certain) = &self.certain else {
            return Some(Estimate::exact(self.core.counts()[event] as f64));
        };
        let uncertain = self.instructions.saturating_sub(certain[Event::Instructions]);
        if n < 2 {
            return a_little_more(certain, event, uncertain);
        }
        let scale = uncertain as f64 / self.covered.max(1) as f64;
        let sums = &self.sums[event as usize];
        let variance = sums.spread * n as f64 / (n - 1) as f64;
        Some(Estimate {
            value: certain[event] as f64 + sums.weighted * scale,
            standard_uncertainty: variance.sqrt() * scale,
            degrees_of_freedom: sums.degrees_of_freedom(n),
        })
    }

    /// Relative half-width of the cycles at 95 %.
    pub fn relative_error(&self) -> Option<f64> {
        let cycles = self.estimate(Event::Cycles)?;
        Some(cycles.interval(Coverage::P95).half_width() / cycles.value.max(1.0))
    }

    fn roll(&mut self) -> u64 {
        self.dice = self
            .dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.dice >> 33
    }

    fn begin_stratum(&mut self) {
        let used = self.plan.window_instructions + self.plan.prime_instructions;
        let room = self.stratum.saturating_sub(used).max(1);
        self.offset = self.roll() % room;
        self.in_stratum = 0;
    }

    /// Moves to the phase that the next block belongs to; `pc` is where it starts.
    fn turn(&mut self, pc: u64) {
        let measure_from = self.offset + self.plan.prime_instructions;
        let measure_to = measure_from + self.plan.window_instructions;
        match self.phase {
            Phase::Certain if self.instructions >= self.plan.certain_instructions => {
                self.core.settle(Some(pc));
                self.certain = Some(self.core.counts());
                self.exchange();
                self.phase = Phase::Warm;
                self.begin_stratum();
            }
            Phase::Warm if self.in_stratum >= self.offset && self.in_stratum < measure_to => {
                self.warmer.settle(pc);
                self.exchange();
                self.phase = Phase::Prime;
            }
            Phase::Prime if self.in_stratum >= measure_from => {
                self.before = self.core.counts();
                self.phase = Phase::Measure;
            }
            Phase::Measure if self.in_stratum >= measure_to => {
                self.core.settle(Some(pc));
                let counts = self.core.counts().since(&self.before);
                self.measured(Window { stands_for: self.stratum, counts });
                self.exchange();
                self.phase = Phase::Warm;
            }
            _ => {}
        }
        if self.phase == Phase::Warm && self.in_stratum >= self.stratum {
            self.adapt();
            self.begin_stratum();
        }
    }

    #[inline]
    fn count_run(&mut self, id: BlockId, ran: u16) {
        let Some(block) = self.core.program().blocks.get(id.0 as usize) else { return };
        let (first, count) = (block.first as usize, u32::from(ran).min(block.count) as usize);
        self.steps[first] += 1;
        self.steps[first + count] -= 1;
    }

    /// Hands the units from the warmer to the core, or back.
    fn exchange(&mut self) {
        let (memory, predictor) = self.warmer.units_mut();
        let (core_memory, core_predictor) = self.core.units_mut();
        std::mem::swap(memory, core_memory);
        std::mem::swap(predictor, core_predictor);
    }

    /// Adds a window to every event's sums.
    fn measured(&mut self, window: Window) {
        let weight = window.stands_for as f64;
        for &event in Event::ALL {
            let before = self.last.as_ref().map(|last| (last.stands_for as f64, last.rate(event)));
            self.sums[event as usize].add(weight, window.rate(event), before);
        }
        self.windows += 1;
        self.covered += window.stands_for;
        self.last = Some(window);
    }

    /// Widens the strata while the estimate is good enough, narrows them while it is not.
    fn adapt(&mut self) {
        if self.windows < 8 {
            return;
        }
        let Some(error) = self.relative_error() else { return };
        if error < 0.7 * self.plan.error {
            // No window may come to speak for too much: a few heavy ones would decide everything,
            // and how far they are off could not be told from so few.
            let most = self.instructions / LEAST_WINDOWS;
            let most = most.min(self.plan.stratum_max_instructions);
            self.stratum = (self.stratum * 2).min(most).max(self.plan.stratum_instructions);
        } else if error > self.plan.error {
            self.stratum = (self.stratum / 2).max(self.plan.stratum_instructions);
        }
    }
}

/// What was timed whole, and a little more that was not: at its rate, give or take all of it.
fn a_little_more(certain: &Counts, event: Event, uncertain: u64) -> Option<Estimate> {
    let timed = certain[Event::Instructions];
    if timed == 0 {
        return None;
    }
    let more = certain[event] as f64 * uncertain as f64 / timed as f64;
    // Anything from nothing to twice as much is as likely: a rectangle of that half-width.
    Some(Estimate::known(certain[event] as f64 + more, more / 3.0_f64.sqrt()))
}

/// Runs from steps: how often a run began at an instruction, less how often one ended before it.
fn running_sums(steps: &[i64]) -> Vec<u64> {
    let sums = steps.iter().scan(0_i64, |sum, step| {
        *sum += step;
        Some(*sum as u64)
    });
    sums.take(steps.len().saturating_sub(1)).collect()
}

impl CoreListener for SampledCore {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.warmer.translated(id, block);
        self.core.translated(id, block);
        let place = id.0 as usize;
        if self.first_pcs.len() <= place {
            self.first_pcs.resize(place + 1, 0);
        }
        self.first_pcs[place] = block.instructions.first().map_or(0, |code| code.pc);
        self.steps.resize(self.core.program().instructions.len() + 1, 0);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(&pc) = self.first_pcs.get(id.0 as usize) else { return };
        self.turn(pc);
        match self.phase {
            Phase::Warm => self.warmer.executed(id, ran, accesses),
            Phase::Certain | Phase::Prime | Phase::Measure => {
                self.core.executed(id, ran, accesses);
            }
        }
        self.count_run(id, ran);
        self.instructions += u64::from(ran);
        self.in_stratum += u64::from(ran);
    }

    fn interrupted(&mut self) {
        if self.phase != Phase::Warm {
            self.core.interrupted();
        }
    }

    fn forked(&mut self) {
        // The units stay; the child's estimate begins anew, with strata.
        if self.phase == Phase::Certain {
            self.exchange();
        }
        self.phase = Phase::Warm;
        self.windows = 0;
        self.covered = 0;
        self.last = None;
        self.sums.fill(Sums::default());
        self.certain = Some(Counts::default());
        self.instructions = 0;
        self.stratum = self.plan.stratum_instructions;
        self.begin_stratum();
    }
}

impl Accounting for SampledCore {
    fn settle_all(&mut self) {
        if self.phase == Phase::Certain {
            self.core.finish();
        }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for &event in Event::ALL {
            counts[event] = self.estimate(event).map_or(0, |e| e.value.round() as u64);
        }
        // Instructions are counted, not estimated.
        counts[Event::Instructions] = self.instructions;
        counts
    }

    fn account(&self) -> &Account {
        self.core.account()
    }

    fn runs(&self) -> Vec<u64> {
        SampledCore::runs(self)
    }

    fn estimate(&self, event: Event) -> Option<Estimate> {
        match event {
            Event::Instructions => Some(Estimate::exact(self.instructions as f64)),
            _ => SampledCore::estimate(self, event),
        }
    }
}
