//! `whither shotgun`, checked and completed.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use icost::Category;
use icost::sample::Plan as Windows;
use icost::shotgun::{Plan, SampleFile};
use model::monitor::{AROUND, LENGTH, Rates};

use super::engine::engine_choice;
use super::{IcostJob, ModelJob, check_machine};
use crate::cli::arguments::{IcostBy, ShotgunArguments};
use crate::failure::{ERROR, Failure, RUN_FAILED};

/// What is asked of samples, with every name resolved.
#[derive(Debug)]
pub(crate) struct ShotgunJob {
    /// The program, the machine, and what is idealised.
    pub(crate) icost: IcostJob,
    pub(crate) plan: Plan,
    /// Where samples come from instead of a program.
    pub(crate) input: Option<Input>,
    /// Where samples are kept.
    pub(crate) keep: Option<PathBuf>,
}

/// Samples from a file.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) path: PathBuf,
    pub(crate) from: InputKind,
}

/// What the file is.
#[derive(Debug)]
pub(crate) enum InputKind {
    /// Samples that this program kept.
    Samples(Box<SampleFile>),
    /// A recording of perf.
    Recording,
}

/// A window holds some signatures, and there is room for many windows.
const WINDOWS: RangeInclusive<u64> = 5_000..=10_000_000;

pub(super) fn shotgun_job(asked: ShotgunArguments) -> Result<ShotgunJob, Failure> {
    let input = asked.input.map(read_input).transpose()?;
    let named = match &input {
        Some(Input { from: InputKind::Samples(file), .. }) if asked.machine.is_none() => {
            Some(file.machine.clone())
        }
        _ => asked.machine,
    };
    let engine = engine_choice(&asked.engine)?;
    let mut model = ModelJob::plain(asked.program, named.as_deref(), engine)?;
    model.drops_output = false;
    model.is_repeatable = asked.pin;
    model.replay = asked.replay;
    check_machine(&model)?;
    check("a window", asked.window, WINDOWS)?;
    check("a step between signatures", asked.signature_every, LENGTH as u64..=1_000_000_000)?;
    let least = 2 * AROUND as u64 + 1;
    check("a step between detailed samples", asked.detail_every, least..=1_000_000_000)?;
    let rates = Rates {
        signature_every: asked.signature_every,
        detail_every: asked.detail_every,
        seed: asked.seed,
    };
    let plan = Plan { window_instructions: asked.window, rates, ..Plan::default() };
    let icost = IcostJob {
        model,
        plan: Windows { seed: asked.seed, ..Windows::default() },
        categories: Category::ALL.to_vec(),
        is_powerset: asked.powerset,
        by: IcostBy::Category,
    };
    Ok(ShotgunJob { icost, plan, input, keep: asked.keep })
}

fn check(what: &str, asked: u64, range: RangeInclusive<u64>) -> Result<(), Failure> {
    if range.contains(&asked) {
        return Ok(());
    }
    let what = format!("{what} of {asked} instructions is of no use");
    let remedy = format!("give from {} to {}", range.start(), range.end());
    Err(Failure::new(RUN_FAILED, what).remedy(remedy))
}

/// Tells the kinds of files apart by how they begin.
fn read_input(path: PathBuf) -> Result<Input, Failure> {
    let name = path.display();
    let failed = |what: String| Failure::new(ERROR, what);
    let bytes = std::fs::read(&path).map_err(|why| failed(format!("cannot read {name}: {why}")))?;
    let from = if SampleFile::is_one(&bytes) {
        let file = SampleFile::parse(&bytes).map_err(|why| failed(format!("{name}: {why}")))?;
        InputKind::Samples(Box::new(file))
    } else if bytes.starts_with(b"PERFILE2") {
        InputKind::Recording
    } else {
        let what = format!("{name} holds neither shotgun samples nor a recording of perf");
        return Err(failed(what).remedy("`whither shotgun --keep FILE -- PROGRAM` makes samples"));
    };
    Ok(Input { path, from })
}
