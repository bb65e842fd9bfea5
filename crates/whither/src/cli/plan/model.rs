//! `whither model`, checked and completed.

use std::ffi::OsString;
use std::path::PathBuf;

use model::core::{Ideal, Mode, Settings};
use model::machine::Machine;
use pmu::nearest;
use tracer::launch::EngineChoice;
use tracer::modelled::CoreAsk;

use super::engine::engine_choice;
use crate::cli::arguments::{CoreArgument, ModeArgument, ModelArguments};
use crate::failure::{Failure, RUN_FAILED};

/// A modelled run, with every name resolved.
#[derive(Debug)]
pub(crate) struct ModelJob {
    pub(crate) program: Vec<OsString>,
    pub(crate) machine: Machine,
    /// The text of the machine's file, which travels to the engine.
    pub(crate) machine_text: String,
    pub(crate) settings: Settings,
    pub(crate) core: CoreAsk,
    /// What runs the program.
    pub(crate) engine: EngineChoice,
    pub(crate) is_repeatable: bool,
    pub(crate) procedures: usize,
    /// Whether what the program writes is dropped.
    pub(crate) drops_output: bool,
    /// Record the instructions here instead of timing them.
    pub(crate) record: Option<PathBuf>,
    /// Take the instructions from here instead of running a program.
    pub(crate) replay: Option<PathBuf>,
}

impl ModelJob {
    /// The same machine and settings for another program and core.
    pub(crate) fn with(&self, program: Vec<OsString>, core: CoreAsk) -> ModelJob {
        ModelJob {
            program,
            core,
            machine: self.machine.clone(),
            machine_text: self.machine_text.clone(),
            engine: self.engine.clone(),
            record: None,
            replay: None,
            ..*self
        }
    }

    /// The machine as its file says, beside a native run.
    pub(crate) fn plain(
        program: Vec<OsString>,
        machine: Option<&str>,
        engine: EngineChoice,
    ) -> Result<ModelJob, Failure> {
        let (machine, machine_text) = crate::model::find_machine(machine)?;
        Ok(ModelJob {
            program,
            machine,
            machine_text,
            settings: Settings::default(),
            core: sampled(None, 1)?,
            engine,
            is_repeatable: false,
            procedures: 0,
            drops_output: true,
            record: None,
            replay: None,
        })
    }
}

pub(super) fn model_job(model: ModelArguments) -> Result<ModelJob, Failure> {
    let engine = engine_choice(&model.engine)?;
    let (machine, machine_text) = crate::model::find_machine(model.machine.as_deref())?;
    let mut ideal = Ideal::NONE;
    for name in &model.ideal {
        ideal = ideal.with(ideal_named(name)?);
    }
    let mode = match model.mode {
        ModeArgument::Native => Mode::Native,
        ModeArgument::Single => Mode::Single,
        ModeArgument::InOrder => Mode::InOrder,
        ModeArgument::InOrderSuperscalar => Mode::InOrderSuperscalar,
    };
    Ok(ModelJob {
        program: model.program,
        machine,
        machine_text,
        settings: Settings { mode, ideal },
        core: match (model.full, model.core) {
            (true, _) | (false, Some(CoreArgument::Fast)) => CoreAsk::Fast,
            (false, Some(CoreArgument::Reference)) => CoreAsk::Reference,
            (false, Some(CoreArgument::Warm)) => CoreAsk::Warm,
            (false, None) => sampled(model.error.as_deref(), model.seed)?,
        },
        engine,
        is_repeatable: model.pin,
        procedures: model.procedures,
        drops_output: false,
        record: model.record,
        replay: model.replay,
    })
}

/// 3 % unless asked otherwise.
pub(super) fn sampled(error: Option<&str>, seed: u64) -> Result<CoreAsk, Failure> {
    let text = error.unwrap_or("3%");
    let digits = text.strip_suffix('%').unwrap_or(text).trim();
    let percent = digits.parse::<f64>().ok().filter(|p| (0.1..=50.0).contains(p));
    let percent = percent.ok_or_else(|| {
        Failure::new(RUN_FAILED, format!("'{text}' is no error to sample to"))
            .remedy("give a percentage from 0.1% to 50%, or --full to time everything")
    })?;
    Ok(CoreAsk::Sampled { error_ppm: (percent * 1e4).round() as u32, seed })
}

fn ideal_named(name: &str) -> Result<Ideal, Failure> {
    let names = Ideal::NAMES.iter().map(|(name, _)| *name);
    let found = Ideal::NAMES.iter().find(|(known, _)| *known == name);
    found.map(|(_, ideal)| *ideal).ok_or_else(|| {
        let near = nearest(name, names.clone());
        let known = names.collect::<Vec<_>>().join(", ");
        Failure::new(
            RUN_FAILED,
            match near {
                Some(near) => {
                    format!("there is no part '{name}' to make perfect; did you mean '{near}'?")
                }
                None => format!("there is no part '{name}' to make perfect; the parts are {known}"),
            },
        )
    })
}
