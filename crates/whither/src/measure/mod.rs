//! `whither measure`: as many runs as are needed, and how sure the result is.
//!
//! ```text
//!            warm-up    the measurand's own runs      so that every event has its turns
//! runs       ✗          ● ● ● ● ● … R: sure enough    ● ● ● ● ● … L = h·R
//! measurand             1 1 1 1 1                     1 1 1 1 1     counted in every run
//! group 1               1     1                           1   1     the other events
//! group 2                 1     1                     1   1         take turns
//!                       └──── group of R runs ────┘   └─ another ─┘  compared before combining
//! ```
//!
//! Where layouts vary, what is called a run here is one draw of the surroundings, held for two
//! executions; the mean of the two is the reading.

mod compare;
mod conditions;
mod derived;
mod experiment;
mod findings;
mod groups;
mod live;
mod modelled;
mod native;
mod quantity;
mod source;
mod view;

pub(crate) use quantity::Quantity;

use crate::cli::MeasureJob;
use crate::failure::{ERROR, Failure};
use crate::output::Output;
use experiment::Experiment;
use groups::Turns;
use source::Source;

/// Groups of runs disagree, or B is slower than allowed.
const FOUND: u8 = 3;

/// Measures and reports; 0, or 3 where groups of runs disagree.
pub(crate) fn measure(job: &MeasureJob, output: &Output) -> Result<u8, Failure> {
    // A command that repeats a program has one status for its own failures, whatever they are.
    measured(job, output).map_err(|failure| match failure.status {
        crate::failure::USAGE => failure,
        _ => Failure { status: ERROR, ..failure },
    })
}

fn measured(job: &MeasureJob, output: &Output) -> Result<u8, Failure> {
    output.check_file()?;
    let choice = quantity::choose(job)?;
    if job.commands.len() == 2 {
        return compare::compare(job, &choice, output);
    }
    let turns = Turns::plan(&choice, job)?;
    let command = job.commands.first().map(Vec::as_slice).unwrap_or_default();
    let source = Source::new(job, command)?;
    let runs = Experiment::new(job, &choice, &turns, &source, !output.json).run()?;
    let findings = findings::find(job, &choice, &turns, &runs);
    output.write(&view::view(job, &choice, &turns, &source, &runs, &findings))?;
    Ok(if findings.disagrees() { FOUND } else { 0 })
}
