//! What is known of slices in which an event was not counted.
//!
//! Instructions per cycle of every slice; and the other groups' events, counted in slices near by.
//! An event and its cause are hardly ever in the same group, but where misses of one kind are many,
//! those of another often are.

use super::around::around;
use super::mixture::Column;
use crate::{Grouping, Reading};

/// How far around a slice other events are looked at, in slices: near for bursts, wide for phases.
const REACHES: [f64; 2] = [2.0, 8.0];
/// Pieces of the line over instructions per cycle.
const HATS: usize = 12;
/// More slices than this are not searched for what other groups saw: it takes room for a number an
/// event and slice, and neighbours of the event itself are then near.
pub(super) const SLICES_MAX: usize = 50_000;

/// A known rate in every slice.
pub(super) type Known = Vec<f64>;

/// Instructions per cycle as hats over its quantiles; they add up to 1 in every slice. Empty without
/// a second anchor, or if instructions per cycle never vary.
pub(super) fn hats(readings: &[Reading], anchors: usize) -> Vec<Known> {
    if anchors < 2 {
        return Vec::new();
    }
    let all: Vec<f64> = readings.iter().map(Reading::instructions_per_cycle).collect();
    let mut sorted = all.clone();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    let quantile = |k: usize| sorted.get(k * last / (HATS - 1)).copied();
    let mut tips: Vec<f64> = (0..HATS).filter_map(quantile).collect();
    tips.dedup();
    if tips.len() < 2 {
        return Vec::new();
    }
    let mut hats = vec![vec![0.0; all.len()]; tips.len()];
    for (place, &x) in all.iter().enumerate() {
        let right = tips.partition_point(|&tip| tip < x).clamp(1, tips.len() - 1);
        let (from, to) = (tips[right - 1], tips[right]);
        let along = ((x - from) / (to - from)).clamp(0.0, 1.0);
        hats[right - 1][place] = 1.0 - along;
        hats[right][place] = along;
    }
    hats
}

/// The rates of the events of other groups, smoothed over what lies around. Those that share a group
/// with the event were counted where it was and say nothing about elsewhere.
pub(super) fn others(grouping: &Grouping, readings: &[Reading], event: usize) -> Vec<Known> {
    let mut found = Vec::new();
    if readings.len() > SLICES_MAX || grouping.anchors == 0 {
        return found;
    }
    for (place, group) in grouping.groups.iter().enumerate() {
        if group.events.contains(&event) {
            continue;
        }
        let here = |(_, reading): &(usize, &Reading)| reading.group == place;
        let turns: Vec<(usize, &Reading)> = readings.iter().enumerate().filter(here).collect();
        let places: Vec<usize> = turns.iter().map(|(place, _)| *place).collect();
        let column = |k: usize| -> Vec<f64> {
            turns.iter().map(|(_, r)| r.counts.get(k).map_or(0.0, |&c| c as f64)).collect()
        };
        let sizes = column(0);
        for reach in REACHES {
            let cycles = around(&places, &sizes, readings.len(), reach);
            for k in grouping.anchors..group.events.len() {
                let counts = column(k);
                if counts.iter().all(|count| *count <= 0.0) {
                    continue;
                }
                let sums = around(&places, &counts, readings.len(), reach);
                let rate =
                    |(sum, cycles): (&f64, &f64)| if *cycles > 0.0 { sum / cycles } else { 0.0 };
                found.push(sums.iter().zip(&cycles).map(rate).collect());
            }
        }
    }
    found
}

/// What a fit needs of a known rate.
pub(super) fn column(known: &[f64], places: &[usize]) -> Column {
    let at_nodes = places.iter().map(|&place| known.get(place).copied().unwrap_or(0.0)).collect();
    Column { at_nodes, mean: known.iter().sum::<f64>() / known.len().max(1) as f64 }
}
