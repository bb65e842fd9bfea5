//! The total of an event, by the estimator that the data favour.

use std::collections::BTreeMap;

use metrology::Estimate;

use super::explain::Pieces;
use super::frame::Frame;
use super::integrate::{Integral, integrate, integrate_by};
use super::line::{Line, Turns};
use super::{Counted, Estimator, linear, tail};
use crate::{Grouping, Reading};

/// Slices that must have counted an event before anything but scaling is tried.
const SLICES_MIN: usize = 6;
/// An event seen in fewer slices says how large a burst may have been missed of one never seen.
const RARELY: usize = 5;
/// With none in n of its slices, more than 3/n of all slices hold one with a chance of one in
/// twenty.
const RULE_OF_THREE: f64 = 3.0;
/// Degrees of freedom that a number must be worth before it is fitted: where a few lumps make all of
/// the spread, slopes would follow those lumps and call the rest explained.
const FREEDOM_A_NUMBER: f64 = 2.0;
/// And before any number is: one line through what a beginning shows says nothing of the rest.
const FREEDOM_MIN: f64 = SLICES_MIN as f64;
/// Where the ± of few degrees of freedom and that of a known spread are made alike.
const UPPER_POINT: f64 = 0.975;

/// What all events of the same groups share.
struct Shared {
    frame: Frame,
    pieces: Vec<Pieces>,
    missed: f64,
}

impl Shared {
    fn new(readings: &[Reading], groups: &[usize], anchors: usize) -> Shared {
        let frame = Frame::new(readings, groups);
        let pieces = Pieces::ladder(&frame, readings, anchors);
        let missed = missed(&frame, readings, anchors);
        Shared { frame, pieces, missed }
    }
}

/// The totals of all events, in the grouping's order; `None` for what was never counted.
///
/// Readings are in order of time, thread after thread where there are several. The rule:
///
/// - counted in every slice: exact;
/// - counted in fewer than six slices: linear scaling;
/// - never seen in its slices: 0, bounded above by three in twenty of the bursts that the run's
///   other rarely seen events had, over the share of time;
/// - else per cycle, or by regression on instructions per cycle, straight or bent, whichever has the
///   smallest variance; the fewer slices carry the spread, the fewer bends are tried.
pub fn totals(grouping: &Grouping, readings: &[Reading]) -> Vec<Option<Counted>> {
    let turns = Turns::new(grouping, readings);
    let mut frames: BTreeMap<Vec<usize>, Shared> = BTreeMap::new();
    let mut bursts = Vec::new();
    let mut all: Vec<Option<Counted>> = Vec::with_capacity(grouping.events.len());
    for event in 0..grouping.events.len() {
        let groups: Vec<usize> = grouping.groups_of(event).collect();
        let shared = frames
            .entry(groups)
            .or_insert_with_key(|groups| Shared::new(readings, groups, grouping.anchors));
        let line = Line::new(grouping, readings, &turns, event);
        let seen = line.seen();
        // What every slice shows is not rare, however few the slices are.
        if (1..=RARELY).contains(&seen) && seen < line.slices() {
            bursts.push(line.counted as f64 / seen as f64);
        }
        all.push(one(&line, shared));
    }
    bound_unseen(&mut all, bursts);
    all
}

/// The totals of all events by linear scaling alone, for slices whose sizes say little; what was
/// never seen is bounded as in [`totals`].
pub fn scaled_totals(grouping: &Grouping, readings: &[Reading]) -> Vec<Option<Counted>> {
    let turns = Turns::new(grouping, readings);
    let mut bursts = Vec::new();
    let mut all = Vec::with_capacity(grouping.events.len());
    for event in 0..grouping.events.len() {
        let line = Line::new(grouping, readings, &turns, event);
        let seen = line.seen();
        // What every slice shows is not rare, however few the slices are.
        if (1..=RARELY).contains(&seen) && seen < line.slices() {
            bursts.push(line.counted as f64 / seen as f64);
        }
        all.push(linear::scaled(&line));
    }
    bound_unseen(&mut all, bursts);
    all
}

fn bound_unseen(all: &mut [Option<Counted>], bursts: Vec<f64>) {
    let burst = large(bursts);
    for counted in all.iter_mut().flatten().filter(|c| c.counted == 0 && c.share < 1.0) {
        *counted = unseen(*counted, burst);
    }
}

/// A burst such as three quarters of the rarely seen do not exceed; 1 if there were none.
fn large(mut bursts: Vec<f64>) -> f64 {
    bursts.sort_by(f64::total_cmp);
    bursts.get(bursts.len() * 3 / 4).copied().unwrap_or(1.0).max(1.0)
}

fn one(line: &Line, shared: &Shared) -> Option<Counted> {
    let frame = &shared.frame;
    let n = line.slices();
    if n == 0 {
        return None;
    }
    if n == line.len() {
        return Some(Counted::exact(line.counted, n));
    }
    if n < SLICES_MIN || frame.len() < SLICES_MIN {
        return linear::scaled(line);
    }
    let rates: Vec<f64> =
        frame.nodes().map(|(place, size)| line.count(place).unwrap_or(0.0) / size).collect();
    let mut plain = integrate(frame, &rates);
    plain.variance += shared.missed * plain.value * plain.value;
    let fitted = shared
        .pieces
        .iter()
        .filter(|p| {
            plain.degrees_of_freedom > FREEDOM_MIN.max(FREEDOM_A_NUMBER * p.numbers() as f64)
        })
        .map(|pieces| regression(frame, pieces, &rates))
        .min_by(|a, b| a.variance.total_cmp(&b.variance));
    let (estimator, best) = match fitted {
        Some(fitted) if fitted.variance < plain.variance => (Estimator::Regression, fitted),
        _ => (Estimator::PerCycle, plain),
    };
    let counts: Vec<f64> = frame.nodes().filter_map(|(place, _)| line.count(place)).collect();
    let beyond = tail::beyond(&counts, frame.share);
    // A slice that overran did one thing all the time: this, at the highest rate that was seen, or not.
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let overran = highest * frame.overlong;
    let scale = (best.variance + beyond * beyond + overran * overran).sqrt();
    let value = best.value.max(line.counted as f64);
    let uncertainty = scale * wider(best.degrees_of_freedom).max(further(scale / value));
    let estimate = Estimate::known(value, uncertainty);
    Some(Counted { estimate, counted: line.counted, share: frame.share, slices: n, estimator })
}

/// How much farther Student's distribution reaches than the normal one. A spread that rests on few
/// lumps is itself known badly, and lumps that were missed make it too small; so the u of a total is
/// the one that leads to Student's 95 % by the normal factor, and five u mean as much for three lumps
/// as for a thousand.
fn wider(degrees_of_freedom: f64) -> f64 {
    metrology::student_quantile(UPPER_POINT, degrees_of_freedom)
        / metrology::normal_quantile(UPPER_POINT)
}

/// How much farther up than down the truth may lie of a total that was inferred from lumps, given its
/// relative spread.
///
/// The more lumps there are, the more their number varies. Where few were seen there may have been
/// many; so the limit above is the total from which so few as were seen would be as unlikely as the
/// limit says: h = k·u·√(1 + h/value). For lumps that are alike this is the limit of Poisson's
/// distribution.
fn further(relative: f64) -> f64 {
    let half = metrology::normal_quantile(UPPER_POINT) * relative / 2.0;
    if half.is_finite() { half + (1.0 + half * half).sqrt() } else { 1.0 }
}

fn regression(frame: &Frame, pieces: &Pieces, rates: &[f64]) -> Integral {
    let (left, explained, squares) = pieces.explain(rates);
    let integral = integrate_by(frame, &left, &squares);
    let variance = integral.variance + pieces.sway(&squares, integral.is_walk);
    Integral { value: integral.value + explained, variance, ..integral }
}

/// By how much more, in parts, the group's slices miss the run's instructions than their spread
/// allows; squared.
///
/// Instructions are counted all the time, so how far their total would be off, had they been counted
/// in this group's slices only, is known. Where a run ends unlike it went, and the group had no turn
/// at the end, nothing that it counted tells of it, but this does.
fn missed(frame: &Frame, readings: &[Reading], anchors: usize) -> f64 {
    if anchors < 2 || frame.len() < SLICES_MIN {
        return 0.0;
    }
    let instructions = |reading: &Reading| reading.counts.get(1).map_or(0.0, |&count| count as f64);
    let all: f64 = readings.iter().map(instructions).sum();
    let rate = |(place, size): (usize, f64)| readings.get(place).map_or(0.0, instructions) / size;
    let rates: Vec<f64> = frame.nodes().map(rate).collect();
    let inferred = integrate(frame, &rates);
    let off = inferred.value - all;
    if all > 0.0 { ((off * off - inferred.variance) / (all * all)).max(0.0) } else { 0.0 }
}

/// What never being seen leaves possible.
fn unseen(counted: Counted, burst: f64) -> Counted {
    let bound = RULE_OF_THREE / counted.share.max(f64::MIN_POSITIVE) * burst;
    let estimate = Estimate::known(0.0, bound / metrology::normal_quantile(UPPER_POINT));
    Counted { estimate, estimator: Estimator::Unseen, ..counted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counters, group};

    #[test]
    fn few_degrees_of_freedom_widen_as_students_distribution_does() {
        assert!((wider(f64::INFINITY) - 1.0).abs() < 1e-9);
        // 3.182 and 12.706 in tables, over 1.960.
        assert!((wider(3.0) - 1.6237).abs() < 1e-3);
        assert!((wider(1.0) - 6.4829).abs() < 1e-3);
    }

    #[test]
    fn few_lumps_reach_as_far_up_as_poissons_limits_do() {
        // The upper limits of 97.5 % for 5, 10, 20 and 50 seen, from tables of the chi-squared
        // distribution.
        for (seen, limit) in [(5.0_f64, 11.668), (10.0, 18.390), (20.0, 30.888), (50.0, 65.919)] {
            let relative = 1.0 / seen.sqrt();
            let up = seen * (1.0 + 1.959_964 * relative * further(relative));
            assert!((up / limit - 1.0).abs() < 0.01, "{seen}: {up} {limit}");
        }
        assert_eq!(further(0.0), 1.0);
    }

    #[test]
    fn an_end_that_a_group_did_not_see_is_known_from_the_instructions() {
        let anchors = ["cycles", "instructions"];
        let units = [vec!["a".to_owned()], vec!["b".to_owned()]];
        let counters =
            Counters { fixed: anchors.map(str::to_owned).to_vec(), ..Counters::alike(1) };
        let grouping = group(&counters, &anchors, &units).unwrap();
        // As steady as can be; then the last slice, which only the second group has, does half as much.
        let reading = |k: u64| {
            let done = if k == 399 { 1000 } else { 2000 };
            let count = done / 2 + k * k % 5;
            Reading { group: (k % 2) as usize, round: k / 2, counts: vec![1000, done, count] }
        };
        let readings: Vec<Reading> = (0..400).map(reading).collect();
        let truth: f64 = readings.iter().map(|r| r.counts[2] as f64).sum();
        let counted = totals(&grouping, &readings)[2].unwrap();
        let off = counted.estimate.value - truth;
        assert_eq!(counted.estimator, Estimator::PerCycle);
        assert!(off > 400.0 && off < 2.0 * counted.estimate.standard_uncertainty, "{counted:?}");
    }

    /// What is said of 9,000 cycles of waiting in ten lumps, of which every other slice sees five;
    /// instructions fall by `part` of each.
    fn ten_lumps(part: u64) -> Counted {
        let anchors = ["cycles", "instructions"];
        let units = [vec!["waits".to_owned()], vec!["loads".to_owned()]];
        let counters =
            Counters { fixed: anchors.map(str::to_owned).to_vec(), ..Counters::alike(1) };
        let grouping = group(&counters, &anchors, &units).unwrap();
        let waits = |k: u64| if matches!(k % 200, 0 | 101) { 900 } else { 0 };
        let reading = |k: u64| {
            let (group, instructions) = ((k % 2) as usize, 2000 - part * waits(k) + k * 7919 % 97);
            let count = if group == 0 { waits(k) } else { 7 };
            Reading { group, round: k / 2, counts: vec![1000, instructions, count] }
        };
        let readings: Vec<Reading> = (0..1000).map(reading).collect();
        totals(&grouping, &readings)[2].unwrap()
    }

    #[test]
    fn few_lumps_bear_a_straight_line_where_instructions_tell_of_them() {
        let counted = ten_lumps(1);
        assert_eq!((counted.estimator, counted.counted), (Estimator::Regression, 4500));
        let off = (counted.estimate.value - 9000.0).abs();
        assert!(off < 2.0 * counted.estimate.standard_uncertainty, "{counted:?}");
        assert!(counted.estimate.standard_uncertainty < 500.0, "{counted:?}");
    }

    #[test]
    fn few_lumps_of_which_instructions_know_nothing_stay_uncertain() {
        let counted = ten_lumps(0);
        let off = (counted.estimate.value - 9000.0).abs();
        assert!(off < 2.0 * counted.estimate.standard_uncertainty, "{counted:?}");
        assert!(counted.estimate.standard_uncertainty > 1500.0, "{counted:?}");
    }
}
