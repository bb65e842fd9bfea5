//! `whither run`: the main job. One native run, sampled; one report.
//!
//! ```text
//! find ─► fork, held ─► open events ─► go ─► drain rings until it ends ─► Profile
//!                                                                           │
//!                      report ◄─ hottest code ◄─ by procedure ◄─ load images┘
//! ```

mod hottest;
mod images;
mod modelled;
mod notes;
mod program;
mod report;
mod sample;
mod sampling;

#[cfg(test)]
mod replay_tests;

use vocab::EventId;

use crate::cli::RunJob;
use crate::failure::{Failure, RUN_FAILED};
use crate::model::find_machine;
use crate::output::Output;
pub(crate) use images::Images;
pub(crate) use program::{Program, exec_failure, find as find_program};
use report::Report;
pub(crate) use report::{tone, unplaced_name};
pub(crate) use sample::{kernel_layout, online_cpus, parse_cpus};
pub(crate) use sampling::{Sampling, choose_for};

/// The one event that a run samples.
const SAMPLED: EventId = EventId(0);

/// Runs the program and reports; returns the program's own status.
pub(crate) fn run(job: &RunJob, output: &Output) -> Result<u8, Failure> {
    let program = program::find(&job.program)?;
    output.check_file()?;
    let sampling = sampling::choose(job)?;
    let mut input = job.model.is_some().then(modelled::keep_input).transpose()?;
    if let (Some(model), Some(input)) = (&job.model, &mut input) {
        eprintln!("{}", modelled::announcement(model, input.is_kept()));
        give(input, false)?;
    }
    let native = sample::sample(&program, &sampling, &job.counted)?;
    let second = match (&job.model, &mut input) {
        (Some(model), Some(input)) => {
            give(input, true)?;
            Some(modelled::second(model, !output.json))
        }
        _ => None,
    };
    let images = Images::load(&native.profile, &native.kernel, !output.json);
    let times = analyse::by_procedure(&native.profile, SAMPLED, images.procedures());
    // Where no file describes this host a common core stands in, and the report names it.
    let machine = find_machine(None).ok().map(|(machine, _)| machine);
    let period = sampling.period().unwrap_or(1) as f64;
    let held = machine.as_ref().map(|machine| hottest::Held { machine, period });
    let hottest = hottest::listings(&times, &images, &native.profile, job, held);
    let (second, failed) = match second {
        Some(Ok(second)) => (Some(second), None),
        Some(Err(failure)) => (None, Some(failure)),
        None => (None, None),
    };
    let report = Report {
        job,
        program: &program,
        sampling: &sampling,
        native: &native,
        images: &images,
        times: &times,
        hottest: &hottest,
        core: machine.as_ref().map(|machine| machine.title.as_str()),
        second: second.as_ref(),
    };
    output.write(&report.view())?;
    // What was measured is shown first, whatever became of the model.
    failed.map_or(Ok(native.status()), Err)
}

fn give(input: &mut perf::KeptInput, again: bool) -> Result<(), Failure> {
    input.give(again).map_err(|error| {
        Failure::new(RUN_FAILED, format!("standard input cannot be given to the program: {error}"))
    })
}
