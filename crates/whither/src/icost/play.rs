//! A program's instructions, told to whoever listens: it runs now, or a trace of it is read.

use std::process::ExitStatus;

use tracer::launch::Launch;
use tracer::stream::{InstructionStream, Live, Recorded, StreamError};
use tracer::trace::{Audience, Replayed};

use crate::cli::ModelJob;
use crate::failure::{ERROR, Failure, RUN_FAILED};
use crate::model::ENGINES;

/// How a run went.
#[derive(Debug)]
pub(crate) struct Played {
    /// How the program ended; none where a trace was read.
    pub(crate) exit: Option<ExitStatus>,
    /// Sentences about what is missing.
    pub(crate) damage: Vec<String>,
}

/// Runs the program of a job, or reads its trace.
pub(crate) fn play(job: &ModelJob, audience: &mut impl Audience) -> Result<Played, Failure> {
    if let Some(path) = &job.replay {
        let failed = |error: StreamError| Failure::new(ERROR, error.to_string());
        let (replayed, ()) = Recorded { path: path.clone() }.play(audience).map_err(failed)?;
        return Ok(Played { exit: None, damage: damage(&replayed).into_iter().collect() });
    }
    let Some((program, arguments)) = job.program.split_first() else {
        return Err(Failure::new(RUN_FAILED, "no program was named"));
    };
    let launch = Launch {
        arguments: arguments.to_vec(),
        is_repeatable: job.is_repeatable,
        drops_output: job.drops_output,
        engine: job.engine.clone(),
        ..Launch::new(program.clone())
    };
    let live = Live { launch, engines: ENGINES };
    let (replayed, finished) = live.play(audience).map_err(|error| match error {
        StreamError::Launch(why) => crate::model::failure(why),
        other => Failure::new(RUN_FAILED, other.to_string()),
    })?;
    let missing = finished.missing_instruction().map(str::to_owned);
    Ok(Played {
        exit: Some(finished.status),
        damage: damage(&replayed).into_iter().chain(missing).collect(),
    })
}

/// What was told, in words: the command, or the trace.
pub(crate) fn what_played(job: &ModelJob) -> String {
    match &job.replay {
        Some(path) => format!("--replay {}", path.display()),
        None => {
            let words: Vec<_> = job.program.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        }
    }
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
