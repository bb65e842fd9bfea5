//! Timing a little of a program to know all of it, and how well.
//!
//! The run is cut into strata. In each, one window at a random place is timed; before it the core
//! runs a little unmeasured, and the rest of the stratum only warms the units. As long as the
//! estimate is good enough, strata grow:
//!
//! ```text
//! |......pM......|...pM.........|..........pM..................|    . warmed  p primed  M measured
//! ```

use metrology::{Coverage, Estimate};

use crate::core::Settings;
use crate::event::{Counts, Event};
use crate::fast::FastCore;
use crate::machine::Machine;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::warm::Warmer;

/// How to sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Instructions measured in a window.
    pub window_instructions: u64,
    /// Instructions timed before each window and not measured.
    pub prime_instructions: u64,
    /// The smallest stratum.
    pub stratum_instructions: u64,
    /// The largest stratum.
    pub stratum_max_instructions: u64,
    /// The relative half-width, at 95 %, of the cycles that is good enough.
    pub error: f64,
    /// Where the windows fall.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            window_instructions: 10_000,
            prime_instructions: 2_000,
            stratum_instructions: 50_000,
            stratum_max_instructions: 100_000_000,
            error: 0.03,
            seed: 1,
        }
    }
}

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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
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
    windows: Vec<Window>,
    dice: u64,
    first_pcs: Vec<u64>,
}

impl SampledCore {
    /// A cold core.
    pub fn new(machine: &Machine, settings: Settings, plan: Plan) -> SampledCore {
        let mut sampled = SampledCore {
            warmer: Warmer::new(machine),
            core: FastCore::new(machine, settings),
            phase: Phase::Warm,
            instructions: 0,
            in_stratum: 0,
            stratum: plan.stratum_instructions,
            offset: 0,
            before: Counts::default(),
            windows: Vec::new(),
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

    /// The windows measured so far.
    pub fn windows(&self) -> &[Window] {
        &self.windows
    }

    /// The estimated count of an event over the whole run; none with fewer than two windows.
    ///
    /// Each stratum's rate is its window's. How far that may be off is judged by how much
    /// neighbouring windows differ, which overstates it where the program drifts.
    pub fn estimate(&self, event: Event) -> Option<Estimate> {
        let n = self.windows.len();
        if n < 2 {
            return None;
        }
        let covered: u64 = self.windows.iter().map(|window| window.stands_for).sum();
        let scale = self.instructions as f64 / covered.max(1) as f64;
        let sum: f64 = self.windows.iter().map(|w| w.stands_for as f64 * w.rate(event)).sum();
        let pairs = self.windows.windows(2).map(|pair| {
            let step = pair[0].rate(event) - pair[1].rate(event);
            pair[0].stands_for as f64 * pair[1].stands_for as f64 * step * step / 2.0
        });
        let variance = pairs.sum::<f64>() * n as f64 / (n - 1) as f64;
        Some(Estimate {
            value: sum * scale,
            standard_uncertainty: variance.sqrt() * scale,
            // Differences of neighbours share windows: two thirds of them are independent.
            degrees_of_freedom: ((n - 1) as f64 * 2.0 / 3.0).max(1.0),
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
                self.windows.push(Window { stands_for: self.stratum, counts });
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

    /// Hands the units from the warmer to the core, or back.
    fn exchange(&mut self) {
        let (memory, predictor) = self.warmer.units_mut();
        let (core_memory, core_predictor) = self.core.units_mut();
        std::mem::swap(memory, core_memory);
        std::mem::swap(predictor, core_predictor);
    }

    /// Widens the strata while the estimate is good enough, narrows them while it is not.
    fn adapt(&mut self) {
        if self.windows.len() < 8 {
            return;
        }
        let Some(error) = self.relative_error() else { return };
        if error < 0.7 * self.plan.error {
            self.stratum = (self.stratum * 2).min(self.plan.stratum_max_instructions);
        } else if error > self.plan.error {
            self.stratum = (self.stratum / 2).max(self.plan.stratum_instructions);
        }
    }
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
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(&pc) = self.first_pcs.get(id.0 as usize) else { return };
        self.turn(pc);
        match self.phase {
            Phase::Warm => self.warmer.executed(id, ran, accesses),
            Phase::Prime | Phase::Measure => self.core.executed(id, ran, accesses),
        }
        self.instructions += u64::from(ran);
        self.in_stratum += u64::from(ran);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    /// Phases of different speed, seeded: chains, loads near and far, branches.
    fn program(core: &mut impl CoreListener, seed: u64, steps: u32) {
        let jump: &[u8] = &[0xeb, 0x10];
        let blocks = [
            block(0x1000, &[ADD_RAX_RAX, ADD_RAX_RAX, LOAD, JNE]),
            block(0x100b, &[IMUL_RAX_RAX, CHASE, MOV_ECX_1, jump]),
            block(0x3000, &[LOAD, STORE_RAX, MOV_ECX_1, MOV_ECX_1, jump]),
        ];
        translate(core, &blocks);
        let mut dice = Dice::new(seed);
        for step in 0..steps {
            let phase = (step / 30_000) % 3;
            let far = if phase == 2 { 1 << 23 } else { 1 << 13 };
            let address = 0x10_0000 + dice.next() % far / 8 * 8;
            core.executed(BlockId(0), 4, &[load(2, address)]);
            if dice.next() % 8 > u64::from(phase) * 2 {
                core.executed(BlockId(1), 4, &[load(1, address ^ 8)]);
            } else {
                core.executed(BlockId(2), 5, &[load(0, address ^ 64), store(1, address ^ 128)]);
            }
        }
    }

    #[test]
    fn the_interval_holds_the_full_answer_and_little_was_timed() {
        let zen4 = machine("zen4", &[]);
        let mut full = FastCore::new(&zen4, Settings::default());
        program(&mut full, 4, 180_000);
        full.finish();
        let truth = full.counts()[Event::Cycles] as f64;
        let mut held = 0;
        for seed in 0..6 {
            let plan = Plan {
                window_instructions: 2000,
                prime_instructions: 1000,
                stratum_instructions: 15_000,
                seed,
                ..Plan::default()
            };
            let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
            program(&mut sampled, 4, 180_000);
            assert_eq!(sampled.instructions(), full.counts()[Event::Instructions]);
            let cycles = sampled.estimate(Event::Cycles).unwrap();
            held += u32::from(cycles.interval(Coverage::P95).holds(truth));
            let timed: u64 = sampled.windows().iter().map(|w| w.counts[Event::Instructions]).sum();
            assert!(timed * 5 < sampled.instructions(), "{timed}");
            let off = (cycles.value / truth - 1.0).abs();
            assert!(off < 0.15, "seed {seed}: {} against {truth}", cycles.value);
        }
        assert!(held >= 4, "{held} of 6");
    }

    #[test]
    fn a_uniform_program_is_known_well_from_few_windows() {
        let zen4 = machine("zen4", &[]);
        let mut sampled = SampledCore::new(&zen4, Settings::default(), Plan::default());
        repeat(&mut sampled, IMUL_RAX_RAX, 2_000_000);
        let cycles = sampled.estimate(Event::Cycles).unwrap();
        let truth = 3.0 * 2_000_000.0;
        assert!((cycles.value / truth - 1.0).abs() < 0.01, "{}", cycles.value);
        assert!(sampled.relative_error().unwrap() < 0.03);
        assert!(sampled.windows().len() < 20, "{}", sampled.windows().len());
    }

    #[test]
    fn nothing_is_claimed_from_fewer_than_two_windows() {
        let mut sampled =
            SampledCore::new(&machine("zen4", &[]), Settings::default(), Plan::default());
        repeat(&mut sampled, NOP, 6400);
        assert_eq!(sampled.estimate(Event::Cycles), None);
    }
}
