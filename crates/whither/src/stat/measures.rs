//! Derived measures of what was counted.

use metrology::Estimate;
use pmu::{Grouping, Inputs, Metric, Reading};

use super::batch::{Batch, CountRow, Part};

/// A measure and its value.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    pub(crate) metric: Metric,
    /// The modifiers of the events that it was computed from: `u`, `k` or nothing.
    pub(crate) modifiers: String,
    pub(crate) part: Part,
    pub(crate) value: Result<Estimate, String>,
}

/// Slices in which events were counted, for what varies together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slices {
    pub(crate) grouping: Option<Grouping>,
    /// One list a thread or CPU.
    pub(crate) readings: Vec<Vec<Reading>>,
}

/// What formulas need beside counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants(pub(crate) Vec<(&'static str, f64)>);

/// A batch as formulas see it: counts by plain name, clocks in seconds.
pub(crate) struct Given<'a> {
    pub(crate) rows: &'a [CountRow],
    pub(crate) constants: &'a Constants,
    pub(crate) modifiers: &'a str,
    pub(crate) slices: &'a Slices,
}

impl Given<'_> {
    fn row(&self, name: &str) -> Option<&CountRow> {
        let of = |row: &&CountRow| row.name == name && modifiers(&row.typed) == self.modifiers;
        self.rows.iter().find(of)
    }
}

/// What stands after the last colon of a typed event, if it is modifiers.
pub(crate) fn modifiers(typed: &str) -> &str {
    let letters = typed.rsplit_once(':').map_or("", |(_, letters)| letters);
    if letters.chars().all(|c| "ukp".contains(c)) { letters } else { "" }
}

const NANOSECONDS: f64 = 1e-9;

impl Inputs for Given<'_> {
    fn value(&self, name: &str) -> Option<Estimate> {
        if let Some((_, value)) = self.constants.0.iter().find(|(known, _)| *known == name) {
            return Some(Estimate::exact(*value));
        }
        let row = self.row(name)?;
        let total = row.total.as_ref().ok()?;
        Some(if row.is_clock { total.estimate.scaled(NANOSECONDS) } else { total.estimate })
    }

    fn covariance(&self, one: &str, other: &str) -> f64 {
        let u = |name: &str| self.value(name).map_or(0.0, |e| e.standard_uncertainty);
        let (u, v) = (u(one), u(other));
        if u == 0.0 || v == 0.0 || !u.is_finite() || !v.is_finite() {
            return 0.0;
        }
        let typed = |name: &str| self.row(name).map(|row| row.typed.as_str());
        match (typed(one), typed(other)) {
            (Some(one), Some(other)) => u * v * self.slices.correlation(one, other),
            _ => 0.0,
        }
    }
}

impl Slices {
    /// How two events go up and down together in the slices that counted both; 0 where none did:
    /// events of different groups saw different slices, and their errors are independent.
    ///
    /// Differences of neighbours' rates are taken, as the estimators take them, so that a common
    /// trend of the whole run, which interpolation follows, does not count.
    pub(crate) fn correlation(&self, one: &str, other: &str) -> f64 {
        let Some(grouping) = &self.grouping else { return 0.0 };
        let (Some(a), Some(b)) = (grouping.find(one), grouping.find(other)) else { return 0.0 };
        let (mut aa, mut bb, mut ab, mut pairs) = (0.0, 0.0, 0.0, 0);
        for (group, members) in grouping.groups.iter().enumerate() {
            let place = |event| members.events.iter().position(|&member| member == event);
            let (Some(a), Some(b)) = (place(a), place(b)) else { continue };
            for readings in &self.readings {
                let of_group = readings.iter().filter(|reading| reading.group == group);
                let rates: Vec<(f64, f64)> =
                    of_group.filter_map(|reading| rates(reading, a, b)).collect();
                for pair in rates.windows(2) {
                    let [(x, y), (z, w)] = pair else { continue };
                    let (dx, dy) = (z - x, w - y);
                    (aa, bb, ab) = (aa + dx * dx, bb + dy * dy, ab + dx * dy);
                    pairs += 1;
                }
            }
        }
        // Two differences say nothing about a correlation.
        if pairs < 3 || aa <= 0.0 || bb <= 0.0 {
            0.0
        } else {
            (ab / (aa * bb).sqrt()).clamp(-1.0, 1.0)
        }
    }
}

/// Both counts for one of the first anchor.
fn rates(reading: &Reading, a: usize, b: usize) -> Option<(f64, f64)> {
    let size = *reading.counts.first()? as f64;
    let count = |place: usize| reading.counts.get(place).map(|&count| count as f64 / size);
    (size > 0.0).then(|| Some((count(a)?, count(b)?))).flatten()
}

/// Every measure whose events were all asked for, once for each set of modifiers.
pub(crate) fn measures(
    metrics: &[Metric],
    batch: &Batch,
    constants: &Constants,
    slices: &Slices,
) -> Vec<Measure> {
    let mut all_modifiers: Vec<&str> = batch.rows.iter().map(|row| modifiers(&row.typed)).collect();
    all_modifiers.sort_unstable();
    all_modifiers.dedup();
    // A batch is one part here; parts are put together afterwards.
    let part = batch.rows.first().map_or(Part::default(), |row| row.part.clone());
    let mut found = Vec::new();
    for modifiers in all_modifiers {
        let given = Given { rows: &batch.rows, constants, modifiers, slices };
        let is_known = |name: &String| {
            constants.0.iter().any(|(known, _)| known == name) || given.row(name).is_some()
        };
        for metric in metrics.iter().filter(|metric| metric.formula.names().iter().all(is_known)) {
            let value = metric.formula.evaluate(&given).map_err(|error| error.to_string());
            let (modifiers, part) = (modifiers.to_owned(), part.clone());
            found.push(Measure { metric: metric.clone(), modifiers, part, value });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::testing::{batch, counted, refused};
    use pmu::{Counters, group, metrics};

    #[test]
    fn measures_are_those_whose_events_were_counted_with_their_modifiers() {
        let rows = vec![
            counted("cycles:u", 100.0, 0.0),
            counted("instructions:u", 200.0, 0.0),
            counted("instructions", 900.0, 0.0),
            counted("task-clock", 2e9, 0.0),
        ];
        let constants = Constants(vec![("seconds", 4.0)]);
        let found = measures(&metrics().unwrap(), &batch(rows), &constants, &Slices::default());
        let value = |name: &str, modifiers: &str| {
            let of = |m: &&Measure| m.metric.name == name && m.modifiers == modifiers;
            found.iter().find(of).map(|m| m.value.clone().unwrap().value)
        };
        assert_eq!(value("ipc", "u"), Some(2.0));
        assert_eq!(value("ipc", ""), None);
        assert_eq!(value("cpus", ""), Some(0.5));
    }

    #[test]
    fn a_measure_of_an_event_that_was_not_counted_says_which() {
        let rows = vec![refused("cycles"), counted("instructions", 1.0, 0.0)];
        let constants = Constants::default();
        let found = measures(&metrics().unwrap(), &batch(rows), &constants, &Slices::default());
        let ipc = found.iter().find(|m| m.metric.name == "ipc").unwrap();
        assert_eq!(ipc.value, Err("cycles was not counted".into()));
    }

    #[test]
    fn events_of_one_group_that_go_together_leave_their_ratio_sure() {
        let units = [vec!["a".to_owned(), "b".to_owned()], vec!["c".to_owned()]];
        let grouping = group(&Counters::alike(3), &["cycles"], &units).unwrap();
        let reading = |k: u64| {
            let group = (k % 2) as usize;
            let events = &grouping.groups[group].events;
            let counts = events.iter().map(|&event| match grouping.events[event].as_str() {
                "cycles" => 100,
                "a" => 10 + (k * 7) % 13,
                "b" => 3 * (10 + (k * 7) % 13),
                _ => 5 + (k * 5) % 11,
            });
            Reading { group, round: k / 2, counts: counts.collect() }
        };
        let readings = vec![(0..40).map(reading).collect()];
        let slices = Slices { grouping: Some(grouping), readings };
        assert!((slices.correlation("a", "b") - 1.0).abs() < 1e-12);
        assert_eq!(slices.correlation("a", "c"), 0.0);
        assert_eq!(slices.correlation("a", "none"), 0.0);
        // u_a/a = u_b/b = 5 %: alone they would leave 7 %, together nothing.
        let rows = [counted("a", 100.0, 5.0), counted("b", 300.0, 15.0)];
        let constants = Constants::default();
        let given = Given { rows: &rows, constants: &constants, modifiers: "", slices: &slices };
        let ratio = pmu::Formula::parse("a / b").unwrap();
        assert!(ratio.evaluate(&given).unwrap().standard_uncertainty < 1e-7);
        let apart = Slices::default();
        let given = Given { slices: &apart, ..given };
        let u = ratio.evaluate(&given).unwrap().standard_uncertainty;
        assert!((u / (1.0 / 3.0) - 0.0707).abs() < 1e-3);
    }
}
