//! What was counted between two moments, as every form of output takes it.

use metrology::{Coverage, Estimate, Interval, mean};
use pmu::estimate::Counted;

use super::measures::Measure;

/// The counts of one measurement, interval, run or CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// In the order asked for.
    pub(crate) rows: Vec<CountRow>,
    /// What follows from them.
    pub(crate) measures: Vec<Measure>,
    /// When it ended, in seconds since the start; for intervals.
    pub(crate) at_s: Option<f64>,
    /// How long it took.
    pub(crate) seconds: f64,
}

/// What a count is a part of, where parts are told apart.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Part {
    /// The CPU, with `-A`.
    pub(crate) cpu: Option<u32>,
    /// The control group by its name, empty for all; none where none was named.
    pub(crate) cgroup: Option<String>,
}

/// One event.
#[derive(Clone, Debug)]
pub(crate) struct CountRow {
    /// As the user typed it.
    pub(crate) typed: String,
    /// The plain name, without modifiers.
    pub(crate) name: String,
    /// Nanoseconds, shown as a time.
    pub(crate) is_clock: bool,
    pub(crate) part: Part,
    /// The total, or why there is none.
    pub(crate) total: Result<Total, Missing>,
}

/// A total with all that an honest reader needs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Total {
    /// Counts, or nanoseconds.
    pub(crate) estimate: Estimate,
    /// At 95 %, never below what was counted.
    pub(crate) interval: Interval,
    /// The share of time in which it was counted.
    pub(crate) share: f64,
    /// The target's own time in which it was counted, in nanoseconds.
    pub(crate) running_ns: u64,
    /// How the total was inferred.
    pub(crate) estimator: &'static str,
    /// Relative standard deviation of the mean over runs, in per cent, as perf has it.
    pub(crate) spread_pct: Option<f64>,
}

/// Why an event has no count; never 0.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    /// Whether the event could be opened at all.
    pub(crate) is_supported: bool,
    pub(crate) why: String,
}

impl Total {
    /// From what a backend counted while its targets ran for so long.
    pub(crate) fn of(counted: &Counted, target_ns: u64) -> Total {
        Total {
            estimate: counted.estimate,
            interval: counted.interval(Coverage::P95),
            share: counted.share,
            running_ns: (counted.share * target_ns as f64).round() as u64,
            estimator: counted.estimator.word(),
            spread_pct: None,
        }
    }

    /// A total as formulas need it.
    pub(crate) fn plain(estimate: Estimate) -> Total {
        Total {
            estimate,
            interval: estimate.interval(Coverage::P95),
            share: 1.0,
            running_ns: 0,
            estimator: "",
            spread_pct: None,
        }
    }

    /// Whether nothing was inferred.
    pub(crate) fn is_exact(&self) -> bool {
        self.estimator == pmu::estimate::Estimator::Exact.word()
    }

    /// The number behind the ±; infinite where nothing is known.
    pub(crate) fn half_width(&self) -> f64 {
        self.interval.half_width()
    }
}

/// Parts as one, in perf's order: one control group after the other, in each event by event, and
/// for each event one CPU after the other.
pub(crate) fn joined(parts: Vec<Batch>) -> Batch {
    let places = parts.iter().map(|part| part.rows.len()).max().unwrap_or(0);
    let at = |place: usize| parts.iter().filter_map(move |part| part.rows.get(place));
    let mut rows: Vec<CountRow> = (0..places).flat_map(at).cloned().collect();
    let cgroup_of = |batch: &Batch| batch.rows.first().map(|row| row.part.cgroup.clone());
    let cgroups: Vec<_> = parts.iter().map(cgroup_of).collect();
    rows.sort_by_key(|row| cgroups.iter().position(|of| of.as_ref() == Some(&row.part.cgroup)));
    let seconds = parts.iter().map(|part| part.seconds).fold(0.0, f64::max);
    let measures = parts.into_iter().flat_map(|part| part.measures).collect();
    Batch { rows, measures, at_s: None, seconds }
}

/// The mean over runs. An event that one run could not count has no mean.
pub(crate) fn over_runs(runs: &[Batch]) -> Batch {
    let Some(first) = runs.first().filter(|_| runs.len() > 1) else {
        return runs.first().cloned().unwrap_or_default();
    };
    let rows = first.rows.iter().enumerate().map(|(place, row)| {
        let totals = runs.iter().filter_map(|run| run.rows.get(place)).map(|row| &row.total);
        CountRow { total: mean_total(totals.cloned().collect()), ..row.clone() }
    });
    let measures = first.measures.iter().enumerate().map(|(place, measure)| {
        let values = runs.iter().filter_map(|run| run.measures.get(place));
        let values: Result<Vec<f64>, String> =
            values.map(|m| m.value.clone().map(|estimate| estimate.value)).collect();
        let value = values.and_then(|values| mean(&values).map_err(|error| error.to_string()));
        Measure { value, ..measure.clone() }
    });
    let seconds = runs.iter().map(|run| run.seconds).sum::<f64>() / runs.len() as f64;
    Batch { rows: rows.collect(), measures: measures.collect(), seconds, ..first.clone() }
}

fn mean_total(totals: Vec<Result<Total, Missing>>) -> Result<Total, Missing> {
    let totals = totals.into_iter().collect::<Result<Vec<Total>, Missing>>()?;
    let values: Vec<f64> = totals.iter().map(|total| total.estimate.value).collect();
    let estimate =
        mean(&values).map_err(|error| Missing { is_supported: true, why: error.to_string() })?;
    let n = totals.len() as f64;
    let average = |of: fn(&Total) -> f64| totals.iter().map(of).sum::<f64>() / n;
    let spread = 100.0 * estimate.standard_uncertainty / estimate.value.abs();
    Ok(Total {
        estimate,
        interval: estimate.interval(Coverage::P95),
        share: average(|total| total.share),
        running_ns: average(|total| total.running_ns as f64).round() as u64,
        estimator: "mean",
        spread_pct: Some(if spread.is_finite() { spread } else { 0.0 }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::testing::{batch, counted, refused};

    #[test]
    fn runs_become_a_mean_with_the_deviation_of_the_mean() {
        let run = |value| batch(vec![counted("cycles", value, 0.0)]);
        let mean = over_runs(&[run(90.0), run(100.0), run(110.0)]);
        let total = mean.rows[0].total.clone().unwrap();
        assert_eq!(total.estimate.value, 100.0);
        // s = 10, s/√3 = 5.77.
        assert!((total.spread_pct.unwrap() - 5.7735).abs() < 1e-3);
        assert!((total.half_width() - 5.7735 * 4.3027).abs() < 1e-2);
        assert_eq!(total.estimator, "mean");
    }

    #[test]
    fn parts_stand_in_perfs_order() {
        let part = |cpu, cgroup: &str| {
            let mut batch = batch(vec![counted("a", 1.0, 0.0), counted("b", 2.0, 0.0)]);
            let part = Part { cpu: Some(cpu), cgroup: Some(cgroup.to_owned()) };
            batch.rows.iter_mut().for_each(|row| row.part = part.clone());
            batch
        };
        let all = joined(vec![part(0, "x"), part(1, "x"), part(0, "y"), part(1, "y")]);
        let shown = all.rows.iter().map(|row| {
            let cgroup = row.part.cgroup.clone().unwrap_or_default();
            format!("{cgroup}{}{}", row.name, row.part.cpu.unwrap())
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), "xa0 xa1 xb0 xb1 ya0 ya1 yb0 yb1");
        assert_eq!((all.seconds, all.at_s), (2.0, None));
    }

    #[test]
    fn one_run_keeps_its_own_uncertainty_and_a_run_that_missed_an_event_leaves_no_mean() {
        let one = over_runs(&[batch(vec![counted("cycles", 90.0, 2.0)])]);
        assert_eq!(one.rows[0].total.as_ref().unwrap().estimate.standard_uncertainty, 2.0);
        let runs = [batch(vec![counted("cycles", 90.0, 0.0)]), batch(vec![refused("cycles")])];
        assert!(over_runs(&runs).rows[0].total.is_err());
    }
}
