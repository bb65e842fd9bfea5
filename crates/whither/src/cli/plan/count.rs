//! `whither count`, checked and completed.

use std::ffi::OsString;

use image::Syntax;
use tracer::launch::EngineChoice;

use super::engine::engine_choice;
use super::run::syntax;
use crate::cli::arguments::CountArguments;
use crate::failure::Failure;

/// What is to be counted.
#[derive(Debug)]
pub(crate) struct CountJob {
    /// The program and its arguments; never empty.
    pub(crate) program: Vec<OsString>,
    pub(crate) counts_accesses: bool,
    pub(crate) procedures: usize,
    pub(crate) hottest: usize,
    pub(crate) syntax: Syntax,
    pub(crate) engine: EngineChoice,
}

pub(super) fn count_job(asked: CountArguments) -> Result<CountJob, Failure> {
    Ok(CountJob {
        engine: engine_choice(&asked.engine)?,
        program: asked.program,
        counts_accesses: asked.accesses,
        procedures: asked.procedures,
        hottest: asked.hottest,
        syntax: syntax(asked.syntax),
    })
}
