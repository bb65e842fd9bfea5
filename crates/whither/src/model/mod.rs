//! `whither model`: the program on a modelled core.
//!
//! ```text
//! ModelJob ─► tracer::Launch (an engine: a core a thread) ─► accounts by process
//!                                       │
//!             View ◄─ CPI stack, counters, by procedure ◄─ Profile (modelled cycles) ◄┘
//! ```

mod account;
mod record;
mod replay;
mod stack;
mod view;

pub(crate) use account::{CYCLES, MODELLED, ModelledRun, RUNS, place_of};
pub(crate) use replay::core_of;
pub(crate) use stack::section as stack_section;
pub(crate) use view::{notes, summary};

use model::machine::Machine;
use tracer::launch::{Engines, Finished, Launch, LaunchError};
use tracer::modelled::{CoreAsk, ModelAsk};
use tracer::settings::Listener;
use vocab::Count;

use crate::cli::ModelJob;
use crate::failure::{Failure, RUN_FAILED};
use crate::output::Output;
use crate::run::Images;

/// The tracer's engines, built beside this program.
pub(crate) static ENGINES: Engines<'static> = Engines {
    plugin: include_bytes!(env!("WHITHER_PLUGIN")),
    native: include_bytes!(env!("WHITHER_NATIVE")),
};

/// Models the program and reports; returns the program's own status.
pub(crate) fn model(job: &ModelJob, output: &Output) -> Result<u8, Failure> {
    output.check_file()?;
    if let Some(trace) = &job.record {
        let finished = launch(job, Listener::Trace(trace.clone()))?;
        let words: Vec<_> = job.program.iter().map(|word| word.to_string_lossy()).collect();
        output.write(&record::view(&words.join(" "), trace, &finished)?)?;
        return Ok(record::status(&finished));
    }
    let run = match &job.replay {
        Some(trace) => replay::replay(job, trace)?,
        None => run_modelled(job)?,
    };
    let images = Images::load(&run.profile, &collect::KernelLayout::default(), !output.json);
    output.write(&view::view(job, &run, &images))?;
    Ok(run.status())
}

/// Runs the program under the tracer.
pub(crate) fn run_modelled(job: &ModelJob) -> Result<ModelledRun, Failure> {
    run_modelled_in(job, Launch::new(""))
}

/// The same with the input and the added environment of a launch.
pub(crate) fn run_modelled_in(job: &ModelJob, around: Launch) -> Result<ModelledRun, Failure> {
    let ask = ModelAsk {
        name: job.machine.name.clone(),
        machine: job.machine_text.clone(),
        core: job.core,
        settings: job.settings,
    };
    let finished = launch_in(job, Listener::Model(ask), around)?;
    let run = ModelledRun::read(&finished, &job.machine);
    // Warming alone keeps no account: there is nothing to find in it.
    if job.core == CoreAsk::Warm { Ok(run) } else { counted(run) }
}

/// A program that ended well has run instructions. If none was counted, the tracer did not take the
/// machine's description, and zeros would be passed off as counts.
fn counted(run: ModelledRun) -> Result<ModelledRun, Failure> {
    let is_empty = run.instructions() == 0 && run.untimed == Count::ZERO;
    if is_empty && run.exit.is_some_and(|exit| exit.success()) {
        let why = "the program ran, but the tracer in this binary counted nothing of it";
        return Err(Failure::new(RUN_FAILED, why).remedy("rebuild whither: its parts do not fit"));
    }
    Ok(run)
}

pub(crate) fn launch(job: &ModelJob, listener: Listener) -> Result<Finished, Failure> {
    launch_in(job, listener, Launch::new(""))
}

fn launch_in(job: &ModelJob, listener: Listener, around: Launch) -> Result<Finished, Failure> {
    let Some((name, arguments)) = job.program.split_first() else {
        return Err(Failure::new(RUN_FAILED, "no program was named"));
    };
    let launch = Launch {
        program: name.clone(),
        arguments: arguments.to_vec(),
        listener,
        is_repeatable: job.is_repeatable,
        drops_output: job.drops_output,
        engine: job.engine.clone(),
        ..around
    };
    launch.run(&ENGINES).map_err(failure)
}

/// The machine of this name or file, or the one that describes this host.
pub(crate) fn find_machine(asked: Option<&str>) -> Result<(Machine, String), Failure> {
    let failed = |error: model::machine::MachineError| Failure::new(RUN_FAILED, error.to_string());
    let name = match asked {
        Some(file) if file.contains('/') || file.ends_with(".toml") => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                Failure::new(RUN_FAILED, format!("cannot read {file}: {error}"))
            })?;
            let machine = Machine::load(file, &text, &[]).map_err(failed)?;
            return Ok((machine, text));
        }
        Some(name) => name.to_owned(),
        None => default_machine(),
    };
    let machine = Machine::named(&name).map_err(failed)?;
    let text = model::machine::text_of(&machine.name).unwrap_or_default().to_owned();
    Ok((machine, text))
}

/// Where nothing describes this host, a common server core stands in; the report names it.
fn default_machine() -> String {
    let here = crate::doctor::this_processor();
    let matching = match (here.family, here.model) {
        (Some(family), Some(model)) => Machine::matching(&here.vendor, family, model),
        _ => None,
    };
    matching.map_or_else(|| "icelake-server".to_owned(), |machine| machine.name)
}

/// Why a program could not be run under the tracer.
pub(crate) fn failure(error: LaunchError) -> Failure {
    let status = match &error {
        LaunchError::Target(why) => why.exit_status(),
        _ => RUN_FAILED,
    };
    let remedy = match &error {
        LaunchError::Qemu(_) => "`whither doctor` says what this machine has",
        _ => "",
    };
    Failure::new(status, error.to_string()).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    #[test]
    fn a_run_that_counted_nothing_is_no_report_of_zeros() {
        let machine = Machine::named("zen4").unwrap();
        let empty =
            |raw| ModelledRun::of(Some(ExitStatus::from_raw(raw)), &BTreeMap::new(), &machine);
        assert!(counted(empty(0)).unwrap_err().sentence().contains("counted nothing"));
        // One that was killed may have come to nothing.
        assert!(counted(empty(9)).is_ok());
    }
}
