//! `whither record`, checked and completed.

use std::ffi::OsString;
use std::path::PathBuf;

use pmu::parse_events;
use tracer::launch::EngineChoice;
use vocab::{Cpu, Event};

use super::database::database;
use super::engine::engine_choice;
use super::event_table;
use crate::cli::arguments::RecordArguments;
use crate::failure::{Failure, RUN_FAILED};
use crate::run::parse_cpus;

/// What is to be sampled into which database.
#[derive(Debug)]
pub(crate) struct RecordJob {
    /// The program and its arguments; may be empty where processes are sampled.
    pub(crate) program: Vec<OsString>,
    pub(crate) who: Who,
    /// Empty: the best that this machine has.
    pub(crate) events: Vec<Event>,
    pub(crate) rate: Option<perf::Rate>,
    /// Empty: all that are online.
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) chains: bool,
    pub(crate) database: PathBuf,
    /// On this core instead of the machine.
    pub(crate) modelled: Option<ModelledRecord>,
}

/// A modelled recording: its events go by the model's own names.
#[derive(Debug)]
pub(crate) struct ModelledRecord {
    pub(crate) machine: String,
    pub(crate) seed: u64,
    pub(crate) events: Option<String>,
    /// What runs the program.
    pub(crate) engine: EngineChoice,
}

/// Whose samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// The program's and its children's.
    Program,
    /// These processes'.
    Processes(Vec<u32>),
    /// These threads'.
    Threads(Vec<u32>),
    /// Everybody's.
    Machine,
}

pub(super) fn record_job(record: RecordArguments) -> Result<RecordJob, Failure> {
    let engine = engine_choice(&record.engine)?;
    let modelled = record.machine.map(|machine| ModelledRecord {
        machine,
        seed: record.seed,
        events: record.event.clone(),
        engine,
    });
    let events = match (&record.event, &modelled) {
        (Some(spelling), None) => parse_events(&event_table(RUN_FAILED)?, spelling)
            .map_err(|error| Failure::new(RUN_FAILED, error.to_string()))?,
        _ => Vec::new(),
    };
    let rate = match (record.freq, record.count) {
        (Some(hertz), _) => Some(perf::Rate::Hertz(hertz)),
        (None, Some(period)) => Some(perf::Rate::Period(period)),
        (None, None) => None,
    };
    // As with perf, whoever names CPUs and no process means all that runs there.
    let who = match (record.all_cpus, record.pid.is_empty()) {
        (true, _) => Who::Machine,
        (false, true) if !record.tid.is_empty() => Who::Threads(record.tid),
        (false, true) if record.cpu.is_some() => Who::Machine,
        (false, false) => Who::Processes(record.pid),
        (false, true) => Who::Program,
    };
    Ok(RecordJob {
        program: record.program,
        who,
        events,
        rate,
        cpus: record.cpu.as_deref().map(cpus).transpose()?.unwrap_or_default(),
        chains: record.chains || record.call_graph.is_some(),
        database: database(record.output)?,
        modelled,
    })
}

fn cpus(text: &str) -> Result<Vec<Cpu>, Failure> {
    let sound = text.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '-'));
    if !sound || text.is_empty() {
        return Err(Failure::new(RUN_FAILED, format!("'{text}' is no list of CPUs"))
            .remedy("write it as in -C 0-3,8"));
    }
    Ok(parse_cpus(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Job, parse};

    fn whose(line: &str) -> Who {
        let words = line.split(' ').map(OsString::from).collect();
        match parse(words).unwrap().job {
            Job::Record(job) => job.who,
            other => panic!("{other:?}"),
        }
    }

    /// As perf has it.
    #[test]
    fn cpus_without_a_process_mean_everybody_who_runs_there() {
        assert_eq!(whose("whither record -o /tmp/db true"), Who::Program);
        assert_eq!(whose("whither record -o /tmp/db -C 0 true"), Who::Machine);
        assert_eq!(whose("whither record -o /tmp/db -C 0-3,8"), Who::Machine);
        assert_eq!(whose("whither record -o /tmp/db -C 0 -p 7"), Who::Processes(vec![7]));
        assert_eq!(whose("whither record -o /tmp/db -a true"), Who::Machine);
        assert_eq!(whose("whither record -o /tmp/db -t 7,8"), Who::Threads(vec![7, 8]));
        assert_eq!(whose("whither record -o /tmp/db -C 1 -t 7"), Who::Threads(vec![7]));
    }

    #[test]
    fn callers_are_asked_for_by_either_of_perfs_names() {
        let chains = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            match parse(words).unwrap().job {
                Job::Record(job) => (job.chains, job.program.len()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(chains("whither record -o /tmp/db true"), (false, 1));
        assert_eq!(chains("whither record -o /tmp/db -g true"), (true, 1));
        assert_eq!(chains("whither record -o /tmp/db --call-graph fp true"), (true, 1));
        let words = "whither record --call-graph dwarf true".split(' ').map(OsString::from);
        assert!(parse(words.collect()).is_err());
    }
}
