//! Sampling against the full answer.

use metrology::{Coverage, Estimate};

use super::*;
use crate::core::Accounting;
use crate::event::Event;
use crate::stream::Reached;
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
            certain_instructions: 0,
            seed,
            ..Plan::default()
        };
        let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
        program(&mut sampled, 4, 180_000);
        assert_eq!(sampled.instructions(), full.counts()[Event::Instructions]);
        sampled.settle_all();
        let cycles = sampled.estimate(Event::Cycles).unwrap();
        held += u32::from(cycles.interval(Coverage::P95).holds(truth));
        let timed = sampled.core().account().totals[Event::Instructions];
        assert!(timed * 4 < sampled.instructions(), "{timed}");
        let off = (cycles.value / truth - 1.0).abs();
        assert!(off < 0.15, "seed {seed}: {} against {truth}", cycles.value);
    }
    assert!(held >= 4, "{held} of 6");
}

#[test]
fn a_uniform_program_is_known_well_from_few_windows() {
    let zen4 = machine("zen4", &[]);
    let plan = Plan { certain_instructions: 0, ..Plan::default() };
    let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
    repeat(&mut sampled, IMUL_RAX_RAX, 2_000_000);
    sampled.settle_all();
    let cycles = sampled.estimate(Event::Cycles).unwrap();
    let truth = 3.0 * 2_000_000.0;
    assert!((cycles.value / truth - 1.0).abs() < 0.01, "{}", cycles.value);
    assert!(sampled.relative_error().unwrap() < 0.03);
    // The first strata are a third as long, and timed three times as much of.
    let timed = sampled.core().account().totals[Event::Instructions];
    let opening = plan::JUDGED_FROM as u64 * plan::opening(&plan);
    let window = plan.prime_instructions + plan.window_instructions;
    let first = plan::JUDGED_FROM as u64 * window;
    assert!((timed - first) * 6 < sampled.instructions() - opening, "{timed}");
}

#[test]
fn what_a_block_usually_takes_is_what_it_took_and_code_never_met_is_thought_average() {
    let plan = Plan { certain_instructions: 100_000, ..Plan::default() };
    let mut sampled = SampledCore::new(&machine("zen4", &[]), Settings::default(), plan);
    repeat(&mut sampled, IMUL_RAX_RAX, 2_000_000);
    sampled.learn_usual();
    let usual = sampled.blocks[0].usual_cycles;
    assert!((usual / (3.0 * 64.0) - 1.0).abs() < 0.01, "{usual}");
    sampled.translated(BlockId(1), &block(0x9000, &[NOP, NOP]));
    let unmet = sampled.blocks[1].usual_cycles;
    assert!((unmet / (3.0 * 2.0) - 1.0).abs() < 0.01, "{unmet}");
}

#[test]
fn nothing_is_claimed_from_fewer_than_two_windows() {
    let plan = Plan { certain_instructions: 0, ..Plan::default() };
    let mut sampled = SampledCore::new(&machine("zen4", &[]), Settings::default(), plan);
    repeat(&mut sampled, NOP, 6400);
    assert_eq!(sampled.estimate(Event::Cycles), None);
}

#[test]
fn a_short_program_is_known_exactly_and_runs_always_are() {
    let zen4 = machine("zen4", &[]);
    let mut full = FastCore::new(&zen4, Settings::default());
    let mut sampled = SampledCore::new(&zen4, Settings::default(), Plan::default());
    program(&mut full, 4, 20_000);
    program(&mut sampled, 4, 20_000);
    full.finish();
    sampled.settle_all();
    assert!(sampled.is_exact());
    assert_eq!(Accounting::counts(&sampled), full.counts());
    let plan = Plan { certain_instructions: 10_000, ..Plan::default() };
    let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
    program(&mut sampled, 4, 20_000);
    assert!(!sampled.is_exact());
    assert_eq!(sampled.runs(), full.account().runs());
    sampled.settle_all();
    for &event in Event::ALL.iter().filter(|event| event.is_static()) {
        let counted = full.counts()[event] as f64;
        assert_eq!(sampled.estimate(event), Some(Estimate::exact(counted)), "{}", event.name());
    }
}

#[test]
fn the_child_of_a_fork_is_timed_whole_at_first_wherever_its_parent_was() {
    let zen4 = machine("zen4", &[]);
    let child = |core: &mut SampledCore| program(core, 9, 3000);
    let mut alone = FastCore::new(&zen4, Settings::default());
    program(&mut alone, 9, 3000);
    alone.finish();
    // In the stretch that is timed whole, and in any phase of what follows.
    for steps in (0..40).map(|k| 1000 + 997 * k) {
        let plan = Plan { certain_instructions: 30_000, ..Plan::default() };
        let mut core = SampledCore::new(&zen4, Settings::default(), plan);
        program(&mut core, 4, steps);
        core.forked();
        core.settle_all();
        assert_eq!(core.estimate(Event::Cycles), Some(Estimate::exact(0.0)));
        child(&mut core);
        core.settle_all();
        assert!(core.is_exact());
        let counts = Accounting::counts(&core);
        for &event in Event::ALL.iter().filter(|event| event.is_static()) {
            assert_eq!(counts[event], alone.counts()[event], "{} after {steps}", event.name());
        }
        let cycles = core.estimate(Event::Cycles).unwrap();
        assert_eq!(cycles.standard_uncertainty, 0.0);
        // What the parent left in the caches makes it no slower than a cold start.
        let cold = alone.counts()[Event::Cycles] as f64;
        assert!(cycles.value > 0.0 && cycles.value < 1.01 * cold, "{} of {cold}", cycles.value);
    }
}

/// Tells a core of a program as an engine does that lets it idle.
struct Idling<'a> {
    core: &'a mut SampledCore,
    left: u64,
    runs: std::collections::BTreeMap<BlockId, u32>,
    instructions: u64,
    unseen: u64,
    reached: Reached,
}

impl CoreListener for Idling<'_> {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.left == 0 {
            self.core.executed(id, ran, accesses);
            self.left = self.core.idles_for();
            self.reached.forget();
            // Its lines are known to have been reached.
            for access in accesses {
                self.reached.is_new(access.address);
            }
            return;
        }
        let new = accesses.iter().map(|access| access.address);
        let new: Vec<u64> = new.filter(|&address| self.reached.is_new(address)).collect();
        self.core.touched(&new);
        if self.core.hears_order() {
            self.core.passed(&[id]);
        }
        *self.runs.entry(id).or_default() += 1;
        self.instructions += u64::from(ran);
        self.left = self.left.saturating_sub(u64::from(ran));
        if self.left == 0 {
            let runs: Vec<(BlockId, u32)> = std::mem::take(&mut self.runs).into_iter().collect();
            self.unseen += self.instructions;
            self.core.ran(&runs, std::mem::take(&mut self.instructions));
        }
    }
}

/// A program on a core that is told everything, and on one that idles through what it skips.
fn told_and_idling(seed: u64) -> (SampledCore, SampledCore) {
    let zen4 = machine("zen4", &[]);
    let plan = Plan {
        certain_instructions: 20_000,
        warm_instructions: 5_000,
        stratum_instructions: 40_000,
        ..Plan::default()
    };
    let mut told = SampledCore::new(&zen4, Settings::default(), plan);
    program(&mut told, seed, 180_000);
    let mut core = SampledCore::new(&zen4, Settings::default(), plan);
    let runs = std::collections::BTreeMap::new();
    let reached = Reached::default();
    let mut idling = Idling { core: &mut core, left: 0, runs, instructions: 0, unseen: 0, reached };
    program(&mut idling, seed, 180_000);
    let (left, rest) = (idling.instructions, idling.unseen);
    let runs: Vec<(BlockId, u32)> = idling.runs.into_iter().collect();
    core.ran(&runs, left);
    assert!(rest * 5 > core.instructions(), "{rest} of {}", core.instructions());
    for sampled in [&mut told, &mut core] {
        sampled.settle_all();
    }
    (told, core)
}

/// When code was reached in between is not told, so its few lines may leave the caches in another
/// order, and a window be timed a little differently: by far less than the answer is known to, of which
/// a quarter is allowed to rare events. Everything else is known as before.
#[test]
fn a_core_that_idles_through_what_it_skips_knows_what_it_would_have_known() {
    for seed in 1..=6 {
        let (told, core) = told_and_idling(seed);
        assert_eq!(core.runs(), told.runs());
        let (idle, heard) = (Accounting::counts(&core), Accounting::counts(&told));
        let unsure = |event| told.estimate(event).map_or(0.0, |known| known.standard_uncertainty);
        for &event in Event::ALL {
            let (idle, heard) = (idle[event], heard[event]);
            let allowed = match event {
                event if event.is_static() => 0,
                Event::Cycles => heard / 500,
                _ => 5 + (heard / 40).max((unsure(event) / 4.0) as u64),
            };
            let name = event.name();
            assert!(idle.abs_diff(heard) <= allowed, "{seed}: {name}: {idle} and {heard}");
        }
    }
}

/// Two phases in turn, each with more code than is timed in a window and less than a cache of decoded
/// code holds, together more.
fn much_code(core: &mut impl CoreListener, rounds: u32) {
    let jump: &[u8] = &[0xeb, 0x3e];
    let one = |line: u64| block(0x10_0000 + 64 * line, &[NOP, NOP, NOP, NOP, NOP, NOP, jump]);
    let blocks: Vec<_> = (0..1200).map(one).collect();
    translate(core, &blocks);
    for round in 0..rounds {
        for step in 0..9000 {
            core.executed(BlockId(round % 2 * 600 + step % 600), 7, &[]);
        }
    }
}

#[test]
fn code_that_was_decoded_while_untimed_is_found_decoded() {
    let zen4 = machine("zen4", &[]);
    let mut full = FastCore::new(&zen4, Settings::default());
    much_code(&mut full, 60);
    full.finish();
    let truth = full.counts()[Event::UopCacheMisses] as f64;
    let plan = Plan { certain_instructions: 0, ..Plan::default() };
    let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
    much_code(&mut sampled, 60);
    sampled.settle_all();
    let misses = sampled.estimate(Event::UopCacheMisses).unwrap();
    // Each phase meets its code once anew and then a dozen times more.
    assert_eq!(truth, 60.0 * 600.0);
    let off = (misses.value - truth).abs() / truth;
    assert!(off < 0.5, "{} of {truth}", misses.value);
}

#[test]
fn a_window_looked_at_again_from_the_same_units_shows_the_same() {
    // Everything a loop needs is learnt at once: longer warming has nothing to add.
    let zen4 = machine("zen4", &[]);
    let plan = Plan { certain_instructions: 0, warm_instructions: 8_000, ..Plan::default() };
    let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
    repeat(&mut sampled, IMUL_RAX_RAX, 3_000_000);
    sampled.settle_all();
    let longer = sampled.sampling().unwrap().longer_warming.unwrap();
    assert!(longer.value.abs() < 1e-3, "{}", longer.value);
    assert_eq!(sampled.warm_instructions(), 8_000);
    assert_eq!(sampled.instructions(), 3_000_000);
}

/// Chases at random through more than the second level holds and less than the third.
fn chase(core: &mut impl CoreListener, steps: u32) {
    translate(core, &[block(0x1000, &[CHASE, ADD_RAX_RAX, ADD_RAX_RAX, JNE])]);
    let mut dice = Dice::new(8);
    for _ in 0..steps {
        core.executed(BlockId(0), 4, &[load(0, (1 << 30) + 64 * (dice.next() % 40_000))]);
    }
}

#[test]
fn a_last_level_knows_what_was_skipped_where_memory_takes_much_of_the_time() {
    let zen4 = machine("zen4", &[]);
    let mut full = FastCore::new(&zen4, Settings::default());
    chase(&mut full, 400_000);
    full.finish();
    let truth = full.counts()[Event::Cycles] as f64;
    let plan = Plan {
        certain_instructions: 20_000,
        warm_instructions: 800,
        prime_instructions: 200,
        window_instructions: 300,
        stratum_instructions: 4_000,
        ..Plan::default()
    };
    let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
    chase(&mut sampled, 400_000);
    sampled.settle_all();
    let cycles = sampled.estimate(Event::Cycles).unwrap().value;
    assert!((cycles / truth - 1.0).abs() < 0.05, "{cycles} of {truth}");
}

/// Waits for a line from memory now and then; in the end two loads in three bring one, all at once.
fn rushes_at_the_end(core: &mut impl CoreListener) {
    let quiet = block(0x1000, &[CHASE, ADD_RAX_RAX, ADD_RAX_RAX, JNE]);
    translate(core, &[quiet, block(0x2000, &[LOAD, LOAD, LOAD, JNE])]);
    let mut dice = Dice::new(8);
    for step in 0..1_000_000_u64 {
        // Each fiftieth a line further than streams go.
        let far = step % 50 == 0;
        let line = if far { step / 10 } else { (1 << 30) + dice.next() % 200 };
        core.executed(BlockId(0), 4, &[load(0, (1 << 40) + 64 * line)]);
    }
    for step in 0..40_000_u64 {
        let far = |k: u64| load(k as u16, (1 << 41) + 8192 * (2 * step + k));
        core.executed(BlockId(1), 4, &[far(0), far(1), load(2, 1 << 40)]);
    }
}

#[test]
fn a_rush_of_misses_as_in_no_window_has_windows_of_its_own() {
    let zen4 = machine("zen4", &[]);
    let mut full = FastCore::new(&zen4, Settings::default());
    rushes_at_the_end(&mut full);
    full.finish();
    let truth = full.counts()[Event::Cycles] as f64;
    for seed in 0..6 {
        let plan = Plan {
            certain_instructions: 20_000,
            warm_instructions: 2_000,
            prime_instructions: 500,
            window_instructions: 3_000,
            stratum_instructions: 200_000,
            seed,
            ..Plan::default()
        };
        let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
        rushes_at_the_end(&mut sampled);
        sampled.settle_all();
        let cycles = sampled.estimate(Event::Cycles).unwrap();
        let (off, width) = (cycles.value / truth - 1.0, sampled.relative_error().unwrap());
        assert!(off.abs() < 0.02 && off.abs() < width, "seed {seed}: {off} ± {width}");
        // One in each stratum of the quiet part, and some of the rush.
        assert!(sampled.windows() > 4_000_000 / 200_000 + 2, "{}", sampled.windows());
    }
}

/// Walks down the columns of a matrix: every access is on another page, and there are more pages than
/// translation holds, more lines than the second level does.
fn columns(core: &mut impl CoreListener, steps: u64) {
    translate(core, &[block(0x1000, &[LOAD, ADD_RAX_RAX, ADD_RAX_RAX, JNE])]);
    for step in 0..steps {
        let (row, column) = (step % 4500, step / 4500);
        core.executed(BlockId(0), 4, &[load(0, (1 << 40) + row * 4160 + column * 8)]);
    }
}

#[test]
fn a_window_after_much_that_was_skipped_shows_what_the_same_instructions_do_in_truth() {
    let zen4 = machine("zen4", &[]);
    let plan = Plan {
        certain_instructions: 20_000,
        warm_instructions: 4_000,
        stratum_instructions: 60_000,
        ..Plan::default()
    };
    // A core that has timed everything keeps pace.
    let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
    let full = FastCore::new(&zen4, Settings::default());
    let mut both = Both { sampled: &mut sampled, full, begins: Vec::new(), sums: [0; 2] };
    columns(&mut both, 300_000);
    let [shown, truth] = both.sums.map(|cycles| cycles as f64);
    assert!(truth > 100_000.0);
    assert!((shown / truth - 1.0).abs() < 0.01, "{shown} of {truth}");
}

/// Branches that go where they went four thousand branches before, but for one in a hundred: what is
/// known of each from the round before is all there is to know.
fn rounds(core: &mut impl CoreListener, steps: usize) {
    let branch = block(0x1000, &[ADD_RAX_RAX, ADD_RAX_RAX, JNE]);
    let [next, taken] = [0x1008, 0x1018].map(|at| block(at, &[ADD_RAX_RAX, &[0xeb, 0x06]]));
    translate(core, &[branch, next, taken]);
    let mut dice = Dice::new(5);
    let mut outcomes: Vec<bool> = (0..4000).map(|_| dice.next().is_multiple_of(2)).collect();
    for step in 0..steps {
        let is_taken = &mut outcomes[step % 4000];
        *is_taken ^= dice.next().is_multiple_of(100);
        core.executed(BlockId(0), 3, &[]);
        core.executed(BlockId(1 + u32::from(*is_taken)), 2, &[]);
    }
}

#[test]
fn a_predictor_hears_of_all_that_is_skipped_where_it_would_be_wrong_too_often_else() {
    let zen4 = machine("zen4", &[]);
    let plan = Plan {
        certain_instructions: 20_000,
        warm_instructions: 1_000,
        prime_instructions: 500,
        window_instructions: 500,
        stratum_instructions: 60_000,
        ..Plan::default()
    };
    let mut sampled = SampledCore::new(&zen4, Settings::default(), plan);
    let full = FastCore::new(&zen4, Settings::default());
    let mut both = Both { sampled: &mut sampled, full, begins: Vec::new(), sums: [0; 2] };
    rounds(&mut both, 2_000_000);
    let [shown, truth] = both.sums.map(|cycles| cycles as f64);
    assert!(truth > 100_000.0);
    // Hearing of an eighth leaves windows a third too slow.
    assert!((shown / truth - 1.0).abs() < 0.02, "{shown} of {truth}");
    assert!(sampled.steering.is_on());
}

/// Tells both, and adds up the cycles of windows after what was skipped, and of the same instructions.
struct Both<'a> {
    sampled: &'a mut SampledCore,
    full: FastCore,
    /// After how many instructions what was counted, since the last window.
    begins: Vec<(u64, u64)>,
    sums: [u64; 2],
}

impl CoreListener for Both<'_> {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.sampled.translated(id, block);
        self.full.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let (instructions, cycles) =
            (self.sampled.instructions(), self.full.counts()[Event::Cycles]);
        self.begins.push((instructions, cycles));
        let windows = self.sampled.windows();
        self.sampled.executed(id, ran, accesses);
        if self.sampled.windows() > windows {
            let window = self.sampled.latest_window().unwrap();
            let begin = self.begins.iter().find(|(from, _)| *from == window.from).unwrap();
            if window.is_skipped {
                let shown = window.counts[Event::Cycles];
                self.sums = [self.sums[0] + shown, self.sums[1] + cycles - begin.1];
            }
            assert_eq!(window.to, instructions);
            self.begins.clear();
        }
        self.full.executed(id, ran, accesses);
    }
}
