//! `whither stats`, checked and completed.

use super::measure::percent;
use super::selection::{Selection, selection};
use crate::cli::arguments::StatsArguments;
use crate::failure::Failure;

/// Which sets are to be compared.
#[derive(Debug)]
pub(crate) struct StatsJob {
    pub(crate) selection: Selection,
    /// The least share of all samples that a procedure must have.
    pub(crate) least: f64,
    pub(crate) rows: usize,
}

pub(super) fn stats_job(asked: StatsArguments) -> Result<StatsJob, Failure> {
    Ok(StatsJob {
        selection: selection(asked.selection, None)?,
        least: percent(&asked.least, "share", 0.0..=100.0)?,
        rows: asked.rows,
    })
}
