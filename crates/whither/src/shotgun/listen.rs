//! Sampling a program that runs, or a trace of one.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

use icost::shotgun::{Gatherer, Gathering};
use tracer::launch::Launch;
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Live, Recorded, StreamError};
use tracer::trace::{Audience, Replayed};
use vocab::Source;

use super::Taken;
use crate::cli::ShotgunJob;
use crate::failure::{ERROR, Failure, RUN_FAILED, passed_on};
use crate::model::PLUGIN;

/// Runs the program or replays the trace, and samples it.
pub(super) fn listen(job: &ShotgunJob) -> Result<Taken, Failure> {
    let model = &job.icost.model;
    let gathering = Arc::new(Gathering::new(model.machine.clone(), job.plan));
    let mut gatherers = Gatherers(gathering.clone());
    let (replayed, exit, missing) = match &model.replay {
        Some(path) => {
            let trace = Recorded { path: path.clone() };
            let failed = |error: StreamError| Failure::new(ERROR, error.to_string());
            (trace.play(&mut gatherers).map_err(failed)?.0, None, None)
        }
        None => {
            let live = Live { launch: launch(job)?, plugin: PLUGIN };
            let (replayed, finished) = live.play(&mut gatherers).map_err(|error| match error {
                StreamError::Launch(why) => crate::model::failure(why),
                other => Failure::new(RUN_FAILED, other.to_string()),
            })?;
            let missing = finished.missing_instruction().map(str::to_owned);
            (replayed, Some(finished.status), missing)
        }
    };
    let (instructions, gathered) = gathering.finish();
    let words: Vec<_> = model.program.iter().map(|word| word.to_string_lossy()).collect();
    let what = match &model.replay {
        Some(path) => format!("--replay {}", path.display()),
        None => words.join(" "),
    };
    let lacks = missing.into_iter().chain(damage(&replayed)).collect();
    let instructions = Some(instructions);
    Ok(Taken { what, source: Source::Modelled, gathered, instructions, exit, lacks })
}

/// The status to pass through, as a shell would have it.
pub(super) fn passed(exit: ExitStatus) -> u8 {
    passed_on(exit.code(), exit.signal())
}

fn launch(job: &ShotgunJob) -> Result<Launch, Failure> {
    let model = &job.icost.model;
    let Some((program, arguments)) = model.program.split_first() else {
        return Err(Failure::new(RUN_FAILED, "no program was named"));
    };
    Ok(Launch {
        arguments: arguments.to_vec(),
        is_repeatable: model.is_repeatable,
        drops_output: model.drops_output,
        ..Launch::new(program.clone())
    })
}

fn damage(replayed: &Replayed) -> Option<String> {
    (!replayed.broken.is_empty() || replayed.skipped_bytes > 0).then(|| {
        format!(
            "The streams of {} threads break off, and {} bytes say nothing: a part is missing.",
            replayed.broken.len(),
            replayed.skipped_bytes
        )
    })
}

struct Gatherers(Arc<Gathering>);

impl Audience for Gatherers {
    type Core = Gatherer;

    fn thread(&mut self, process: ProcessKey, _: u32) -> Gatherer {
        Gatherer::new(self.0.clone(), process.to_word())
    }

    fn ended(&mut self, _: ProcessKey, _: u32, _: Gatherer) {}
}
