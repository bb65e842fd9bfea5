//! One execution on a modelled core.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

use tracer::launch::Launch;
use tracer::modelled::CoreAsk;

use super::conditions::Conditions;
use super::quantity::{Kind, Quantity};
use super::source::{Doubt, Ending, Execution};
use crate::cli::{MeasureJob, ModelJob};
use crate::failure::Failure;
use crate::model::run_modelled_in;

/// A program that a modelled core executes again and again.
#[derive(Debug)]
pub(super) struct ModelledProgram<'a> {
    model: &'a ModelJob,
    command: Vec<OsString>,
    input: PathBuf,
    ignores_failure: bool,
}

impl<'a> ModelledProgram<'a> {
    pub(super) fn new(
        job: &MeasureJob,
        model: &'a ModelJob,
        command: &[OsString],
        input: PathBuf,
    ) -> ModelledProgram<'a> {
        let ignores_failure = job.ignores_failure;
        ModelledProgram { model, command: command.to_vec(), input, ignores_failure }
    }

    pub(super) fn shown(&self) -> String {
        let words: Vec<_> = self.command.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// Executions are sampled in other places each, so that what sampling leaves uncertain shows
    /// in how they differ.
    pub(super) fn execute(
        &self,
        quantities: &[Quantity],
        measured: &[usize],
        conditions: &Conditions,
        number: u64,
    ) -> Result<Execution, Failure> {
        let core = match self.model.core {
            CoreAsk::Sampled { error_ppm, seed } => {
                CoreAsk::Sampled { error_ppm, seed: seed.wrapping_add(number) }
            }
            other => other,
        };
        let job = self.model.with(self.command.clone(), core);
        let around = Launch {
            input: Some(self.input.clone()),
            added_environment: conditions.added(),
            ..Launch::new("")
        };
        let run = run_modelled_in(&job, around)?;
        let (code, signal) = run.exit.map_or((Some(0), None), |e| (e.code(), e.signal()));
        let mut execution = Execution {
            ending: Ending::of(code, signal, self.ignores_failure),
            values: vec![None; quantities.len()],
            doubts: vec![Doubt::default(); quantities.len()],
        };
        for &place in measured {
            let Some(Kind::Modelled(event)) = quantities.get(place).map(|q| &q.kind) else {
                continue;
            };
            let total = run.totals.of(*event);
            if let (Some(value), Some(doubt)) =
                (execution.values.get_mut(place), execution.doubts.get_mut(place))
            {
                // Too little of it was timed: that is no reading.
                if total.standard_uncertainty.is_finite() {
                    *value = Some(total.value);
                    doubt.own = total.standard_uncertainty;
                }
            }
        }
        Ok(execution)
    }
}
