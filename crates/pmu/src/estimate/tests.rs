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
