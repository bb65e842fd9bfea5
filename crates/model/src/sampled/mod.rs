//! Timing a little of a program to know all of it, and how well.
//!
//! The program is cut into strata. In each, one window at a random place is timed; before it the
//! core runs a little unmeasured. Around it caches, translation and predictors are kept warm, and
//! what they count is known of far more than the window: the estimate is a regression on that
//! (`observed`, `fit`). Which blocks run is known of everything, and how long they took before
//! (`usual`). While the estimate is good enough strata grow, and long ones are warmed only for
//! a part before their window. What ran a while before that reaches the outer caches and the branch
//! predictor alone, which remember longest, the predictor for longer still; of the rest runs are
//! counted, its code reaches the outer caches, and the predictor hears of a part, or of all (`steering`):
//!
//! ```text
//! |CCC|...pM....|.pM......|....pM...|-srr...pM--------|---ssrr...pM--|   - skipped
//! C all timed  . warmed  p primed  M measured  s reaches predictor  r outer caches, predictor
//! ```
//!
//! Some windows are warmed for longer and then looked at again as if they had not been (`recalled`).
//! If that shows something else, warming is too short for this program and is made longer; if half of
//! that would have shown the same, it is made shorter again (`warmth`). Where what is skipped misses as
//! no window did, strata are cut short (`surprise`).

mod answer;
mod features;
mod fit;
mod novelty;
mod observed;
mod overlap;
mod phases;
mod plan;
mod reaching;
mod recalled;
mod regression;
mod settling;
mod steering;
mod surprise;
#[cfg(test)]
mod tests;
mod usual;
mod warmth;

pub use phases::Window;
pub use plan::Plan;

use crate::core::Settings;
use crate::event::{Counts, STATIC};
use crate::fast::FastCore;
use crate::machine::Machine;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::warm::{Units, Warmer};
use features::Features;
use fit::Fitted;
use observed::Observed;
use overlap::Overlap;
use plan::Stratum;
use reaching::Reaching;
use recalled::Recalled;
use regression::Prior;
use settling::Settling;
use steering::Steering;
use surprise::Surprise;
use warmth::Warmth;

/// Lines that wait before caches hear of them together, which is faster than one by one.
const LINES_TOGETHER: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The child of a fork has not run yet.
    Forked,
    Certain,
    Skip,
    /// The branch predictor learns.
    Steer,
    /// Lines reach the outer caches as well.
    Reach,
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
    /// Lines that were reached and that no cache heard of yet.
    lines: Vec<u64>,
    /// About how long strata are, and how this one lies.
    about: u64,
    stratum: Stratum,
    /// What was counted when the stratum began, and when the window did.
    stratum_from: Features,
    window_from: Features,
    counts_from: Counts,
    /// What this stratum showed, until it is over; and what is part of it but ran before it was laid out.
    window: Option<Observed>,
    came_before: Option<Observed>,
    strata: Vec<Observed>,
    /// How long warming must be, in times of what it began with, and what longer warming shows.
    warmth: Warmth,
    warm_at_first: u64,
    /// In a stratum that is warmed for longer: the units before that, and what ran since it would
    /// have begun had it been as short as usual.
    before: Option<Box<Units>>,
    recalled: Option<Recalled>,
    windows: u64,
    latest: Option<Window>,
    fitted: Option<Fitted>,
    /// Whether all that is skipped reaches the last level.
    reaching: Reaching,
    /// How long priming must be.
    settling: Settling,
    surprise: Surprise,
    /// How much of what misses take alone windows wait for.
    overlap: Overlap,
    /// Whether the predictor hears of all that is skipped, and how often it would be wrong besides if it
    /// did not: in the stratum under way, an instruction.
    steering: Steering,
    more_mispredicted: f64,
    /// How many strata there must be for the fit to be made again, and for all events.
    fit_at: usize,
    fit_all_at: usize,
    /// What was counted in the stretch that was timed whole, once it is over.
    certain: Option<Counts>,
    /// What the core had counted before that stretch, for the process's parent.
    certain_from: Counts,
    /// How often each block ran whole, and as in an account the steps of what ran in part.
    blocks: Vec<Counted>,
    steps: Vec<i64>,
    /// What depends on the code alone, and after how many instructions it was added up.
    fixed: (u64, [u64; STATIC]),
    fixed_before: [u64; STATIC],
    /// Instructions of code that was never timed, when that was last looked at, as far as they go
    /// together.
    unseen: f64,
    /// How often each static instruction had run when the process was forked.
    inherited: Vec<u64>,
    dice: u64,
    /// What all that ran usually takes; the mean rate of what was timed; and how many strata there
    /// must be for that to be learnt again.
    usual_cycles: f64,
    usual_rate: f32,
    learn_at: usize,
}

/// What is looked at whenever a block runs, together so that it is one place of the host's caches.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Runs to its end.
    runs: u64,
    /// Where it starts, as an address and in the program, and how many instructions it has.
    pc: u64,
    first: u32,
    count: u32,
    /// How many cycles a run of it takes, as far as is known.
    usual_cycles: f32,
    /// How many windows there were when it was last timed, that one included.
    met: u32,
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
            lines: Vec::new(),
            turns_at: plan.certain_instructions,
            about: plan::opening(&plan),
            stratum: Stratum::default(),
            stratum_from: Features::default(),
            window_from: Features::default(),
            counts_from: Counts::default(),
            window: None,
            came_before: None,
            strata: Vec::new(),
            warmth: Warmth::new(),
            warm_at_first: plan.warm_instructions,
            before: None,
            recalled: None,
            windows: 0,
            latest: None,
            fitted: None,
            reaching: Reaching::new(),
            settling: Settling::new(&plan, machine),
            surprise: Surprise::default(),
            overlap: Overlap::default(),
            steering: Steering::default(),
            more_mispredicted: 0.0,
            fit_at: 2,
            fit_all_at: 2,
            certain: None,
            certain_from: Counts::default(),
            blocks: Vec::new(),
            steps: Vec::new(),
            fixed: (0, [0; STATIC]),
            fixed_before: [0; STATIC],
            unseen: 0.0,
            inherited: Vec::new(),
            // Seeds that follow each other must not roll alike.
            dice: (plan.seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93) | 1,
            usual_cycles: 0.0,
            usual_rate: 0.0,
            learn_at: 0,
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

    /// The window that was measured last: what it showed can be compared with the same instructions of
    /// a core that timed all that ran before them.
    pub fn latest_window(&self) -> Option<&Window> {
        self.latest.as_ref()
    }

    /// How many instructions are warmed before most windows by now.
    pub fn warm_instructions(&self) -> u64 {
        self.plan.warm_instructions
    }

    /// The core that times the windows.
    pub fn core(&self) -> &FastCore {
        &self.core
    }

    /// Whether the program runs on and nothing is warmed but outer caches.
    fn is_skipping(&self) -> bool {
        match self.phase {
            Phase::Skip | Phase::Steer | Phase::Reach => true,
            Phase::After => self.stratum.is_skipped,
            _ => false,
        }
    }

    /// Whether what it touches then reaches those, and not its code alone.
    fn is_reaching(&self) -> bool {
        self.is_skipping() && (self.phase == Phase::Reach || self.reaching.is_on())
    }

    #[inline]
    fn reach(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let accesses = if self.is_reaching() { accesses } else { &[] };
        let is_near = self.phase == Phase::Reach;
        self.warmer.reach(id, ran, accesses, is_near, &mut self.lines);
        if self.lines.len() >= LINES_TOGETHER {
            self.refresh_lines();
            self.look_for_surprise();
        }
    }

    /// Lines that were reached one by one go where they belong by now.
    fn refresh_lines(&mut self) {
        let mut lines = std::mem::take(&mut self.lines);
        self.refresh(&lines);
        lines.clear();
        self.lines = lines;
    }

    /// Lines reach the outer caches: all of them shortly before a window, where the second level
    /// remembers.
    fn refresh(&mut self, addresses: &[u64]) {
        if self.phase != Phase::Reach {
            return self.warmer.refresh_far(addresses, self.instructions);
        }
        self.warmer.refresh(addresses);
    }

    #[inline]
    fn count_run(&mut self, id: BlockId, ran: u16) {
        let Some(block) = self.blocks.get_mut(id.0 as usize) else { return };
        let cycles = if u32::from(ran) >= block.count {
            block.runs += 1;
            f64::from(block.usual_cycles)
        } else {
            self.steps[block.first as usize] += 1;
            self.steps[block.first as usize + usize::from(ran)] -= 1;
            f64::from(block.usual_cycles) * f64::from(ran) / f64::from(block.count)
        };
        self.usual_cycles += cycles;
        match self.phase {
            Phase::Certain => block.met = self.windows as u32 + 1,
            Phase::Prime | Phase::Measure => {
                self.surprise.time(&mut block.met, self.windows, cycles);
            }
            _ => self.surprise.count(block.met, cycles),
        }
    }
}

impl CoreListener for SampledCore {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
        let program = self.core.program();
        let Some(at) = program.blocks.get(id.0 as usize) else { return };
        let (first, end) = (at.first as usize, (at.first + at.count) as usize);
        self.warmer.learn(id, program.instructions.get(first..end).unwrap_or_default());
        let place = id.0 as usize;
        if self.blocks.len() <= place {
            self.blocks.resize(place + 1, Counted::default());
        }
        let pc = block.instructions.first().map_or(0, |code| code.pc);
        let counted = &mut self.blocks[place];
        let usual_cycles = self.usual_rate * at.count as f32;
        *counted = Counted { pc, first: at.first, count: at.count, usual_cycles, ..*counted };
        self.steps.resize(self.core.program().instructions.len() + 1, 0);
    }

    #[inline]
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.in_stratum >= self.turns_at {
            let Some(&Counted { pc, .. }) = self.blocks.get(id.0 as usize) else { return };
            while self.in_stratum >= self.turns_at {
                self.turn(pc);
            }
        }
        match self.phase {
            Phase::Skip | Phase::Steer | Phase::Reach => {
                self.steer(id, ran);
                self.reach(id, ran, accesses);
            }
            Phase::After if self.stratum.is_skipped => {
                self.steer(id, ran);
                self.reach(id, ran, accesses);
            }
            Phase::Forked => {}
            Phase::Warm | Phase::After => {
                self.warmer.executed(id, ran, accesses);
                self.warmer.steer_second(id, ran);
                if let Some(recalled) = &mut self.recalled {
                    recalled.note(id, ran, accesses);
                }
            }
            Phase::Certain | Phase::Prime | Phase::Measure => {
                self.core.executed(id, ran, accesses);
                self.warmer.steer_second(id, ran);
                if let Some(recalled) = &mut self.recalled {
                    recalled.note(id, ran, accesses);
                }
            }
        }
        self.count_run(id, ran);
        self.instructions += u64::from(ran);
        self.in_stratum += u64::from(ran);
    }

    fn far_looks(&self) -> u64 {
        self.warmer.far_looks() + self.core.far_looks()
    }

    fn approach(&self, addresses: &[u64]) {
        match self.phase {
            Phase::Certain | Phase::Prime | Phase::Measure => self.core.approach(addresses),
            _ => self.warmer.approach(addresses),
        }
    }

    fn idles_for(&self) -> u64 {
        match self.is_skipping() {
            true => self.turns_at.saturating_sub(self.in_stratum).min(self.steers_alike_for()),
            false => 0,
        }
    }

    fn hears_lines(&self) -> bool {
        self.is_reaching()
    }

    fn hears_order(&self) -> bool {
        self.is_steering()
    }

    fn passed(&mut self, blocks: &[BlockId]) {
        if self.is_steering() {
            blocks.iter().for_each(|&id| self.steer(id, u16::MAX));
        }
    }

    fn ran(&mut self, runs: &[(BlockId, u32)], instructions: u64) {
        for &(id, times) in runs {
            if let Some(block) = self.blocks.get_mut(id.0 as usize) {
                let cycles = f64::from(block.usual_cycles) * f64::from(times);
                block.runs += u64::from(times);
                self.usual_cycles += cycles;
                self.surprise.count(block.met, cycles);
            }
        }
        if self.is_skipping() {
            self.note_unheard();
            self.warmer.lines_of(runs, &mut self.lines);
            self.refresh_lines();
        }
        self.instructions += instructions;
        self.in_stratum += instructions;
        self.look_for_surprise();
    }

    fn touched(&mut self, addresses: &[u64]) {
        if self.is_reaching() {
            self.warmer.pages_of(addresses, self.phase == Phase::Reach);
            self.refresh(addresses);
        }
    }

    fn interrupted(&mut self) {
        match self.phase {
            Phase::Forked
            | Phase::Skip
            | Phase::Reach
            | Phase::Steer
            | Phase::Warm
            | Phase::After => {
                self.warmer.interrupted();
            }
            Phase::Certain | Phase::Prime | Phase::Measure => self.core.interrupted(),
        }
    }

    fn forked(&mut self) {
        // The units stay; the child's estimate begins anew, and like any program's with a stretch
        // that is timed whole: most children run a few thousand instructions and become another.
        if matches!(self.phase, Phase::Certain | Phase::Prime | Phase::Measure) {
            self.core.finish();
            self.exchange();
        }
        self.refresh_lines();
        self.phase = Phase::Forked;
        self.add_fixed();
        for (before, more) in self.fixed_before.iter_mut().zip(self.fixed.1) {
            *before += more;
        }
        self.windows = 0;
        self.warmth.begin_anew();
        self.steering = Steering::default();
        self.warmer.set_second(false);
        self.strata.clear();
        self.fitted = None;
        (self.fit_at, self.fit_all_at, self.learn_at) = (2, 2, 0);
        self.certain = None;
        (self.instructions, self.in_stratum, self.turns_at) = (0, 0, 0);
        (self.window, self.recalled, self.before) = (None, None, None);
        self.came_before = None;
        self.fixed = (0, [0; STATIC]);
        self.unseen = 0.0;
        self.inherited = self.runs();
        self.about = plan::opening(&self.plan);
    }
}
