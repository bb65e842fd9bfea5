//! `whither ssb`: the live stall breakdown.
//!
//! ```text
//! modelled core ─┐
//! perf events ───┼─► Record ─► Account: slices by process, cut into intervals ─► Painter
//! counter log ───┘      └────► log file, for others to follow
//! ```

mod account;
mod here;
mod log_file;
mod painter;
mod parts;
mod screen;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use counters::{LogReadError, LogReader};
use model::machine::Machine;
use perf::StopRequest;
use pmu::log::{Header, Record};
use pmu::{Breakdown, Grouping, cores, modelled_events};
use vocab::Source;

use crate::cli::{OnModel, SsbJob, Watched};
use crate::failure::{ERROR, Failure, RUN_FAILED, passed_on};
use crate::modelled_counters::{Ask, Received, Shares, Turns, run};
use crate::output::Output;
use crate::stat::{Constants, constants};
use account::{Account, Clock};
use log_file::Log;
use painter::Painter;
use parts::Division;
use screen::Origin;

/// How often a log is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// So many looks in vain after every thread has ended, and a log is over.
const QUIET: u32 = 10;

/// Watches and reports; returns the program's own status.
pub(crate) fn ssb(job: &SsbJob, output: &Output) -> Result<u8, Failure> {
    match &job.whom {
        Watched::Modelled(on) => on_model(job, on, output),
        Watched::Here(here) => here::watch(job, here, output),
        Watched::Log(path) => {
            let log = LogReader::open(path).map_err(|error| unreadable(path, &error))?;
            follow(job, path, log, &mut Painter::new(output, job.is_plain)?)
        }
    }
}

fn on_model(job: &SsbJob, on: &OnModel, output: &Output) -> Result<u8, Failure> {
    let ask = Ask {
        program: &on.program,
        machine: &on.machine,
        machine_text: &on.machine_text,
        events: &on.events,
        counters: on.turns.counters,
        slice: on.turns.slice.clone(),
        seed: on.turns.seed,
        shares: Shares::Even,
        engine: &on.engine,
    };
    let turns = Turns::plan(&ask)?;
    let division = division(&on.breakdown, constants(&on.machine), &turns.grouping)?;
    let mut account = Account::new(
        turns.grouping.clone(),
        division,
        Clock::Cycles(f64::from(on.machine.identity.clock_mhz) * 1e6),
        job.interval.as_secs_f64(),
    );
    let mut painter = Painter::new(output, job.is_plain)?;
    let words: Vec<_> = on.program.iter().map(|word| word.to_string_lossy()).collect();
    painter.origin = Origin {
        title: words.join(" "),
        source: Source::Modelled.word().into(),
        machine: on.machine.name.clone(),
        mode: turns.header.mode.clone(),
        ideal_cpi: Some(1.0 / f64::from(on.machine.window.dispatch_width.max(1))),
    };
    let path = on.turns.log.as_deref();
    let mut log = path.map(|path| Log::create(path, turns.header.clone())).transpose()?;
    let mut damage = Vec::new();
    let finished = run(&ask, &turns, |received| {
        match received {
            Received::Damage(sentence) => damage.push(sentence),
            Received::Record(record) => {
                if let Some(log) = &mut log {
                    log.write(&record)?;
                }
                if let Some(interval) = account.take(&record) {
                    painter.show(&account, &interval)?;
                }
            }
        }
        Ok(())
    })?;
    for interval in account.close_all() {
        painter.show(&account, &interval)?;
    }
    painter.finish(&account, &damage)?;
    Ok(passed_on(finished.status.code(), finished.status.signal()))
}

fn division(
    breakdown: &Breakdown,
    constants: Constants,
    grouping: &Grouping,
) -> Result<Division, Failure> {
    Division::new(breakdown.clone(), constants, grouping)
        .map_err(|error| Failure::new(RUN_FAILED, error.to_string()))
}

/// Shows a log, and goes on while it grows: until every thread in it has ended, or Ctrl-C.
fn follow(
    job: &SsbJob,
    path: &Path,
    mut log: LogReader,
    painter: &mut Painter<'_>,
) -> Result<u8, Failure> {
    let stop = StopRequest::listen();
    let mut account: Option<Account> = None;
    let mut quiet = 0;
    while !stop.is_asked() && quiet < QUIET {
        let Some(record) = log.wait(LOOK).map_err(|error| unreadable(path, &error))? else {
            quiet = if account.as_ref().is_some_and(Account::is_over) { quiet + 1 } else { 0 };
            continue;
        };
        quiet = 0;
        match (&mut account, &record) {
            (None, Record::Header(header)) => {
                let title = path.display().to_string();
                let (new, origin) = of_header(header, &title, job.interval.as_secs_f64())?;
                painter.origin = origin;
                account = Some(new);
            }
            (None, _) => {}
            (Some(account), record) => {
                if let Some(interval) = account.take(record) {
                    painter.show(account, &interval)?;
                }
            }
        }
    }
    let Some(mut account) = account else { return Ok(0) };
    for interval in account.close_all() {
        painter.show(&account, &interval)?;
    }
    painter.finish(&account, &[])?;
    Ok(0)
}

fn unreadable(path: &Path, error: &LogReadError) -> Failure {
    Failure::new(ERROR, format!("{}: {error}", path.display()))
}

/// An account for what a log's header says.
fn of_header(header: &Header, title: &str, interval_s: f64) -> Result<(Account, Origin), Failure> {
    let grouping = header.grouping();
    let is_modelled = header.source == "modelled core";
    let machine = if is_modelled { Machine::named(&header.machine).ok() } else { None };
    let (breakdown, width) = breakdown_of(header, is_modelled)?;
    let width = machine.as_ref().map(|m| m.window.dispatch_width).or(width);
    let mut known = machine.as_ref().map(constants).unwrap_or_default();
    if machine.is_none() {
        known.0.extend(width.map(|width| ("width", f64::from(width))));
    }
    let time = grouping.find(counters::TIME).filter(|&place| place < grouping.anchors);
    let clock = match (time, &machine) {
        (Some(place), _) => Clock::Anchor(place),
        (None, Some(machine)) => Clock::Cycles(f64::from(machine.identity.clock_mhz) * 1e6),
        // Nothing tells: a thousand million cycles are called a second.
        (None, None) => Clock::Cycles(1e9),
    };
    let division = division(&breakdown, known, &grouping)?;
    let source = if is_modelled { Source::Modelled } else { Source::Measured };
    let origin = Origin {
        title: title.to_owned(),
        source: source.word().into(),
        machine: header.machine.clone(),
        mode: header.mode.clone(),
        ideal_cpi: width.map(|width| 1.0 / f64::from(width.max(1))),
    };
    Ok((Account::new(grouping, division, clock, interval_s), origin))
}

/// The division whose events the log holds, and the core's width.
fn breakdown_of(header: &Header, is_modelled: bool) -> Result<(Breakdown, Option<u32>), Failure> {
    let failed = |error: pmu::TableError| Failure::new(ERROR, error.to_string());
    let has = |breakdown: &Breakdown| {
        let plain: Vec<&str> = header
            .events
            .iter()
            .map(|name| name.trim_end_matches(":u").trim_end_matches(":k"))
            .collect();
        breakdown.events().iter().all(|event| plain.contains(&event.as_str()))
    };
    let found = if is_modelled {
        let modelled = modelled_events().map_err(failed)?;
        modelled.breakdown.into_iter().find(has).map(|breakdown| (breakdown, None))
    } else {
        let all = cores().map_err(failed)?.into_iter();
        all.flat_map(|core| core.breakdown.into_iter().map(move |b| (b, core.width)))
            .find(|(breakdown, _)| has(breakdown))
    };
    found.ok_or_else(|| {
        Failure::new(ERROR, "the log holds no set of events that divides cycles by cause")
            .remedy("write one with `whither ssb --log FILE`")
    })
}
