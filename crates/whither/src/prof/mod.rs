//! `whither prof`: what the database holds.
//!
//! ```text
//! epochs that match ─► Counts: only the columns that the view needs ─► rows ─► View
//!                         by procedure: images read from disk while their build-id matches, and
//!                         what the daemon kept of those that are gone
//! ```

mod procedures;
mod table;
mod view;

use store::{Counts, Want};

use crate::cli::{By, ProfJob};
use crate::database::select;
use crate::failure::{ERROR, Failure};
use crate::output::Output;

/// Reads and shows.
pub(crate) fn prof(job: &ProfJob, output: &Output) -> Result<u8, Failure> {
    let mut selected = select(&job.selection)?;
    let mut counts = Counts::new(want(job));
    for epoch in &selected.epochs {
        let troubles =
            counts.take(epoch).map_err(|error| Failure::new(ERROR, error.to_string()))?;
        selected.troubles.extend(troubles);
    }
    let rows = table::rows(job, &selected, &counts, !output.json)?;
    output.write(&view::view(job, &selected, &rows))?;
    match selected.troubles.first() {
        None => Ok(0),
        Some(first) => {
            Err(Failure::new(ERROR, first.to_string())
                .kept("everything else in the database is shown"))
        }
    }
}

/// The columns that a view needs, and no more.
fn want(job: &ProfJob) -> Want {
    Want {
        offsets: job.by == By::Procedure,
        processes: job.by == By::Process,
        image: job.selection.image.clone().filter(|image| image.contains(['/', '['])),
        event: job.selection.event.clone(),
    }
}
