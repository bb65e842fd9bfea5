//! `whither ssb`, checked and completed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use model::machine::Machine;
use pmu::{Breakdown, EventList, nearest};
use tracer::launch::EngineChoice;
use vocab::Event;

use super::engine::engine_choice;
use super::stat::Names;
use super::whom::must_be_there;
use crate::cli::arguments::{SsbArguments, SsbModeArgument};
use crate::failure::{Failure, RUN_FAILED};
use crate::modelled_counters::Turn;

/// A watch, with every name resolved.
#[derive(Debug)]
pub(crate) struct SsbJob {
    pub(crate) whom: Watched,
    pub(crate) interval: Duration,
    /// Written only in lines.
    pub(crate) is_plain: bool,
}

/// What is watched.
#[derive(Debug)]
pub(crate) enum Watched {
    /// A program or a process on the machine.
    Here(Box<Here>),
    /// A program on a modelled core.
    Modelled(Box<OnModel>),
    /// A counter log.
    Log(PathBuf),
}

/// On the machine.
#[derive(Debug)]
pub(crate) struct Here {
    /// Empty where a process is watched.
    pub(crate) program: Vec<OsString>,
    pub(crate) pid: Option<u32>,
    pub(crate) events: EventList,
    pub(crate) breakdown: Breakdown,
    pub(crate) core_title: String,
    pub(crate) width: Option<u32>,
    /// `user`, `kernel` or `user and kernel`, as a counter log has it.
    pub(crate) mode: &'static str,
    pub(crate) turns: Turns,
}

/// On a modelled core.
#[derive(Debug)]
pub(crate) struct OnModel {
    pub(crate) program: Vec<OsString>,
    pub(crate) machine: Machine,
    /// The text of its file.
    pub(crate) machine_text: String,
    /// What runs the program.
    pub(crate) engine: EngineChoice,
    pub(crate) events: EventList,
    pub(crate) breakdown: Breakdown,
    pub(crate) turns: Turns,
}

/// How turns are taken, and where they are written.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    pub(crate) counters: Option<u32>,
    /// None: the default.
    pub(crate) slice: Option<Turn>,
    /// The machine's event that turns are measured in, if they are.
    pub(crate) boundary: Option<Event>,
    pub(crate) seed: u64,
    pub(crate) log: Option<PathBuf>,
}

/// Modelled time passes slowly: ten milliseconds of it are a fair interval.
const MODELLED_MS: f64 = 10.0;
const MEASURED_MS: f64 = 1000.0;
/// A microsecond to a day.
const INTERVALS_MS: std::ops::RangeInclusive<f64> = 1e-3..=86_400e3;

fn failed(what: impl Into<String>) -> Failure {
    Failure::new(RUN_FAILED, what)
}

pub(super) fn ssb_job(arguments: SsbArguments) -> Result<SsbJob, Failure> {
    let is_plain = arguments.plain;
    let default_ms = if arguments.machine.is_some() { MODELLED_MS } else { MEASURED_MS };
    let interval = interval(arguments.interval.unwrap_or(default_ms))?;
    let whom = match (&arguments.follow, &arguments.machine) {
        (Some(log), _) => Watched::Log(log.clone()),
        (None, Some(_)) => Watched::Modelled(Box::new(on_model(arguments)?)),
        (None, None) => Watched::Here(Box::new(here(arguments)?)),
    };
    Ok(SsbJob { whom, interval, is_plain })
}

fn interval(milliseconds: f64) -> Result<Duration, Failure> {
    if !INTERVALS_MS.contains(&milliseconds) {
        return Err(failed(format!("{milliseconds} ms are no interval"))
            .remedy("give a number from 0.001 (a microsecond) to 86400000 (a day)"));
    }
    Ok(Duration::from_secs_f64(milliseconds * 1e-3))
}

fn turns(arguments: &SsbArguments, names: &Names) -> Result<Turns, Failure> {
    let slice = arguments.slice.as_deref().map(|text| names.turn(text)).transpose()?;
    let boundary = names.boundary(slice.as_ref())?;
    Ok(Turns {
        counters: arguments.counters,
        slice,
        boundary,
        seed: arguments.seed,
        log: arguments.log.clone(),
    })
}

fn on_model(arguments: SsbArguments) -> Result<OnModel, Failure> {
    if matches!(arguments.mode, Some(SsbModeArgument::Kernel | SsbModeArgument::Full)) {
        return Err(failed("the modelled core runs no kernel and counts in user mode only")
            .remedy("leave --mode out, or watch on this machine"));
    }
    let (machine, machine_text) = crate::model::find_machine(arguments.machine.as_deref())?;
    let names = Names::modelled()?;
    let breakdown = breakdown(&names, &arguments.set)?;
    let events = names.parse(&breakdown.events().join(","))?;
    let turns = turns(&arguments, &names)?;
    let (engine, program) = (engine_choice(&arguments.engine)?, arguments.program);
    Ok(OnModel { program, machine, machine_text, engine, events, breakdown, turns })
}

fn here(arguments: SsbArguments) -> Result<Here, Failure> {
    must_be_there(arguments.pid.as_slice(), &[])?;
    let names = Names::host()?;
    let Some(core) = names.core() else {
        return Err(failed("no stall events are known for this machine's processor")
            .remedy("`--machine NAME` watches on a modelled core"));
    };
    let (core_title, width) = (core.title.clone(), core.width);
    let breakdown = breakdown(&names, &arguments.set)?;
    let (modifier, mode) = match arguments.mode {
        Some(SsbModeArgument::User) => (":u", "user"),
        Some(SsbModeArgument::Kernel) => (":k", "kernel"),
        None | Some(SsbModeArgument::Full) => ("", "user and kernel"),
    };
    let events: Vec<String> =
        breakdown.events().iter().map(|event| format!("{event}{modifier}")).collect();
    let events = names
        .parse(&events.join(","))
        .map_err(|failure| failure.remedy("`--machine NAME` watches on a modelled core"))?;
    let turns = turns(&arguments, &names)?;
    Ok(Here {
        program: arguments.program,
        pid: arguments.pid,
        events,
        breakdown,
        core_title,
        width,
        mode,
        turns,
    })
}

fn breakdown(names: &Names, name: &str) -> Result<Breakdown, Failure> {
    let known = || names.breakdowns.iter().map(|breakdown| breakdown.name.as_str());
    let found = names.breakdowns.iter().find(|breakdown| breakdown.name == name).cloned();
    found.ok_or_else(|| {
        failed(match nearest(name, known()) {
            Some(near) => format!("no division is called '{name}'; did you mean '{near}'?"),
            None => {
                let known: Vec<&str> = known().collect();
                format!("no division is called '{name}'; there are {}", known.join(", "))
            }
        })
    })
}
