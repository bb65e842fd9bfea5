//! `whither run`, checked and completed.

use std::ffi::OsString;

use image::Syntax;
use pmu::parse_event;
use vocab::Event;

use super::engine::engine_choice;
use super::{ModelJob, event_table, events_of_set};
use crate::cli::arguments::{RunArguments, SyntaxArgument};
use crate::failure::{Failure, RUN_FAILED};

/// A run, with every name resolved.
#[derive(Debug)]
pub(crate) struct RunJob {
    /// The program and its arguments; never empty.
    pub(crate) program: Vec<OsString>,
    /// None: the best that this machine has.
    pub(crate) event: Option<Event>,
    pub(crate) rate: Option<perf::Rate>,
    pub(crate) counted: Vec<Event>,
    pub(crate) procedures: usize,
    pub(crate) hottest: usize,
    pub(crate) syntax: Syntax,
    /// A second, modelled run.
    pub(crate) model: Option<ModelJob>,
}

pub(super) fn run_job(run: RunArguments) -> Result<RunJob, Failure> {
    let table = event_table(RUN_FAILED)?;
    let event = run
        .event
        .map(|spelling| parse_event(&table, &spelling))
        .transpose()
        .map_err(|error| Failure::new(RUN_FAILED, error.to_string()))?;
    let rate = match (run.freq, run.count) {
        (Some(hertz), _) => Some(perf::Rate::Hertz(hertz)),
        (None, Some(period)) => Some(perf::Rate::Period(period)),
        (None, None) => None,
    };
    let model = match run.model {
        true => {
            let engine = engine_choice(&run.engine)?;
            Some(ModelJob::plain(run.program.clone(), run.machine.as_deref(), engine)?)
        }
        false => None,
    };
    Ok(RunJob {
        program: run.program,
        event,
        rate,
        counted: events_of_set(&table, &run.set)?,
        procedures: run.procedures,
        hottest: run.hottest,
        syntax: syntax(run.syntax),
        model,
    })
}

pub(super) fn syntax(asked: SyntaxArgument) -> Syntax {
    match asked {
        SyntaxArgument::Intel => Syntax::Intel,
        SyntaxArgument::Att => Syntax::Att,
    }
}
