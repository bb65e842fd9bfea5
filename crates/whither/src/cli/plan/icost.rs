//! `whither icost`, checked and completed.

use std::path::PathBuf;

use icost::Category;
use icost::sample::{Plan, Timing};
use model::machine::Order;
use pmu::nearest;

use super::ModelJob;
use super::engine::engine_choice;
use crate::cli::arguments::{IcostArguments, IcostBy};
use crate::failure::{Failure, RUN_FAILED};

/// What is asked about fixing, with every name resolved.
#[derive(Debug)]
pub(crate) struct IcostJob {
    /// The program and the machine.
    pub(crate) model: ModelJob,
    pub(crate) plan: Plan,
    pub(crate) categories: Vec<Category>,
    /// Whether every set is evaluated, or pairs at most.
    pub(crate) is_powerset: bool,
    pub(crate) by: IcostBy,
}

/// More would not fit in the lanes of a few passes.
const POWERSET_MOST: usize = 10;
/// The lanes of one pass hold singles and pairs of so many.
const PAIRS_MOST: usize = 16;
/// A window must be long against the machine's window, and short enough to keep some.
const WINDOWS: std::ops::RangeInclusive<u64> = 1_000..=1_000_000;

pub(super) fn icost_job(asked: IcostArguments) -> Result<IcostJob, Failure> {
    let engine = engine_choice(&asked.engine)?;
    let mut model = ModelJob::plain(asked.program, asked.machine.as_deref(), engine)?;
    model.drops_output = false;
    model.is_repeatable = asked.pin;
    model.replay = asked.replay;
    check_machine(&model)?;
    let categories = categories(&asked.categories)?;
    if asked.powerset && categories.len() > POWERSET_MOST {
        let sets = 1_u32 << categories.len().min(PAIRS_MOST);
        let what = format!(
            "the power set of {} categories would take {sets} evaluations of every micro-op, {} \
             times as long as that of 8",
            categories.len(),
            sets / 256
        );
        return Err(Failure::new(RUN_FAILED, what)
            .remedy(format!("name {POWERSET_MOST} at most, or leave --powerset out")));
    }
    if !WINDOWS.contains(&asked.window) {
        let what = format!("a window of {} instructions is of no use", asked.window);
        return Err(Failure::new(RUN_FAILED, what).remedy("give from 1000 to 1000000"));
    }
    Ok(IcostJob {
        model,
        plan: Plan {
            window_instructions: asked.window,
            seed: asked.seed,
            timing: if asked.fast { Timing::Fast } else { Timing::Reference },
            ..Plan::default()
        },
        categories,
        is_powerset: asked.powerset,
        by: asked.by,
    })
}

/// The graph is that of an out-of-order core whose micro-ops travel alone.
pub(crate) fn check_machine(model: &ModelJob) -> Result<(), Failure> {
    let (machine, window) = (&model.machine, &model.machine.window);
    let why = if window.order == Order::InOrder {
        "it executes in order"
    } else if window.bundle_slots > 0 {
        "its instructions travel in groups"
    } else {
        return Ok(());
    };
    let what = format!("{} has no window of single micro-ops to idealise: {why}", machine.name);
    Err(Failure::new(RUN_FAILED, what).remedy("name another machine with --machine"))
}

fn categories(names: &[String]) -> Result<Vec<Category>, Failure> {
    if names.is_empty() {
        return Ok(Category::ALL.to_vec());
    }
    let mut found = Vec::new();
    for name in names {
        let category = Category::EVERY.iter().copied().find(|known| known.name() == name);
        let category = category.ok_or_else(|| unknown(name))?;
        if !found.contains(&category) {
            found.push(category);
        }
    }
    Ok(found)
}

fn unknown(name: &str) -> Failure {
    let names = Category::EVERY.iter().map(|category| category.name());
    let near = nearest(name, names.clone());
    let what = match near {
        Some(near) => format!("there is no category '{name}'; did you mean '{near}'?"),
        None => {
            let all = names.collect::<Vec<_>>().join(", ");
            format!("there is no category '{name}'; they are {all}")
        }
    };
    Failure::new(RUN_FAILED, what)
}

impl IcostJob {
    /// The usual questions about a program that is modelled anyway.
    pub(crate) fn beside(model: &ModelJob) -> IcostJob {
        IcostJob {
            model: model.with(model.program.clone(), model.core),
            plan: Plan { timing: Timing::Fast, ..Plan::default() },
            categories: Category::ALL.to_vec(),
            is_powerset: false,
            by: IcostBy::Category,
        }
    }

    /// The trace to take the instructions from.
    pub(crate) fn replay(&self) -> Option<&PathBuf> {
        self.model.replay.as_ref()
    }
}
