//! `whither stats`: variation over sets of runs.
//!
//! ```text
//! epochs ─► samples by procedure, one column a set ─► range, mean, deviation, chance ─► View
//! ```

mod variation;
mod view;

use crate::cli::StatsJob;
use crate::failure::{ERROR, Failure};
use crate::output::Output;
use crate::sampled::Sets;
use variation::Variation;

/// Reads and shows.
pub(crate) fn stats(job: &StatsJob, output: &Output) -> Result<u8, Failure> {
    let sets = Sets::load(&job.selection, !output.json)?;
    if sets.names.len() < 2 {
        return Err(Failure::new(ERROR, "one epoch alone does not vary")
            .remedy("record the program several times, then ask again"));
    }
    let whole = sets.total().as_f64();
    let mut rows: Vec<Variation> = sets
        .rows
        .iter()
        .filter(|row| row.sum().as_f64() >= job.least * whole && row.sum().0 > 0)
        .map(Variation::of)
        .collect();
    rows.sort_by(|a, b| b.range.total_cmp(&a.range));
    output.write(&view::view(job, &sets, &rows))?;
    sets.sampled.finish()
}
