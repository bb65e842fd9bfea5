//! Arguments checked and completed: everything that can be wrong with a command line is found
//! here, before anything runs. A command with arguments of its own has a file of its own.

mod annotate;
mod calc;
mod calibrate;
mod count;
mod daemon;
mod database;
mod diff;
mod engine;
mod export;
mod icost;
mod import;
mod measure;
mod model;
mod prof;
mod record;
mod run;
mod selection;
mod shotgun;
mod ssb;
mod stat;
mod stats;
mod time;
mod whom;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use clap_complete::Shell;
use pmu::{EventSet, EventTable, event_sets, nearest, parse_events};
use vocab::Event;

pub(crate) use self::annotate::AnnotateJob;
use self::annotate::annotate_job;
pub(crate) use self::calc::{CalcJob, CfgJob, SummaryJob};
use self::calc::{calc_job, cfg_job, summary_job};
pub(crate) use self::calibrate::CalibrateJob;
use self::calibrate::calibrate_job;
pub(crate) use self::count::CountJob;
use self::count::count_job;
use self::daemon::daemon_job;
pub(crate) use self::daemon::{Ask, DaemonJob, StartJob, What};
pub(crate) use self::diff::DiffJob;
use self::diff::diff_job;
pub(crate) use self::export::ExportJob;
use self::export::export_job;
use self::icost::icost_job;
pub(crate) use self::icost::{IcostJob, check_machine};
pub(crate) use self::import::ImportJob;
use self::import::import_job;
use self::measure::measure_job;
pub(crate) use self::measure::{MeasureJob, Varies, WarmUp};
pub(crate) use self::model::ModelJob;
use self::model::model_job;
pub(crate) use self::prof::ProfJob;
use self::prof::prof_job;
use self::record::record_job;
pub(crate) use self::record::{ModelledRecord, RecordJob, Who};
pub(crate) use self::run::RunJob;
use self::run::run_job;
pub(crate) use self::selection::{EpochChoice, Selection};
use self::shotgun::shotgun_job;
pub(crate) use self::shotgun::{InputKind, ShotgunJob};
use self::ssb::ssb_job;
pub(crate) use self::ssb::{Here, OnModel, SsbJob, Watched};
use self::stat::stat_job;
pub(crate) use self::stat::{Form, StatJob, software_set};
pub(crate) use self::stats::StatsJob;
use self::stats::stats_job;
pub(crate) use self::whom::{Subject, Whom};
use super::arguments::{Arguments, Command};
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
    Icost(Box<IcostJob>),
    Shotgun(Box<ShotgunJob>),
    Calibrate(CalibrateJob),
    Stat(StatJob),
    Ssb(SsbJob),
    Measure(Box<MeasureJob>),
    Daemon(DaemonJob),
    Record(RecordJob),
    Import(ImportJob),
    Prof(ProfJob),
    Annotate(AnnotateJob),
    Calc(CalcJob),
    Summary(SummaryJob),
    Cfg(CfgJob),
    Stats(StatsJob),
    Diff(DiffJob),
    Count(CountJob),
    Export(ExportJob),
    Doctor,
    List(ListJob),
    Completions(Shell),
    Manual(Option<PathBuf>),
}

pub(crate) use super::arguments::ListArgument as ListWhat;

/// What to list, and of which core.
#[derive(Debug)]
pub(crate) struct ListJob {
    pub(crate) what: ListWhat,
    /// A modelled machine; none for this host.
    pub(crate) machine: Option<String>,
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

/// The commands that run a program once and pass its status through.
const RUN_ONCE: [&str; 8] = ["run", "model", "icost", "shotgun", "stat", "ssb", "record", "count"];

/// From argv.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Plan, Refused> {
    let runs_a_program =
        arguments.get(1).is_some_and(|command| RUN_ONCE.iter().any(|known| command == known));
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
        pages: false,
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
        Command::Icost(mut icost) => {
            output.file = icost.output.take();
            if icost.replay.is_none() {
                output.stream = Stream::Stderr;
                output.failure_status = RUN_FAILED;
            }
            Job::Icost(Box::new(icost_job(icost)?))
        }
        Command::Shotgun(mut shotgun) => {
            output.file = shotgun.output.take();
            if shotgun.replay.is_none() && shotgun.input.is_none() {
                output.stream = Stream::Stderr;
                output.failure_status = RUN_FAILED;
            }
            Job::Shotgun(Box::new(shotgun_job(*shotgun)?))
        }
        Command::Calibrate(asked) => Job::Calibrate(calibrate_job(asked)?),
        Command::Stat(mut stat) => {
            output.stream = Stream::Stderr;
            output.file = stat.output.take();
            output.failure_status = RUN_FAILED;
            Job::Stat(stat_job(stat)?)
        }
        Command::Ssb(mut ssb) => {
            output.file = ssb.output.take();
            // Following a log runs no program: there are no streams to leave alone.
            if ssb.follow.is_none() {
                output.stream = Stream::Stderr;
                output.failure_status = RUN_FAILED;
            }
            Job::Ssb(ssb_job(ssb)?)
        }
        Command::Measure(mut measure) => {
            output.file = measure.output.take();
            Job::Measure(Box::new(measure_job(*measure)?))
        }
        Command::Daemon(daemon) => Job::Daemon(daemon_job(daemon)?),
        Command::Record(record) => {
            output.stream = Stream::Stderr;
            output.failure_status = RUN_FAILED;
            Job::Record(record_job(record)?)
        }
        Command::Import(import) => Job::Import(import_job(import)?),
        Command::Prof(prof) => {
            output.pages = !prof.selection.no_pager;
            Job::Prof(prof_job(prof)?)
        }
        Command::Annotate(asked) => {
            output.pages = !asked.selection.no_pager;
            Job::Annotate(annotate_job(asked)?)
        }
        Command::Calc(asked) => {
            output.pages = !asked.selection.no_pager;
            Job::Calc(calc_job(asked)?)
        }
        Command::Summary(asked) => {
            output.pages = !asked.selection.no_pager;
            Job::Summary(summary_job(asked)?)
        }
        Command::Cfg(asked) => {
            output.pages = !asked.selection.no_pager;
            output.file = asked.output.clone();
            Job::Cfg(cfg_job(asked)?)
        }
        Command::Stats(asked) => {
            output.pages = !asked.selection.no_pager;
            Job::Stats(stats_job(asked)?)
        }
        Command::Diff(asked) => {
            output.pages = !asked.selection.no_pager;
            Job::Diff(diff_job(asked)?)
        }
        Command::Count(mut count) => {
            output.stream = Stream::Stderr;
            output.file = count.output.take();
            output.failure_status = RUN_FAILED;
            Job::Count(count_job(count)?)
        }
        Command::Export(asked) => Job::Export(export_job(asked)?),
        Command::Doctor => Job::Doctor,
        Command::List { what, machine } => Job::List(ListJob { what, machine }),
        Command::Completions { shell } => Job::Completions(shell),
        Command::Man { dir } => Job::Manual(dir),
    };
    Ok(Plan { job, output })
}

/// The table that travels with the program; a fault in it is ours.
pub(crate) fn event_table(status: u8) -> Result<EventTable, Failure> {
    EventTable::embedded().map_err(|error| Failure::new(status, error.to_string()))
}

/// The set of that name.
fn set_named(name: &str, status: u8) -> Result<EventSet, Failure> {
    let failed = |why: String| Failure::new(status, why);
    let mut sets = event_sets().map_err(|error| failed(error.to_string()))?;
    if let Some(place) = sets.iter().position(|set| set.name == name) {
        return Ok(sets.swap_remove(place));
    }
    let near = nearest(name, sets.iter().map(|set| set.name.as_str()));
    Err(failed(match near {
        Some(near) => format!("there is no set '{name}'; did you mean '{near}'?"),
        None => format!("there is no set '{name}'; `whither list sets` shows them all"),
    }))
}

fn events_of_set(table: &EventTable, name: &str) -> Result<Vec<Event>, Failure> {
    let failed = |why: String| Failure::new(RUN_FAILED, why);
    let set = set_named(name, RUN_FAILED)?;
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
