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
