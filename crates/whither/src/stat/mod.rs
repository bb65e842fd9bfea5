//! `whither stat`: counts of any number of events, each with its uncertainty.
//!
//! ```text
//! StatJob ─┬─ native: counters::Session (perf events) ─┐
//!          └─ modelled: the core's own counters ───────┴─► Batch ─► View | perf's columns | JSON
//! ```

mod batch;
mod counting;
mod measures;
mod modelled;
mod native;
mod perf_forms;
mod sink;
#[cfg(test)]
mod testing;
mod view;

use counters::On;
use model::machine::Machine;
use pmu::EventList;
use show::{Cell, Fact};
use vocab::{Event, EventCode, Mode, Source};

use crate::cli::{Form, StatJob, Whom};
use crate::failure::{Failure, RUN_FAILED, passed_on};
use crate::output::Output;
use crate::run::{Program, find_program};
pub(crate) use batch::{CountRow, Missing, Part, Total};
pub(crate) use counting::count_failure;
pub(crate) use measures::{Constants, Given, Slices, modifiers};
pub(crate) use modelled::constants;
pub(crate) use sink::Sink;

use batch::{Batch, over_runs};
use native::Measured;
use view::About;

const NEEDS_PMU: &str = "hardware events (cycles, instructions, cache misses) need a PMU, which \
                         this machine does not have; `--machine NAME` counts them on a modelled core";

/// Counts and reports; returns the program's own status.
pub(crate) fn stat(job: &StatJob, output: &Output) -> Result<u8, Failure> {
    let program = match job.program.is_empty() {
        true => None,
        false => Some(find_program(&job.program)?),
    };
    let mut sink = Sink::open(output, job.appends)?;
    if let Some(machine) = &job.machine {
        return on_model(job, machine, &mut sink);
    }
    let (events, lack) = countable(job)?;
    let mut printer = Printer { job, has_heading: false };
    let mut runs = Vec::new();
    for _ in 0..job.repeat {
        let mut interval = |batch: Batch| printer.interval(&batch, &mut sink);
        runs.push(match (&job.whom, &program) {
            (Whom::Others(subjects), timer) => {
                native::others(job, &events, subjects, timer.as_ref(), &mut interval)?
            }
            (Whom::Program, Some(program)) => {
                native::program(job, &events, program, &mut interval)?
            }
            (Whom::Program, None) => return Err(Failure::new(RUN_FAILED, "no program was named")),
        });
    }
    let status = runs.iter().filter_map(|run| run.ended.as_ref()).next_back();
    let status = status.map_or(0, |ended| passed_on(ended.code(), ended.signal()));
    if job.interval.is_none() {
        let title = title(job, program.as_ref());
        let batches: Vec<Batch> = runs.iter().map(|run| run.batch.clone()).collect();
        printer.total(&over_runs(&batches), &about(&runs, &title, lack), &mut sink)?;
    }
    Ok(status)
}

/// The same on a modelled core.
fn on_model(
    job: &StatJob,
    machine: &(Machine, String),
    sink: &mut Sink<'_>,
) -> Result<u8, Failure> {
    let mut printer = Printer { job, has_heading: false };
    let mut runs = Vec::new();
    for _ in 0..job.repeat {
        let mut interval = |batch: Batch| printer.interval(&batch, sink);
        runs.push(modelled::program(job, machine, &mut interval)?);
    }
    let Some(last) = runs.last() else { return Ok(0) };
    let status = last.status;
    if job.interval.is_none() {
        let words: Vec<_> = job.program.iter().map(|word| word.to_string_lossy()).collect();
        let about = About {
            title: format!("whither stat: {}", words.join(" ")),
            facts: last.facts.clone(),
            notes: last.notes.clone(),
            caption: caption(runs.len(), &format!("modelled: {}; ", machine.0.title)),
        };
        let batches: Vec<Batch> = runs.into_iter().map(|run| run.batch).collect();
        printer.total(&over_runs(&batches), &about, sink)?;
    }
    Ok(status)
}

fn caption(runs: usize, source: &str) -> String {
    match runs {
        0 | 1 => format!("{source}± at 95 %"),
        runs => format!("{source}mean of {runs} runs, ± at 95 %"),
    }
}

/// The default set without its hardware part where there is no PMU, and a sentence about that.
fn countable(job: &StatJob) -> Result<(EventList, Option<String>), Failure> {
    let cycles = Event { name: "cycles".into(), code: EventCode::new(0, 0), mode: Mode::User };
    let lacks = |refusal: perf::Refusal| !refusal.is_permission();
    if !job.is_default || !perf::probe(&cycles).is_err_and(lacks) {
        return Ok((job.events.clone(), None));
    }
    let list = crate::cli::software_set()?;
    Ok((list, Some(NEEDS_PMU.to_owned())))
}

fn title(job: &StatJob, program: Option<&Program>) -> String {
    match &job.whom {
        Whom::Program => program.map_or(String::new(), Program::shown),
        Whom::Others(subjects) => {
            let mut words: Vec<String> =
                subjects.iter().map(|subject| described(&subject.on)).collect();
            // The CPUs of one control group follow each other.
            words.dedup();
            words.join(", ")
        }
    }
}

fn described(on: &On) -> String {
    match on {
        On::Process(pid) => format!("process {pid}"),
        On::Thread(tid) => format!("thread {tid}"),
        On::Cpus(cpus) if cpus.is_empty() => "all CPUs".to_owned(),
        On::Cpus(cpus) => {
            let numbers: Vec<String> = cpus.iter().map(|cpu| cpu.0.to_string()).collect();
            format!("CPU {}", numbers.join(", "))
        }
        On::Cgroup(directory, _) => format!("control group {}", directory.display()),
        On::Command(_) | On::ThisThread => "the program".to_owned(),
    }
}

/// Batches in the form that was asked for.
pub(crate) struct Printer<'a> {
    job: &'a StatJob,
    has_heading: bool,
}

impl Printer<'_> {
    fn interval(&mut self, batch: &Batch, sink: &mut Sink<'_>) -> Result<(), Failure> {
        match &self.job.form {
            Form::Csv(separator) => sink.write(&perf_forms::csv(batch, separator)),
            Form::PerfJson => sink.write(&perf_forms::json_lines(batch)),
            Form::View if sink.is_json() => {
                let at = batch.at_s.unwrap_or(batch.seconds);
                let at = Fact::new("at_s", "at", Cell::Number(at, show::Unit::Seconds));
                let about = About { facts: vec![at], ..About::default() };
                sink.write_view(&view::view(batch, &about))
            }
            Form::View => {
                if !std::mem::replace(&mut self.has_heading, true) {
                    sink.write(&view::interval_heading(batch))?;
                }
                sink.write(&view::interval_lines(batch))
            }
        }
    }

    fn total(&mut self, batch: &Batch, about: &About, sink: &mut Sink<'_>) -> Result<(), Failure> {
        match &self.job.form {
            Form::Csv(separator) => sink.write(&perf_forms::csv(batch, separator)),
            Form::PerfJson => sink.write(&perf_forms::json_lines(batch)),
            Form::View => sink.write_view(&view::view(batch, about)),
        }
    }
}

fn about(runs: &[Measured], title: &str, lack: Option<String>) -> About {
    let Some(last) = runs.last() else { return About::default() };
    let elapsed = runs.iter().map(|run| run.elapsed.as_secs_f64()).sum::<f64>() / runs.len() as f64;
    let mut facts = view::run_facts(title, last.ended.as_ref(), elapsed);
    facts.insert(1, view::source_fact(Source::Measured));
    if runs.len() > 1 {
        let runs = Cell::Count(vocab::Count(runs.len() as u64));
        facts.push(Fact::new("runs", "runs", runs));
    }
    facts.push(Fact::new("turns", "turns", Cell::text(&*last.turns)));
    let mut notes = last.notes.clone();
    notes.extend(lack);
    let caption = caption(runs.len(), "");
    About { title: format!("whither stat: {title}"), facts, notes, caption }
}
