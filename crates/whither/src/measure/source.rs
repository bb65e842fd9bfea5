//! Where executions come from: the machine, or a modelled core.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::conditions::Conditions;
use super::modelled::ModelledProgram;
use super::native::NativeProgram;
use super::quantity::Quantity;
use crate::cli::MeasureJob;
use crate::failure::{ERROR, Failure};

/// What one execution brought.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    pub(super) ending: Ending,
    /// By quantity; none for what this execution did not measure.
    pub(super) values: Vec<Option<f64>>,
    /// By quantity: the value's own standard uncertainty, where it was estimated, or a bound of
    /// what is known to be counted in excess; 0 elsewhere.
    pub(super) doubts: Vec<Doubt>,
}

/// What is known against a single value.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Doubt {
    /// Its own standard uncertainty, independent from execution to execution.
    pub(super) own: f64,
    /// At most so much of it was counted in excess.
    pub(super) excess: f64,
}

/// How an execution ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    Well,
    /// As a person says it: `exit status 3`, `signal 11`.
    Failed(String),
    /// The user wants no more.
    Interrupted,
}

impl Ending {
    pub(super) fn of(code: Option<i32>, signal: Option<i32>, ignores_failure: bool) -> Ending {
        const INTERRUPT: i32 = 2;
        match (code, signal) {
            (Some(0), _) => Ending::Well,
            (Some(_), _) if ignores_failure => Ending::Well,
            (Some(code), _) => Ending::Failed(format!("exit status {code}")),
            (None, Some(INTERRUPT)) => Ending::Interrupted,
            (None, signal) => Ending::Failed(format!("signal {}", signal.unwrap_or(0))),
        }
    }
}

/// A program that can be executed again and again.
#[derive(Debug)]
pub(super) enum Source<'a> {
    Machine(NativeProgram),
    Model(ModelledProgram<'a>),
}

impl<'a> Source<'a> {
    pub(super) fn new(job: &'a MeasureJob, command: &[OsString]) -> Result<Source<'a>, Failure> {
        let input = job.input.clone().unwrap_or_else(|| PathBuf::from("/dev/null"));
        open(&input)?;
        match &job.model {
            Some(model) => Ok(Source::Model(ModelledProgram::new(job, model, command, input))),
            None => Ok(Source::Machine(NativeProgram::find(job, command, input)?)),
        }
    }

    /// Executes it once and measures some of the quantities.
    pub(super) fn execute(
        &self,
        quantities: &[Quantity],
        measured: &[usize],
        conditions: &Conditions,
        number: u64,
    ) -> Result<Execution, Failure> {
        match self {
            Source::Machine(program) => program.execute(quantities, measured, conditions),
            Source::Model(program) => program.execute(quantities, measured, conditions, number),
        }
    }

    /// The command as one line.
    pub(super) fn shown(&self) -> String {
        match self {
            Source::Machine(program) => program.shown(),
            Source::Model(program) => program.shown(),
        }
    }
}

/// A file that the program reads.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    File::open(path).map_err(|error| {
        Failure::new(ERROR, format!("cannot read {}: {error}", path.display()))
            .kept("the program was not started")
            .remedy("name another file with --input")
    })
}
