//! How far a multiplexed distribution over time is from the full one.

use model::event::Event;
use pmu::estimate::Series;
use pmu::schedule::Plan;
use pmu::{Grouping, Reading};

use super::replay::{Sums, events_of, replay};

/// An event that is rarer than once in so many cycles is not rated.
const RATED_CYCLES: u64 = 10_000;

/// One event's distances from the full counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Distance {
    /// The event.
    pub event: Event,
    /// Of linear scaling within each round.
    pub linear: f64,
    /// Of our series.
    pub ours: f64,
}

/// An event's full counts, and ours and linear scaling's guesses, a bin a round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bins {
    /// Cycles.
    pub cycles: Vec<f64>,
    /// The truth.
    pub full: Vec<f64>,
    /// Each round's slice, scaled.
    pub linear: Vec<f64>,
    /// Our series, added up.
    pub ours: Vec<f64>,
}

/// Σ P ln(P/Q) over bins, counts normalised; an empty bin holds half a count, and so does one with
/// less: else a guess of nearly nothing would be judged by how near to nothing it is.
pub fn distance(full: &[f64], guess: &[f64]) -> f64 {
    let filled = |counts: &[f64]| -> Vec<f64> {
        let filled: Vec<f64> = counts.iter().map(|c| c.max(0.5)).collect();
        let sum: f64 = filled.iter().sum();
        filled.iter().map(|c| c / sum).collect()
    };
    let (p, q) = (filled(full), filled(guess));
    p.iter().zip(&q).map(|(p, q)| p * (p / q).ln()).sum()
}

/// Turns in whole slices, as the paper has them.
pub fn plan(groups: usize, slice: u64, seed: u64) -> Plan {
    Plan { opening: None, ..Plan::even(groups, slice, seed) }
}

/// The bins of one event. A last round that not every group saw is left out.
pub fn bins(sums: &Sums, all: &Series<'_>, ends: &[usize], place: usize) -> Option<Bins> {
    let (grouping, readings) = (all.grouping(), all.readings());
    let event = *events_of(grouping).get(place)?;
    let series = all.of(place)?;
    let mut bins = Bins::default();
    let mut from = 0;
    let mut first = 0;
    while first < readings.len() {
        let round = readings[first].round;
        let in_round = readings[first..].iter().take_while(|reading| reading.round == round);
        let last = first + in_round.count();
        let slices = &readings[first..last];
        let to = *ends.get(last - 1)?;
        let column = |reading: &Reading| {
            let group = grouping.groups.get(reading.group)?;
            let column = group.events.iter().position(|&e| e == place)?;
            Some((*reading.counts.get(column)?, *reading.counts.first()?))
        };
        if slices.len() == grouping.groups.len() {
            let (count, cycles) = slices.iter().filter_map(column).next()?;
            let all: u64 = slices.iter().filter_map(|r| r.counts.first()).sum();
            bins.cycles.push(all as f64);
            bins.full.push(sums.between(event, from, to) as f64);
            bins.linear.push(count as f64 * all as f64 / cycles.max(1) as f64);
            bins.ours.push(series.get(first..last)?.iter().sum());
        }
        (first, from) = (last, to);
    }
    Some(bins)
}

/// The distances of all rated events.
pub fn distances(sums: &Sums, grouping: &Grouping, slice: u64, seed: u64) -> Vec<Distance> {
    let (readings, ends) = replay(sums, grouping, plan(grouping.groups.len(), slice, seed));
    let series = Series::new(grouping, &readings);
    let cycles = sums.total(Event::Cycles);
    let rated = |event: Event| sums.total(event) >= cycles / RATED_CYCLES;
    let one = |(place, event): (usize, Event)| {
        let bins = bins(sums, &series, &ends, place)?;
        (bins.full.len() > 1).then(|| Distance {
            event,
            linear: distance(&bins.full, &bins.linear),
            ours: distance(&bins.full, &bins.ours),
        })
    };
    let events = events_of(grouping).into_iter().enumerate().skip(grouping.anchors);
    events.filter(|(_, event)| rated(*event)).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_of_known_distributions() {
        assert_eq!(distance(&[1.0, 3.0], &[10.0, 30.0]), 0.0);
        let halves = distance(&[1.0, 1.0], &[1.0, 3.0]);
        let expected = 0.5 * (0.5_f64 / 0.25).ln() + 0.5 * (0.5_f64 / 0.75).ln();
        assert!((halves - expected).abs() < 1e-12);
        // An empty bin holds half a count.
        let empty = distance(&[2.0, 2.0], &[2.0, 0.0]);
        let expected = 0.5 * (0.5_f64 / 0.8).ln() + 0.5 * (0.5_f64 / 0.2).ln();
        assert!((empty - expected).abs() < 1e-12);
        assert_eq!(distance(&[2.0, 2.0], &[2.0, 0.003]), empty);
    }
}
