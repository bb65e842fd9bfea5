//! `whither annotate`, checked and completed.

use image::Syntax;

use super::run::syntax;
use super::selection::{Selection, selection};
use crate::cli::arguments::AnnotateArguments;
use crate::failure::Failure;

/// Which procedure is to be shown.
#[derive(Debug)]
pub(crate) struct AnnotateJob {
    pub(crate) selection: Selection,
    /// None is the hottest.
    pub(crate) procedure: Option<String>,
    pub(crate) all: bool,
    /// Every instruction in the text form too.
    pub(crate) whole: bool,
    pub(crate) syntax: Syntax,
}

pub(super) fn annotate_job(asked: AnnotateArguments) -> Result<AnnotateJob, Failure> {
    Ok(AnnotateJob {
        selection: selection(asked.selection, None)?,
        procedure: asked.procedure,
        all: asked.all,
        whole: asked.whole,
        syntax: syntax(asked.syntax),
    })
}
