//! Sampling a program that runs, or a trace of one.

use std::sync::Arc;

use icost::shotgun::{Gatherer, Gathering};
use tracer::results::ProcessKey;
use tracer::trace::Audience;
use vocab::Source;

use super::Taken;
use crate::cli::ShotgunJob;
use crate::failure::Failure;
use crate::icost::{Played, play, what_played};

/// Runs the program or replays the trace, and samples it.
pub(super) fn listen(job: &ShotgunJob) -> Result<Taken, Failure> {
    let model = &job.icost.model;
    let gathering = Arc::new(Gathering::new(model.machine.clone(), job.plan));
    let Played { exit, damage: lacks } = play(model, &mut Gatherers(gathering.clone()))?;
    let (instructions, gathered) = gathering.finish();
    let (what, instructions) = (what_played(model), Some(instructions));
    Ok(Taken { what, source: Source::Modelled, gathered, instructions, exit, lacks })
}

struct Gatherers(Arc<Gathering>);

impl Audience for Gatherers {
    type Core = Gatherer;

    fn thread(&mut self, process: ProcessKey, _: u32) -> Gatherer {
        Gatherer::new(self.0.clone(), process.to_word())
    }

    fn ended(&mut self, _: ProcessKey, _: u32, _: Gatherer) {}
}
