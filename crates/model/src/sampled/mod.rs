//! Timing a little of a program to know all of it, and how well.
//!
//! The program is cut into strata. In each, one window at a random place is timed; before it the
//! core runs a little unmeasured. Around it caches, translation and predictors are kept warm, and
//! what they count is known of far more than the window: the estimate is a regression on that
//! (`observed`). While the estimate is good enough strata grow, and long ones are warmed only for
//! a part before their window:
//!
//! ```text
//! |CCC|...pM....|.pM......|....pM...|-----...pM--------|-------...pM--|
//! C all timed  . warmed  p primed  M measured  - skipped: only runs are counted
//! ```

mod features;
mod observed;
mod plan;
mod regression;
#[cfg(test)]
mod tests;

pub use plan::Plan;

use metrology::{Coverage, Estimate};

use crate::core::{Account, Accounting, Sampling, Settings};
use crate::event::{Counts, Event, STATIC};
use crate::fast::FastCore;
use crate::machine::Machine;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::warm::Warmer;
use features::{Features, features, rates};
use observed::{Fitted, Observed, STRATA_MAX, fit, halve, rates_of};
use plan::{STRATA_LEAST, Stratum};
use regression::Prior;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Certain,
    Skip,
    Warm,
    Prime,
    Measure,
    /// The window is over, the stratum is not.
    After,
}

/// A core that times windows and warms before them.
#[derive(Clone, Debug)]
pub struct SampledCore {
    plan: Plan,
    prior: Prior,
    warmer: Warmer,
    core: FastCore,
    phase: Phase,
    /// Instructions so far, and in this stratum; where the next phase begins.
    instructions: u64,
    in_stratum: u64,
    turns_at: u64,
    /// About how long strata are, and how this one lies.
    about: u64,
    stratum: Stratum,
    /// What was counted when warming began, and when the window did.
    warm_from: Features,
    window_from: Features,
    counts_from: Counts,
    /// What this stratum showed, until it is over.
    window: Option<Observed>,
    strata: Vec<Observed>,
    windows: u64,
    fitted: Option<Fitted>,
    /// How many strata there must be for the fit to be made again.
    fit_at: usize,
    /// What was counted in the stretch that was timed whole, once it is over.
    certain: Option<Counts>,
    /// How often each block ran whole, and as in an account the steps of what ran in part.
    block_runs: Vec<u64>,
    steps: Vec<i64>,
    /// What depends on the code alone, and after how many instructions it was added up.
    fixed: (u64, [u64; STATIC]),
    fixed_before: [u64; STATIC],
    /// Instructions of code that was never timed, when that was last looked at.
    unseen: u64,
    dice: u64,
    first_pcs: Vec<u64>,
}

impl SampledCore {
    /// A cold core.
    pub fn new(machine: &Machine, settings: Settings, plan: Plan) -> SampledCore {
        SampledCore {
            prior: Prior::of(machine),
            warmer: Warmer::new(machine),
            core: FastCore::new(machine, settings),
            phase: Phase::Certain,
            instructions: 0,
            in_stratum: 0,
            turns_at: plan.certain_instructions,
            about: plan.stratum_instructions,
            stratum: Stratum::default(),
            warm_from: Features::default(),
            window_from: Features::default(),
            counts_from: Counts::default(),
            window: None,
            strata: Vec::new(),
            windows: 0,
            fitted: None,
            fit_at: 2,
            certain: None,
            block_runs: Vec::new(),
            steps: Vec::new(),
            fixed: (0, [0; STATIC]),
            fixed_before: [0; STATIC],
            unseen: 0,
            // Seeds that follow each other must not roll alike.
            dice: (plan.seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1,
            first_pcs: Vec::new(),
            plan,
        }
    }

    /// Instructions that have run.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// How many windows were measured so far.
    pub fn windows(&self) -> u64 {
        self.windows
    }

    /// The core that times the windows.
    pub fn core(&self) -> &FastCore {
        &self.core
    }

    /// How often each static instruction ran, timed or not: exact.
    pub fn runs(&self) -> Vec<u64> {
        let mut steps = self.steps.clone();
        for (block, &runs) in self.core.program().blocks.iter().zip(&self.block_runs) {
            steps[block.first as usize] += runs as i64;
            steps[(block.first + block.count) as usize] -= runs as i64;
        }
        running_sums(&steps)
    }

    /// Whether every instruction so far was timed.
    pub fn is_exact(&self) -> bool {
        self.certain.is_none()
    }

    /// The estimated count of an event over the whole run; none with fewer than two windows, unless
    /// everything was timed. It may rest on a little fewer windows than there are, until
    /// `settle_all`.
    pub fn estimate(&self, event: Event) -> Option<Estimate> {
        if event == Event::Instructions {
            return Some(Estimate::exact(self.instructions as f64));
        }
        let Some(certain) = &self.certain else {
            return Some(Estimate::exact(self.core.counts()[event] as f64));
        };
        if event.is_static() && self.fixed.0 == self.instructions {
            return Some(Estimate::exact(self.fixed.1[event as usize] as f64));
        }
        let uncertain = self.instructions.saturating_sub(certain[Event::Instructions]);
        match &self.fitted {
            Some(fitted) => {
                let rate = fitted.rates[event as usize];
                Some(rate.over(uncertain as f64, certain[event] as f64, self.unseen as f64))
            }
            None => a_little_more(certain, event, uncertain),
        }
    }

    /// Relative half-width of the cycles at 95 %.
    pub fn relative_error(&self) -> Option<f64> {
        let cycles = self.estimate(Event::Cycles)?;
        Some(cycles.interval(Coverage::P95).half_width() / cycles.value.max(1.0))
    }

    /// All that was counted of what cycles follow from, as long as nothing is skipped.
    fn features(&self) -> Features {
        let memory = match self.phase {
            Phase::Certain | Phase::Prime | Phase::Measure => self.core.memory(),
            Phase::Skip | Phase::Warm | Phase::After => self.warmer.memory(),
        };
        let timed = &self.core.account().totals;
        features(self.instructions, memory, self.warmer.branches(), timed)
    }

    fn begin_stratum(&mut self) {
        let mut dice = self.dice;
        self.stratum = Stratum::new(&self.plan, self.about, || roll(&mut dice));
        self.dice = dice;
        self.in_stratum = 0;
        self.window = None;
        self.warmer.skip();
        if self.stratum.is_skipped {
            self.phase = Phase::Skip;
            self.turns_at = self.stratum.warm;
        } else {
            self.begin_warming();
        }
    }

    fn begin_warming(&mut self) {
        self.phase = Phase::Warm;
        self.turns_at = self.stratum.prime;
        self.warm_from = self.features();
    }

    /// Moves to the phase that the next block belongs to; `pc` is where it starts.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, pc: u64) {
        match self.phase {
            Phase::Certain => {
                self.core.settle(Some(pc));
                self.certain = Some(self.core.counts());
                self.exchange();
                self.begin_stratum();
            }
            Phase::Skip => {
                self.warmer.skip();
                self.begin_warming();
            }
            Phase::Warm => {
                self.warmer.settle(pc);
                self.exchange();
                self.phase = Phase::Prime;
                self.turns_at = self.stratum.measure;
            }
            Phase::Prime => {
                self.counts_from = self.core.counts();
                self.window_from = self.features();
                self.phase = Phase::Measure;
                self.turns_at = self.stratum.end;
            }
            Phase::Measure => {
                self.core.settle(Some(pc));
                self.measured();
                self.exchange();
                self.phase = Phase::After;
                self.turns_at = self.stratum.length;
            }
            Phase::After => {
                if !self.stratum.is_skipped {
                    self.warmer.settle(pc);
                }
                self.end_stratum();
                self.adapt();
                self.begin_stratum();
            }
        }
    }

    #[inline]
    fn count_run(&mut self, id: BlockId, ran: u16) {
        let Some(block) = self.core.program().blocks.get(id.0 as usize) else { return };
        if u32::from(ran) >= block.count {
            self.block_runs[id.0 as usize] += 1;
        } else {
            self.steps[block.first as usize] += 1;
            self.steps[block.first as usize + usize::from(ran)] -= 1;
        }
    }

    /// Hands the units from the warmer to the core, or back.
    fn exchange(&mut self) {
        let (memory, predictor) = self.warmer.units_mut();
        let (core_memory, core_predictor) = self.core.units_mut();
        std::mem::swap(memory, core_memory);
        std::mem::swap(predictor, core_predictor);
    }

    /// The window is over: what it showed.
    fn measured(&mut self) {
        let now = self.features();
        let counts = self.core.counts().since(&self.counts_from);
        self.window = Some(Observed {
            stands_for: 0.0,
            timed_share: now[0] - self.window_from[0],
            warmed_share: now[0] - self.warm_from[0],
            window: rates(&now, &self.window_from),
            stretch: rates(&now, &self.warm_from),
            is_long: self.stratum.is_long,
            rates: rates_of(&counts),
        });
        self.windows += 1;
    }

    fn end_stratum(&mut self) {
        let length = self.in_stratum.max(1) as f64;
        let now = self.features();
        let Some(mut observed) = self.window.take() else { return };
        observed.stands_for = length;
        observed.timed_share = (observed.timed_share / length).min(1.0);
        observed.warmed_share = (observed.warmed_share / length).min(1.0);
        if !self.stratum.is_skipped {
            observed.stretch = rates(&now, &self.warm_from);
            observed.warmed_share = 1.0;
        }
        self.strata.push(observed);
        if self.strata.len() >= STRATA_MAX {
            halve(&mut self.strata);
            self.fit_at = 2;
        }
        if self.strata.len() >= self.fit_at {
            self.fit_now();
        }
    }

    /// The stratum under way as far as it came, if anything is known of it.
    fn unfinished(&self) -> Option<Observed> {
        let length = self.in_stratum as f64;
        if self.stratum.is_skipped || self.phase == Phase::Certain || length < 1.0 {
            // Of a skipped one little is known: it counts as the others do on average.
            let window = self.window.as_ref()?;
            let timed_share = (window.timed_share / length).min(1.0);
            let warmed_share = (window.warmed_share / length).min(1.0);
            return Some(Observed {
                stands_for: length,
                timed_share,
                warmed_share,
                ..window.clone()
            });
        }
        let stretch = rates(&self.features(), &self.warm_from);
        let window = self.window.clone().unwrap_or(Observed {
            stands_for: 0.0,
            timed_share: 0.0,
            warmed_share: 1.0,
            window: stretch,
            stretch,
            is_long: false,
            rates: [].into(),
        });
        let timed_share = (window.timed_share / length).min(1.0);
        Some(Observed { stands_for: length, timed_share, warmed_share: 1.0, stretch, ..window })
    }

    /// Fits all there is, the stratum under way included, and looks for code that was never timed.
    fn fit_all(&mut self) {
        let unfinished = self.unfinished();
        let count = self.strata.len();
        self.strata.extend(unfinished);
        self.fit_now();
        self.strata.truncate(count);
        let timed = self.core.account().runs();
        let both = self.runs().into_iter().zip(timed);
        self.unseen = both.filter(|(_, timed)| *timed == 0).map(|(runs, _)| runs).sum();
    }

    fn fit_now(&mut self) {
        self.fitted = fit(&self.strata, &self.prior);
        self.fit_at = self.strata.len() + 1 + self.strata.len() / 16;
    }

    /// Adds up what depends on the code alone.
    fn add_fixed(&mut self) {
        let mut totals = [0; STATIC];
        for (block, &runs) in self.core.program().blocks.iter().zip(&self.block_runs) {
            let sums = totals.iter_mut().zip(&block.counts);
            sums.for_each(|(total, &count)| *total += runs * u64::from(count));
        }
        let in_part = running_sums(&self.steps).into_iter();
        for (runs, counts) in in_part.zip(&self.core.program().counts) {
            let sums = totals.iter_mut().zip(counts);
            sums.for_each(|(total, &count)| *total += runs * u64::from(count));
        }
        let before = self.fixed_before;
        self.fixed = (self.instructions, std::array::from_fn(|k| totals[k] - before[k]));
    }

    /// Widens the strata while the estimate is good enough, narrows them while it is not.
    fn adapt(&mut self) {
        if self.strata.len() < 16 {
            return;
        }
        let Some(error) = self.relative_error() else { return };
        if error < 0.7 * self.plan.error {
            let most = self.instructions / STRATA_LEAST;
            let most = most.min(self.plan.stratum_max_instructions);
            self.about = (self.about * 2).min(most).max(self.plan.stratum_instructions);
        } else if error > self.plan.error {
            self.about = (self.about / 2).max(self.plan.stratum_instructions);
        }
    }
}

fn roll(dice: &mut u64) -> u64 {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *dice >> 33
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
        self.core.translated(id, block);
        let program = self.core.program();
        if let Some(at) = program.blocks.get(id.0 as usize) {
            let (first, end) = (at.first as usize, (at.first + at.count) as usize);
            self.warmer.learn(id, program.instructions.get(first..end).unwrap_or_default());
        }
        let place = id.0 as usize;
        if self.first_pcs.len() <= place {
            self.first_pcs.resize(place + 1, 0);
            self.block_runs.resize(place + 1, 0);
        }
        self.first_pcs[place] = block.instructions.first().map_or(0, |code| code.pc);
        self.steps.resize(self.core.program().instructions.len() + 1, 0);
    }

    #[inline]
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.in_stratum >= self.turns_at {
            let Some(&pc) = self.first_pcs.get(id.0 as usize) else { return };
            while self.in_stratum >= self.turns_at {
                self.turn(pc);
            }
        }
        match self.phase {
            Phase::Skip => {}
            Phase::After if self.stratum.is_skipped => {}
            Phase::Warm | Phase::After => self.warmer.executed(id, ran, accesses),
            Phase::Certain | Phase::Prime | Phase::Measure => {
                self.core.executed(id, ran, accesses);
            }
        }
        self.count_run(id, ran);
        self.instructions += u64::from(ran);
        self.in_stratum += u64::from(ran);
    }

    fn interrupted(&mut self) {
        match self.phase {
            Phase::Skip | Phase::Warm | Phase::After => self.warmer.interrupted(),
            Phase::Certain | Phase::Prime | Phase::Measure => self.core.interrupted(),
        }
    }

    fn forked(&mut self) {
        // The units stay; the child's estimate begins anew, with strata.
        if matches!(self.phase, Phase::Certain | Phase::Prime | Phase::Measure) {
            self.exchange();
        }
        self.phase = Phase::After;
        self.add_fixed();
        for (before, more) in self.fixed_before.iter_mut().zip(self.fixed.1) {
            *before += more;
        }
        self.windows = 0;
        self.strata.clear();
        self.fitted = None;
        self.fit_at = 2;
        self.certain = Some(Counts::default());
        self.instructions = 0;
        self.fixed = (0, [0; STATIC]);
        self.unseen = 0;
        self.about = self.plan.stratum_instructions;
        self.begin_stratum();
    }
}

impl Accounting for SampledCore {
    fn settle_all(&mut self) {
        if self.phase == Phase::Certain {
            self.core.finish();
        } else {
            self.fit_all();
            self.add_fixed();
        }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for &event in Event::ALL {
            counts[event] = self.estimate(event).map_or(0, |e| e.value.round() as u64);
        }
        counts
    }

    fn account(&self) -> &Account {
        self.core.account()
    }

    fn runs(&self) -> Vec<u64> {
        SampledCore::runs(self)
    }

    fn estimate(&self, event: Event) -> Option<Estimate> {
        SampledCore::estimate(self, event)
    }

    fn sampling(&self) -> Option<Sampling> {
        self.certain.as_ref()?;
        let fitted = self.fitted.as_ref();
        Some(Sampling {
            windows: self.windows,
            timed: self.core.account().totals[Event::Instructions],
            longer_warming: fitted.and_then(|fitted| fitted.longer_warming),
        })
    }
}
