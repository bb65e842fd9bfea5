//! Estimates of processes whose truth is known.

use metrology::Coverage;

use super::*;
use crate::machine::Machine;
use crate::testing::Dice;

const STRATA: usize = 150;
/// Stretches in a stratum, of which one is timed.
const STRETCHES: usize = 40;
const INSTRUCTIONS: f64 = 5_000.0;

/// A number between 0 and 1.
fn unit(dice: &mut Dice) -> f64 {
    (dice.next() % 1_000_003) as f64 / 1_000_003.0
}

/// One stretch: its features and its cycles an instruction.
fn stretch(dice: &mut Dice, slowness: f64, missing: f64) -> (Features, f64) {
    let mut features = [0.0; FEATURES];
    let code = 0.4 + slowness * unit(dice);
    let misses = 0.002 * missing * unit(dice);
    features[0] = 1.0;
    features[7] = misses;
    features[6] = misses / 2.0;
    features[9] = code;
    let chance = (0..6).map(|_| unit(dice)).sum::<f64>() / 6.0 - 0.5;
    (features, 0.1 + 1.1 * code + 150.0 * misses + 0.2 * chance)
}

/// A process cut into strata, and its true rate.
fn process(dice: &mut Dice, known: Known) -> (Vec<Observed>, f64) {
    let (mut strata, mut truth) = (Vec::new(), 0.0);
    for place in 0..STRATA {
        let (slowness, missing) = if place % 50 < 30 { (0.6, 1.0) } else { (0.2, 2.0) };
        let all: Vec<_> = (0..STRETCHES).map(|_| stretch(dice, slowness, missing)).collect();
        let mean_of = |k: usize| all.iter().map(|(x, _)| x[k]).sum::<f64>() / STRETCHES as f64;
        let chosen = &all[dice.next() as usize % STRETCHES];
        let mut rates = vec![0.0; Event::ALL.len()];
        rates[Event::Cycles as usize] = chosen.1 as f32;
        truth += all.iter().map(|(_, rate)| rate).sum::<f64>() / STRETCHES as f64 / STRATA as f64;
        strata.push(Observed {
            stands_for: INSTRUCTIONS * STRETCHES as f64,
            timed: INSTRUCTIONS,
            known,
            window: chosen.0,
            stretch: known.of(&std::array::from_fn(mean_of)),
            rates: rates.into(),
        });
    }
    (strata, truth)
}

/// Over many processes: how many intervals held the truth, the mean error and the mean half-width.
fn judged(known: Known, times: u32) -> (u32, f64, f64) {
    let prior = Prior::of(&Machine::named("zen4").unwrap());
    let mut dice = Dice::new(11);
    let (mut held, mut off, mut width) = (0, 0.0, 0.0);
    for _ in 0..times {
        let (strata, truth) = process(&mut dice, known);
        let fitted = Fitted::new(&strata, &prior).unwrap();
        let rate = fitted.rates[Event::Cycles as usize].spread(1.0, 0.0, 0.0);
        let interval = rate.interval(Coverage::P95);
        held += u32::from(interval.holds(truth));
        off += (rate.value / truth - 1.0) / f64::from(times);
        width += interval.half_width() / truth / f64::from(times);
    }
    (held, off, width)
}

#[test]
fn intervals_hold_as_often_as_they_say_whatever_is_known_of_the_strata() {
    for known in Known::KINDS {
        let (held, off, width) = judged(known, 400);
        // 95 in 100, give or take three standard deviations of so many.
        assert!((367..=393).contains(&held), "{known:?}: {held} of 400, ± {width}");
        assert!(off.abs() < 0.002, "{known:?}: {off}");
    }
}

#[test]
fn what_is_known_of_the_whole_makes_intervals_narrower() {
    let [code, outer, _] = Known::KINDS.map(|known| judged(known, 40).2);
    assert!(outer < 0.8 * code, "{outer} against {code}");
}

#[test]
fn a_crowd_of_misses_that_no_window_met_may_cost_anything_from_nothing_to_what_one_does() {
    let prior = Prior::of(&Machine::named("zen4").unwrap());
    let mut dice = Dice::new(5);
    let (mut strata, truth) = process(&mut dice, Known::Outer);
    let before = Fitted::new(&strata, &prior).unwrap();
    // One stratum in 150 has fifty times as many misses as any window.
    strata[149].stretch[6] = 0.1;
    strata[149].stretch[7] = 0.2;
    let after = Fitted::new(&strata, &prior).unwrap();
    let cycles = |fitted: &Fitted| fitted.rates[Event::Cycles as usize].spread(1.0, 0.0, 0.0);
    for each in [0.0, 15.0, 75.0, 150.0] {
        let truth = truth + 0.2 * each / STRATA as f64;
        assert!(cycles(&after).interval(Coverage::P95).holds(truth), "{each} cycles each");
    }
    // Half of what such misses would cost one by one, and as much uncertainty as follows from that.
    let more = cycles(&after).value - cycles(&before).value;
    let full = 0.2 * 150.0 / STRATA as f64;
    assert!((more / full - 0.5).abs() < 0.1, "{more} of {full}");
    let spread = cycles(&after).standard_uncertainty;
    assert!((spread / (full / 12.0_f64.sqrt()) - 1.0).abs() < 0.1, "{spread}");
}
