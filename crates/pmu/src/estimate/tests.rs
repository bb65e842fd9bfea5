use super::*;
use crate::{Counters, Grouping, Reading, group};

fn two_groups() -> Grouping {
    let units = vec![vec!["a".to_owned()], vec!["b".to_owned()]];
    group(&Counters::alike(3), &["cycles", "instructions"], &units).unwrap()
}

fn reading(group: usize, counts: [u64; 3]) -> Reading {
    Reading { group, round: 0, counts: counts.to_vec() }
}

#[test]
fn linear_scaling_is_the_count_over_the_share_of_time() {
    let readings = [
        reading(0, [100, 50, 10]),
        reading(1, [100, 50, 7]),
        reading(0, [200, 50, 20]),
        reading(1, [400, 50, 9]),
    ];
    let a = linear(&two_groups(), &readings, 2).unwrap();
    assert_eq!((a.estimate.value, a.counted, a.slices), (30.0 * 800.0 / 300.0, 30, 2));
    assert!((a.share - 0.375).abs() < 1e-12);
    // The rate never changed: nothing says that it might.
    assert_eq!(a.estimate.standard_uncertainty, 0.0);
}

#[test]
fn what_was_never_seen_is_bounded_and_not_nought() {
    let readings = [
        reading(0, [100, 50, 0]),
        reading(1, [100, 50, 7]),
        reading(0, [200, 50, 0]),
        reading(1, [400, 50, 9]),
    ];
    let a = scaled_totals(&two_groups(), &readings)[2].unwrap();
    assert_eq!((a.estimate.value, a.estimator), (0.0, Estimator::Unseen));
    // Three over the share of time.
    let high = a.interval(Coverage::P95).high;
    assert!((high - 3.0 / 0.375).abs() < 1e-3, "{high}");
}

#[test]
fn what_was_never_scheduled_is_not_counted_and_anchors_are_exact() {
    let readings = [reading(0, [100, 50, 10]), reading(0, [100, 60, 10])];
    let totals = totals(&two_groups(), &readings);
    assert_eq!(totals[0].map(|c| (c.estimate.value, c.estimator)), Some((200.0, Estimator::Exact)));
    assert_eq!(totals[1].map(|c| c.counted), Some(110));
    assert_eq!(totals[2].map(|c| c.estimator), Some(Estimator::Exact));
    assert_eq!(totals[3], None);
    assert_eq!(linear(&two_groups(), &readings, 3), None);
}

#[test]
fn one_slice_has_no_spread_and_says_so() {
    let readings = [reading(0, [100, 50, 10]), reading(1, [100, 60, 10])];
    let a = totals(&two_groups(), &readings)[2].unwrap();
    assert!(a.estimate.standard_uncertainty.is_infinite());
    assert_eq!(a.interval(Coverage::P95).low, 10.0);
}

#[test]
fn a_series_keeps_what_was_counted_and_interpolates_between() {
    let mut readings = Vec::new();
    for k in 0..9 {
        let group = usize::from(k % 4 != 0);
        readings.push(reading(group, [100, 50, 10 * k]));
    }
    // Counted in slices 0, 4 and 8: 0, 40 and 80; smoothed to 10, 40 and 70.
    let series = series(&two_groups(), &readings, 2).unwrap();
    let rounded: Vec<f64> = series.iter().map(|count| (10.0 * count).round() / 10.0).collect();
    assert_eq!(rounded, [0.0, 17.5, 25.0, 32.5, 40.0, 47.5, 55.0, 62.5, 80.0]);
}

/// How many of 200 seeds' intervals hold the truth, and the median half-width over linear's, when
/// five groups take turns over a program whose slices count `counts`.
fn coverage(counts: &dyn Fn(u64) -> Vec<u64>) -> (usize, f64) {
    let units: Vec<Vec<String>> = (0..5).map(|k| vec![format!("e{k}")]).collect();
    let grouping = group(&Counters::alike(3), &["cycles", "instructions"], &units).unwrap();
    let mut held = 0;
    let mut ratios = Vec::new();
    for seed in 0..200 {
        let counts = counts(seed);
        let plan =
            crate::schedule::Plan { opening: None, ..crate::schedule::Plan::even(5, 1, seed) };
        let mut scheduler = crate::schedule::Scheduler::new(plan);
        let mut turn = scheduler.start(0);
        let mut readings = Vec::new();
        for &count in &counts {
            let counts = vec![1000, 500, count];
            readings.push(Reading { group: turn.group, round: turn.round, counts });
            turn = scheduler.advance(turn.until);
        }
        let truth = counts.iter().sum::<u64>() as f64;
        let ours = totals(&grouping, &readings)[2].unwrap().interval(Coverage::P95);
        let scaled = linear(&grouping, &readings, 2).unwrap().interval(Coverage::P95);
        held += usize::from(ours.holds(truth));
        ratios.push(ours.half_width() / scaled.half_width());
    }
    ratios.sort_by(f64::total_cmp);
    (held, ratios[100])
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_say_for_noise() {
    let noise = |seed| {
        let mut random = crate::random::Random::new(seed + 1000);
        (0..1000).map(|_| 700 + random.below(600) as u64).collect()
    };
    let (held, ratio) = coverage(&noise);
    // 95 % of 200 is 190, standard deviation 3.
    assert!((181..=199).contains(&held), "{held}");
    assert!((0.8..1.3).contains(&ratio), "{ratio}");
}

#[test]
fn a_walk_is_known_better_than_by_scaling_and_intervals_still_hold() {
    let walk = |seed| {
        let mut random = crate::random::Random::new(seed + 5000);
        let mut level = 5000_i64;
        let mut step = || {
            level = (level + random.below(201) as i64 - 100).max(0);
            level as u64
        };
        (0..1000).map(|_| step()).collect()
    };
    let (held, ratio) = coverage(&walk);
    assert!((181..=200).contains(&held), "{held}");
    assert!(ratio < 0.5, "{ratio}");
}

#[test]
fn an_event_that_was_never_seen_is_bounded_and_not_plus_minus_nothing() {
    let mut readings = Vec::new();
    for k in 0..100 {
        readings.push(Reading { group: k % 2, round: k as u64 / 2, counts: vec![100, 50, 0] });
    }
    let a = totals(&two_groups(), &readings)[2].unwrap();
    assert_eq!((a.estimate.value, a.counted, a.estimator), (0.0, 0, Estimator::Unseen));
    // Three over the share of one half.
    assert!((a.interval(Coverage::P95).high - 6.0).abs() < 1e-6);
}

/// Readings of five groups of one event each over a program whose events all follow `level`, the
/// k-th at k + 1 times its height.
fn following(level: &dyn Fn(u64) -> u64, slices: u64) -> (Grouping, Vec<Reading>) {
    let units: Vec<Vec<String>> = (0..5).map(|k| vec![format!("e{k}")]).collect();
    let grouping = group(&Counters::alike(3), &["cycles", "instructions"], &units).unwrap();
    let plan = crate::schedule::Plan { opening: None, ..crate::schedule::Plan::even(5, 1, 3) };
    let mut scheduler = crate::schedule::Scheduler::new(plan);
    let mut turn = scheduler.start(0);
    let mut readings = Vec::new();
    for k in 0..slices {
        let count = level(k) * (turn.group as u64 + 1);
        let counts = vec![1000, 500, count];
        readings.push(Reading { group: turn.group, round: turn.round, counts });
        turn = scheduler.advance(turn.until);
    }
    (grouping, readings)
}

#[test]
fn a_burst_that_only_other_groups_saw_is_put_where_it_was() {
    // Bursts of four slices, fewer than a round has: the event misses some of them altogether.
    let level = |k: u64| if k % 37 < 4 { 1000 } else { 10 };
    let (grouping, readings) = following(&level, 2000);
    let event = grouping.groups[0].events[2];
    let found = series(&grouping, &readings, event).unwrap();
    let missed = |k: &u64| {
        let start = k - k % 37;
        (start..start + 4).all(|k| readings.get(k as usize).is_none_or(|r| r.group != 0))
    };
    let unseen: Vec<u64> = (0..1990).filter(|k| k % 37 == 0).filter(missed).collect();
    assert!(unseen.len() >= 5, "{unseen:?}");
    let quiet = |k: u64| (15..30).map(|away| found[(k + away) as usize]).sum::<f64>() / 15.0;
    for k in &unseen {
        let inside: f64 = (0..4).map(|away| found[(k + away) as usize]).sum::<f64>() / 4.0;
        assert!(inside > 5.0 * quiet(*k), "{k}: {inside} {}", quiet(*k));
    }
}

#[test]
fn a_steady_series_is_steady_and_what_was_counted_stays() {
    let (grouping, readings) = following(&|_| 70, 500);
    let event = grouping.groups[2].events[2];
    for (count, reading) in series(&grouping, &readings, event).unwrap().iter().zip(&readings) {
        assert!((count - 210.0).abs() < 1e-6, "{count}");
        assert!(reading.group != 2 || *count == 210.0);
    }
}
