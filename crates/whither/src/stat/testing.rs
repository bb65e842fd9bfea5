//! Batches for tests.

use metrology::{Coverage, Estimate};

use super::batch::{Batch, CountRow, Missing, Part, Total};

pub(crate) fn batch(rows: Vec<CountRow>) -> Batch {
    Batch { rows, seconds: 2.0, ..Batch::default() }
}

/// An event with a value and a standard uncertainty.
pub(crate) fn counted(typed: &str, value: f64, u: f64) -> CountRow {
    let estimate = Estimate::known(value, u);
    let is_exact = u == 0.0;
    let total = Total {
        estimate,
        interval: estimate.interval(Coverage::P95),
        share: if is_exact { 1.0 } else { 0.25 },
        running_ns: if is_exact { 1_000_000 } else { 250_000 },
        estimator: if is_exact { "exact" } else { "per-cycle" },
        spread_pct: None,
    };
    row(typed, Ok(total))
}

/// An event that the machine does not have.
pub(crate) fn refused(typed: &str) -> CountRow {
    row(typed, Err(Missing { is_supported: false, why: "not there on this machine".into() }))
}

fn row(typed: &str, total: Result<Total, Missing>) -> CountRow {
    let name = typed.split(':').next().unwrap_or_default();
    let is_clock = name.ends_with("-clock");
    let part = Part::default();
    CountRow { typed: typed.into(), name: name.into(), is_clock, part, total }
}
