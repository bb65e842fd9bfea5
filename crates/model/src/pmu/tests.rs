use super::*;
use crate::core::{Settings, TICKS};
use crate::fast::FastCore;
use crate::stream::{BlockId, CoreListener};
use crate::testing::*;

#[test]
fn events_find_counters_under_constraints_or_the_one_that_cannot_is_named() {
    let alpha = machine("alpha21164", &[]);
    // Cycles only on 0, misses only on 1 and 2: three fit in any order, a fourth does not.
    let wanted = [Event::L1iMisses, Event::Loads, Event::Cycles];
    let places = assign(&alpha.pmu, &wanted).unwrap().places;
    assert_eq!(places[2], (Event::Cycles, Counter::General(0)));
    let mut counters: Vec<Counter> = places.iter().map(|&(_, counter)| counter).collect();
    counters.sort();
    counters.dedup();
    assert_eq!(counters.len(), 3);
    let both = [Event::Cycles, Event::Issues];
    assert_eq!(assign(&alpha.pmu, &both).unwrap_err().event, Event::Issues);
}

#[test]
fn fixed_counters_leave_the_general_ones_free() {
    let zen4 = machine("zen4", &[]);
    let mut wanted = vec![Event::Cycles, Event::Instructions];
    wanted.extend(&Event::ALL[1..7]);
    let places = assign(&zen4.pmu, &wanted).unwrap().places;
    let general = places.iter().filter(|(_, c)| matches!(c, Counter::General(_))).count();
    assert_eq!((places.len(), general), (8, 6));
    wanted.push(Event::FusedPairs);
    assert_eq!(assign(&zen4.pmu, &wanted).unwrap_err().event, Event::FusedPairs);
}

#[test]
fn a_counter_wraps_at_its_width_and_counts_from_when_it_was_programmed() {
    let narrow = machine("zen4", &[("pmu.width_bits", "8")]);
    let mut core = FastCore::new(&narrow, Settings::default());
    repeat(&mut core, NOP, 640);
    let bank = CounterBank::program(&narrow, &[Event::Instructions], &core.counts()).unwrap();
    (0..10).for_each(|_| core.executed(BlockId(0), 64, &[]));
    assert_eq!(bank.read(&core.counts()), [(Event::Instructions, 640 % 256)]);
}

fn sampled(
    machine: &crate::machine::Machine,
    sampling: Sampling,
    rounds: u32,
) -> FastCore<Sampler> {
    let sampler = Sampler::new(machine, &[sampling], 5).unwrap();
    let mut core = FastCore::watched(machine, Settings::default(), sampler);
    // A division, then what can retire together only once it is done.
    translate(&mut core, &[block(0x1000, &[DIV_EBX, NOP, NOP, ADD_RAX_RAX, NOP, IMUL_RAX_RAX])]);
    (0..rounds).for_each(|_| core.executed(BlockId(0), 6, &[]));
    core.finish();
    core
}

#[test]
fn samples_number_the_count_over_the_period() {
    let machine = machine("zen4", &[]);
    let sampling = Sampling {
        event: Event::Instructions,
        period: (100, 100),
        attribution: Attribution::NextCommitting,
    };
    let core = sampled(&machine, sampling, 10_000);
    let taken = core.watcher().samples().len() as u64 + core.watcher().lost();
    // The last interrupt may still be on its way.
    assert!(taken.abs_diff(60_000 / 100) <= 1, "{taken}");
}

/// Mean absolute difference between shares of samples and shares of exact time, in total.
fn error(core: &FastCore<Sampler>) -> f64 {
    let samples = core.watcher().samples();
    let total = core.account().ticks_total() as f64;
    (0..core.program().instructions.len())
        .map(|place| {
            let hits = samples.iter().filter(|s| s.instruction as usize == place).count();
            let truth = core.account().ticks(place) as f64 / total;
            (hits as f64 / samples.len() as f64 - truth).abs()
        })
        .sum::<f64>()
        / 2.0
}

#[test]
fn time_proportional_samples_follow_exact_time_and_late_ones_do_not() {
    let machine = machine("zen4", &[]);
    let sampling = |attribution| Sampling { event: Event::Cycles, period: (61, 67), attribution };
    let proportional = sampled(&machine, sampling(Attribution::TimeProportional), 40_000);
    assert!(proportional.watcher().samples().len() > 8000);
    assert!(error(&proportional) < 0.02, "{}", error(&proportional));
    let late = sampled(&machine, sampling(Attribution::NextCommitting), 40_000);
    assert!(error(&late) > error(&proportional), "{} {}", error(&late), error(&proportional));
    assert_eq!(late.account().ticks_total(), late.cycles() * TICKS);
}

#[test]
fn an_event_without_an_instruction_is_refused() {
    let machine = machine("zen4", &[]);
    let sampling = Sampling {
        event: Event::PrefetchL2,
        period: (10, 10),
        attribution: Attribution::NextCommitting,
    };
    let error = Sampler::new(&machine, &[sampling], 1).unwrap_err().to_string();
    assert_eq!(error, "l2-prefetches belongs to no instruction and cannot be sampled");
}

/// A loop whose branch leaves it every fourth round for a division that makes the next round wait.
fn doubled(gap_cycles: u64) -> (FastCore<DoubleSampler>, [u64; 2]) {
    let alpha = machine("alpha21164", &[]);
    let doubling = Doubling { period_cycles: (90, 110), gap_cycles };
    let sampler = DoubleSampler::new(&alpha, doubling, 7);
    let mut core = FastCore::watched(&alpha, Settings::default(), sampler);
    let body = block(0x1000, &[ADD_RAX_RAX, NOP, JNE]);
    let aside = block(0x1000 + 6, &[DIV_EBX, ADD_RAX_RAX]);
    let beyond = block(0x1000 + 6 + 0x10, &[IMUL_RAX_RAX, NOP]);
    translate(&mut core, &[body, aside, beyond]);
    let mut fell = 0;
    for round in 0..60_000_u64 {
        core.executed(BlockId(0), 3, &[]);
        let is_aside = round % 4 == 3;
        fell += u64::from(is_aside);
        core.executed(BlockId(if is_aside { 1 } else { 2 }), 2, &[]);
    }
    core.finish();
    (core, [fell, 60_000 - fell])
}

#[test]
fn double_samples_pass_everything_as_often_as_it_ran_however_long_it_stalled() {
    for gap_cycles in [1, 8, 32] {
        let (mut core, _) = doubled(gap_cycles);
        let runs: Vec<u64> = core.account().runs().to_vec();
        let samples = core.watcher_mut().take();
        assert!(samples.len() as u64 >= core.cycles() / 110 - 1);
        let mut passed = vec![0_u64; runs.len()];
        samples.iter().flat_map(|s| &s.passed).for_each(|&place| passed[place as usize] += 1);
        let each = 100.0 / gap_cycles as f64;
        for (place, (&ran, &passed)) in runs.iter().zip(&passed).enumerate() {
            // Four standard deviations, were stretches to pass one round each.
            let off = (passed as f64 * each / ran as f64 - 1.0).abs();
            let allowed = 4.0 / (ran as f64 / each).sqrt() * (gap_cycles as f64).sqrt().max(1.0);
            assert!(off < allowed.min(0.2), "gap {gap_cycles}, place {place}: {off}");
        }
    }
}

#[test]
fn ways_out_of_a_branch_are_passed_as_often_as_they_were_gone() {
    let (mut core, [fell, taken]) = doubled(8);
    let samples = core.watcher_mut().take();
    let gone = |to: u32| {
        samples.iter().flat_map(DoubleSample::ways).filter(|&way| way == (2, to)).count() as f64
    };
    let share = gone(3) / (gone(3) + gone(5));
    assert!((share - fell as f64 / (fell + taken) as f64).abs() < 0.02, "{share}");
    // In the order in which they ran, the second interrupt's included.
    for sample in &samples {
        assert!(sample.ways().all(|(from, to)| matches!(
            (from, to),
            (0, 1) | (1, 2) | (2, 3 | 5) | (3, 4) | (5, 6) | (4 | 6, 0)
        )));
        assert_eq!(sample.first(), sample.passed.first().copied().unwrap_or(sample.second));
    }
}

#[test]
fn a_stall_longer_than_the_gap_passes_nothing() {
    let (mut core, _) = doubled(1);
    let samples = core.watcher_mut().take();
    let empty = samples.iter().filter(|sample| sample.passed.is_empty()).count();
    assert!(empty > samples.len() / 4, "the division makes most of the time: {empty}");
    assert!(samples.windows(2).all(|pair| pair[1].cycle - pair[0].cycle >= 90));
}

#[test]
fn a_sampled_branch_tells_its_direction_and_nothing_else_does() {
    let alpha = machine("alpha21164", &[]);
    let sampling = Sampling {
        event: Event::Cycles,
        period: (90, 110),
        attribution: Attribution::NextCommitting,
    };
    let sampler = Sampler::new(&alpha, &[sampling], 3).unwrap();
    let mut core = FastCore::watched(&alpha, Settings::default(), sampler);
    // The branch waits for the multiplication, so that it is found often.
    translate(
        &mut core,
        &[
            block(0x1000, &[IMUL_RAX_RAX, ADD_RAX_RAX, JNE]),
            block(0x1009, &[NOP]),
            block(0x1019, &[NOP]),
        ],
    );
    for round in 0..40_000_u32 {
        core.executed(BlockId(0), 3, &[]);
        core.executed(BlockId(if round % 5 == 0 { 1 } else { 2 }), 1, &[]);
    }
    core.finish();
    let samples = core.watcher().samples();
    assert!(samples.iter().all(|sample| sample.turns.is_some() == (sample.instruction == 2)));
    let of = |way: bool| samples.iter().filter(|sample| sample.turns == Some(way)).count();
    let (taken, straight) = (of(true), of(false));
    assert!(taken + straight > 100, "{taken} {straight}");
    let share = taken as f64 / (taken + straight) as f64;
    assert!((share - 0.8).abs() < 0.1, "{share}");
}
