//! `whither run`: the main job. One native run, sampled; one report.
//!
//! ```text
//! find ─► fork, held ─► open events ─► go ─► drain rings until it ends ─► Profile
//!                                                                           │
//!                      report ◄─ hottest code ◄─ by procedure ◄─ load images┘
//! ```

mod hottest;
mod images;
mod notes;
mod program;
mod report;
mod sample;
mod sampling;

#[cfg(test)]
mod replay_tests;

use vocab::EventId;

use crate::cli::RunJob;
use crate::failure::Failure;
use crate::output::Output;
use images::Images;

/// The one event that a run samples.
const SAMPLED: EventId = EventId(0);

/// Runs the program and reports; returns the program's own status.
pub(crate) fn run(job: &RunJob, output: &Output) -> Result<u8, Failure> {
    let program = program::find(&job.program)?;
    output.check_file()?;
    let sampling = sampling::choose(job)?;
    let native = sample::sample(&program, &sampling, &job.counted)?;
    let images = Images::load(&native.profile, &native.kernel, !output.json);
    let times = analyse::by_procedure(&native.profile, SAMPLED, images.procedures());
    let hottest = hottest::listings(&times, &images, &native.profile, job);
    let report = report::Report {
        job,
        program: &program,
        sampling: &sampling,
        native: &native,
        images: &images,
        times: &times,
        hottest: &hottest,
    };
    output.write(&report.view())?;
    Ok(native.status())
}
