//! Arguments checked and completed: everything that can be wrong with a command line is found
//! here, before anything runs.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use clap_complete::Shell;
use image::Syntax;
use model::core::{Ideal, Mode, Settings};
use model::machine::Machine;
use pmu::{EventTable, event_sets, nearest, parse_event, parse_events};
use tracer::modelled::CoreAsk;
use vocab::Event;

use super::arguments::{
    Arguments, Command, CoreArgument, ModeArgument, ModelArguments, RunArguments, SyntaxArgument,
};
use crate::failure::{ERROR, Failure, RUN_FAILED, USAGE};
use crate::output::{Output, Stream};

/// What is to be done, and how to speak about it.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) job: Job,
    pub(crate) output: Output,
}

#[derive(Debug)]
pub(crate) enum Job {
    Run(RunJob),
    Model(ModelJob),
    Doctor,
    List(ListWhat),
    Completions(Shell),
    Manual(Option<PathBuf>),
}

pub(crate) use super::arguments::ListArgument as ListWhat;

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

/// A modelled run, with every name resolved.
#[derive(Debug)]
pub(crate) struct ModelJob {
    pub(crate) program: Vec<OsString>,
    pub(crate) machine: Machine,
    /// The text of the machine's file, which travels to the plugin.
    pub(crate) machine_text: String,
    pub(crate) settings: Settings,
    pub(crate) core: CoreAsk,
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
    /// The machine as its file says, beside a native run.
    fn plain(program: Vec<OsString>, machine: Option<&str>) -> Result<ModelJob, Failure> {
        let (machine, machine_text) = crate::model::find_machine(machine)?;
        Ok(ModelJob {
            program,
            machine,
            machine_text,
            settings: Settings::default(),
            core: sampled(None, 1)?,
            is_repeatable: false,
            procedures: 0,
            drops_output: true,
            record: None,
            replay: None,
        })
    }
}

/// A command line that does not become a plan.
#[derive(Debug)]
pub(crate) enum Refused {
    /// clap's own words: an error, or the help that was asked for.
    Words(Box<clap::Error>, u8),
    /// Ours.
    Failure(Failure, bool),
}

impl Refused {
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Refused::Words(words, status) => {
                let _ = words.print();
                ExitCode::from(*status)
            }
            Refused::Failure(failure, json) => failure.report(*json),
        }
    }
}

/// From argv.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Plan, Refused> {
    let runs_a_program =
        arguments.get(1).is_some_and(|command| command == "run" || command == "model");
    let usage = if runs_a_program { RUN_FAILED } else { USAGE };
    let parsed = Arguments::try_parse_from(arguments).map_err(|error| {
        let asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        Refused::Words(Box::new(error), if asked_for { 0 } else { usage })
    })?;
    let json = parsed.speech.json;
    plan(parsed).map_err(|failure| Refused::Failure(failure, json))
}

fn plan(arguments: Arguments) -> Result<Plan, Failure> {
    let mut output = Output {
        json: arguments.speech.json,
        colour: arguments.speech.color,
        stream: Stream::Stdout,
        file: None,
        failure_status: ERROR,
    };
    let job = match arguments.command {
        Command::Run(mut run) => {
            output.stream = Stream::Stderr;
            output.file = run.output.take();
            output.failure_status = RUN_FAILED;
            Job::Run(run_job(run)?)
        }
        Command::Model(mut model) => {
            output.file = model.output.take();
            // A replay runs no program: there are no streams to leave alone.
            if model.replay.is_none() {
                output.stream = Stream::Stderr;
                output.failure_status = RUN_FAILED;
            }
            Job::Model(model_job(model)?)
        }
        Command::Doctor => Job::Doctor,
        Command::List { what } => Job::List(what),
        Command::Completions { shell } => Job::Completions(shell),
        Command::Man { dir } => Job::Manual(dir),
    };
    Ok(Plan { job, output })
}

fn run_job(run: RunArguments) -> Result<RunJob, Failure> {
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
        true => Some(ModelJob::plain(run.program.clone(), run.machine.as_deref())?),
        false => None,
    };
    Ok(RunJob {
        program: run.program,
        event,
        rate,
        counted: events_of_set(&table, &run.set)?,
        procedures: run.procedures,
        hottest: run.hottest,
        syntax: match run.syntax {
            SyntaxArgument::Intel => Syntax::Intel,
            SyntaxArgument::Att => Syntax::Att,
        },
        model,
    })
}

fn model_job(model: ModelArguments) -> Result<ModelJob, Failure> {
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
        is_repeatable: model.pin,
        procedures: model.procedures,
        drops_output: false,
        record: model.record,
        replay: model.replay,
    })
}

/// 3 % unless asked otherwise.
fn sampled(error: Option<&str>, seed: u64) -> Result<CoreAsk, Failure> {
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

/// The table that travels with the program; a fault in it is ours.
pub(crate) fn event_table(status: u8) -> Result<EventTable, Failure> {
    EventTable::embedded().map_err(|error| Failure::new(status, error.to_string()))
}

fn events_of_set(table: &EventTable, name: &str) -> Result<Vec<Event>, Failure> {
    let failed = |why: String| Failure::new(RUN_FAILED, why);
    let sets = event_sets().map_err(|error| failed(error.to_string()))?;
    let Some(set) = sets.iter().find(|set| set.name == name) else {
        let near = nearest(name, sets.iter().map(|set| set.name.as_str()));
        return Err(failed(match near {
            Some(near) => format!("there is no set '{name}'; did you mean '{near}'?"),
            None => format!("there is no set '{name}'; `whither list sets` shows them all"),
        }));
    };
    parse_events(table, &set.events.join(",")).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Plan, Refused> {
        parse(line.split(' ').map(OsString::from).collect())
    }

    fn refusal(line: &str) -> (String, u8) {
        match parsed(line).unwrap_err() {
            Refused::Words(error, status) => (error.to_string(), status),
            Refused::Failure(failure, _) => (failure.sentence(), failure.status),
        }
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let (words, status) = refusal("whither run -e cylces -- true");
        assert_eq!(
            (words.as_str(), status),
            ("there is no event 'cylces'; did you mean 'cycles'?", 125)
        );
        let (words, _) = refusal("whither run --set basc -- true");
        assert!(words.contains("did you mean 'basic'?"), "{words}");
        let (words, status) = refusal("whither docter");
        assert!(words.contains("'doctor'") && status == 2, "{words}");
        let (words, status) = refusal("whither run --evnt cycles -- true");
        assert!(words.contains("--event") && status == 125, "{words}");
    }

    #[test]
    fn rates_of_nothing_are_refused() {
        assert_eq!(refusal("whither run -F 0 -- true").1, 125);
        assert_eq!(refusal("whither run -F 5 -c 5 -- true").1, 125);
        assert_eq!(refusal("whither run").1, 125);
    }

    #[test]
    fn a_run_reports_to_stderr_and_other_commands_to_stdout() {
        assert_eq!(parsed("whither run -- true").unwrap().output.stream, Stream::Stderr);
        assert_eq!(parsed("whither doctor --json").unwrap().output.stream, Stream::Stdout);
    }

    #[test]
    fn help_is_no_error() {
        assert_eq!(refusal("whither run --help").1, 0);
        assert_eq!(refusal("whither --version").1, 0);
    }
}
