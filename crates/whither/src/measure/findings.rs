//! What the runs say: each quantity's mean, whether groups of runs agree, what was spent.

use metrology::{
    Compatibility, Estimate, Interval, Levels, Summary, compatible, median, peeking_factor,
    summarise, two_level,
};

use super::conditions::executions;
use super::derived::{Ratio, ratios, relative_of};
use super::experiment::{Reading, Runs};
use super::groups::Turns;
use super::quantity::Choice;
use crate::cli::MeasureJob;

/// Groups of runs under the same conditions are taken for different this often.
pub(super) const FALSE_ALARMS: f64 = 0.01;

/// What was found.
#[derive(Debug)]
pub(super) struct Findings {
    /// By quantity: none where it has fewer than two readings.
    pub(super) direct: Vec<Option<Direct>>,
    pub(super) derived: Vec<Ratio>,
    /// None where there are too few runs for two groups.
    pub(super) groups: Option<Groups>,
    /// Of the measurand, where surroundings were drawn.
    pub(super) levels: Option<Levels>,
    pub(super) spent: Spent,
}

/// One quantity's mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    pub(super) summary: Summary,
    /// With the interval between two of the readings, which supposes nothing.
    pub(super) median: (f64, Interval),
    pub(super) readings: usize,
    /// The part of its standard uncertainty that repeating does not show.
    pub(super) known: f64,
}

/// Groups of runs, compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    /// Readings in a group.
    pub(super) size: usize,
    pub(super) count: usize,
    pub(super) comparison: Compatibility,
    /// The difference of the worst pair, relative to the mean.
    pub(super) difference: f64,
    /// Whether that is more than the uncertainty that was asked for.
    pub(super) matters: bool,
}

impl Groups {
    /// Whether runs were made under different conditions, and it matters.
    pub(super) fn disagree(&self) -> bool {
        !self.comparison.holds_at(FALSE_ALARMS) && self.matters
    }
}

/// Executions, ours and others'.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spent {
    /// Ours that were used.
    pub(super) used: u64,
    /// One event a run, as often as ours counted it: the same uncertainty.
    pub(super) one_by_one: Option<u64>,
    /// Counters full, the measurand in a group of its own.
    pub(super) full_groups: Option<u64>,
}

impl Findings {
    pub(super) fn disagrees(&self) -> bool {
        self.groups.as_ref().is_some_and(Groups::disagree)
    }
}

/// What repeated looks cost; nothing where the number of runs was fixed.
pub(super) fn widening(job: &MeasureJob) -> f64 {
    match job.runs {
        Some(_) => 1.0,
        None => peeking_factor(job.coverage),
    }
}

pub(super) fn find(job: &MeasureJob, choice: &Choice, turns: &Turns, runs: &Runs) -> Findings {
    let widening = widening(job);
    let direct: Vec<Option<Direct>> = (0..choice.quantities.len())
        .map(|place| direct(job, &runs.readings, place, widening))
        .collect();
    let measurand: Vec<f64> =
        runs.readings.iter().filter_map(|r| r.value(choice.measurand)).collect();
    Findings {
        derived: ratios(choice, &runs.readings, widening),
        groups: groups(&measurand, runs.needed, job.uncertainty),
        levels: levels(job, choice, &runs.readings),
        spent: spent(job, choice, turns, runs),
        direct,
    }
}

fn direct(job: &MeasureJob, readings: &[Reading], place: usize, widening: f64) -> Option<Direct> {
    let values: Vec<f64> = readings.iter().filter_map(|r| r.value(place)).collect();
    let mut summary = summarise(&values, job.coverage, widening).ok()?;
    let having = readings.iter().filter(|r| r.value(place).is_some());
    let doubts: Vec<_> = having.map(|r| r.doubt(place)).collect();
    let n = values.len() as f64;
    // What each reading leaves uncertain shows in their spread, but for luck.
    let own = doubts.iter().map(|d| d.own.powi(2)).sum::<f64>().sqrt() / n;
    if summary.estimate.standard_uncertainty < own {
        summary.estimate = Estimate::known(summary.estimate.value, own);
        summary.interval = summary.estimate.interval(job.coverage);
    }
    // What is counted in excess is the same in all of them: it lies between none and the bound.
    let excess = doubts.iter().map(|d| d.excess).sum::<f64>() / n;
    let known = Estimate::within(0.0, excess).standard_uncertainty;
    if known > 0.0 {
        summary.estimate = summary.estimate.plus(Estimate::known(0.0, known));
        let wider = summary.estimate.interval(job.coverage);
        summary.interval.low = summary.interval.low.min(wider.low);
        summary.interval.high = summary.interval.high.max(wider.high);
    }
    let median = median(&values, job.coverage).ok()?;
    Some(Direct { summary, median, readings: values.len(), known: known.max(own) })
}

/// Groups of as many runs as the measurand needed; where all runs make one group, its halves.
pub(super) fn groups(values: &[f64], needed: usize, asked: f64) -> Option<Groups> {
    let size = match values.len() >= 2 * needed.max(1) {
        true => needed.max(2),
        false => values.len().div_ceil(2),
    };
    let groups: Vec<&[f64]> = values.chunks(size.max(1)).collect();
    let comparison = compatible(&groups).ok()?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let difference = comparison.worst.map_or(0.0, |worst| worst.difference / mean.abs());
    let matters = difference.abs() > asked;
    Some(Groups { size, count: groups.len(), comparison, difference, matters })
}

fn levels(job: &MeasureJob, choice: &Choice, readings: &[Reading]) -> Option<Levels> {
    if executions(job.varies) == 1 {
        return None;
    }
    let by_draw: Vec<Vec<f64>> =
        readings.iter().map(|r| r.values(choice.measurand).collect()).collect();
    two_level(&by_draw).ok()
}

fn spent(job: &MeasureJob, choice: &Choice, turns: &Turns, runs: &Runs) -> Spent {
    let each = executions(job.varies) as u64;
    let used = runs.readings.iter().map(|r| r.executions.len() as u64).sum();
    let counted: Vec<usize> = choice
        .quantities
        .iter()
        .enumerate()
        .filter(|(_, quantity)| quantity.needs_counter())
        .map(|(place, _)| place)
        .collect();
    if counted.len() < 2 {
        return Spent { used, one_by_one: None, full_groups: None };
    }
    let times =
        |place: usize| runs.readings.iter().filter(|r| r.value(place).is_some()).count() as u64;
    let needed = runs.needed as u64;
    let others = counted.iter().filter(|place| **place != choice.measurand);
    let one_by_one = needed + others.map(|place| times(*place)).sum::<u64>();
    // The same number of counters, the measurand one event among others.
    let width = turns.groups.iter().map(Vec::len).max().unwrap_or(0) + 1;
    let most = counted.iter().filter(|p| **p != choice.measurand).map(|p| times(*p)).max();
    let full = if turns.groups.len() > 1 {
        counted.len().div_ceil(width) as u64 * most.unwrap_or(0).max(needed)
    } else {
        used / each.max(1)
    };
    Spent { used, one_by_one: Some(one_by_one * each), full_groups: Some(full * each) }
}

/// The relative standard uncertainty that the measurand reached.
pub(super) fn reached(choice: &Choice, findings: &Findings) -> Option<f64> {
    findings.direct.get(choice.measurand)?.as_ref().and_then(|d| relative_of(&d.summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_as_large_as_the_measurand_needed_or_halves() {
        let values: Vec<f64> = (0..10).map(|k| 100.0 + f64::from(k % 3)).collect();
        let two = groups(&values, 5, 0.01).unwrap();
        assert_eq!((two.size, two.count), (5, 2));
        let halves = groups(&values, 10, 0.01).unwrap();
        assert_eq!((halves.size, halves.count), (5, 2));
        assert!(groups(&values[..2], 2, 0.01).is_none());
    }

    #[test]
    fn a_difference_below_what_was_asked_does_not_matter() {
        let counts = [1_000_000.0, 1_000_000.0, 1_000_000.0, 1_000_003.0, 1_000_003.0, 1_000_003.0];
        let tiny = groups(&counts, 3, 0.01).unwrap();
        assert!(tiny.comparison.p < FALSE_ALARMS && !tiny.disagree());
        let drifted = [100.0, 100.1, 99.9, 110.0, 110.1, 109.9];
        let found = groups(&drifted, 3, 0.01).unwrap();
        assert!(found.disagree());
        let worst = found.comparison.worst.unwrap();
        assert_eq!((worst.first, worst.second), (0, 1));
    }
}
