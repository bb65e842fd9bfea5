//! `whither calc`, `whither summary` and `whither cfg`, checked and completed.

use image::Syntax;

use super::measure::percent;
use super::run::syntax;
use super::selection::{Selection, selection};
use crate::cli::arguments::{CalcArguments, CfgArguments, CfgFormat, SummaryArguments};
use crate::failure::Failure;

/// Which procedure is to be examined.
#[derive(Debug)]
pub(crate) struct CalcJob {
    pub(crate) selection: Selection,
    /// None is the hottest.
    pub(crate) procedure: Option<String>,
    pub(crate) whole: bool,
    pub(crate) machine: Option<String>,
    pub(crate) syntax: Syntax,
}

/// How much of a program is to be examined.
#[derive(Debug)]
pub(crate) struct SummaryJob {
    pub(crate) selection: Selection,
    /// As a share of the samples.
    pub(crate) cover: f64,
    pub(crate) machine: Option<String>,
    pub(crate) rows: usize,
}

/// Whose flow is to be drawn.
#[derive(Debug)]
pub(crate) struct CfgJob {
    pub(crate) selection: Selection,
    /// None is the hottest.
    pub(crate) procedure: Option<String>,
    pub(crate) format: CfgFormat,
    pub(crate) machine: Option<String>,
    pub(crate) syntax: Syntax,
}

pub(super) fn calc_job(asked: CalcArguments) -> Result<CalcJob, Failure> {
    Ok(CalcJob {
        selection: selection(asked.selection, None)?,
        procedure: asked.procedure,
        whole: asked.whole,
        machine: asked.machine,
        syntax: syntax(asked.syntax),
    })
}

pub(super) fn summary_job(asked: SummaryArguments) -> Result<SummaryJob, Failure> {
    Ok(SummaryJob {
        selection: selection(asked.selection, None)?,
        cover: percent(&asked.cover, "share", 0.0..=100.0)?,
        machine: asked.machine,
        rows: asked.rows,
    })
}

pub(super) fn cfg_job(asked: CfgArguments) -> Result<CfgJob, Failure> {
    let ending = asked.output.as_ref().and_then(|file| file.extension());
    let by_name = match ending.and_then(|ending| ending.to_str()) {
        Some("svg") => CfgFormat::Svg,
        Some("dot" | "gv") => CfgFormat::Dot,
        _ => CfgFormat::Text,
    };
    Ok(CfgJob {
        selection: selection(asked.selection, None)?,
        procedure: asked.procedure,
        format: asked.format.unwrap_or(by_name),
        machine: asked.machine,
        syntax: syntax(asked.syntax),
    })
}
