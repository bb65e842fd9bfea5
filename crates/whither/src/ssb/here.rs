//! Watching on the machine itself, through perf events.

use std::time::{Duration, Instant};

use counters::{Ask, NOBODY, On, Outcome, Session, Slicing};
use perf::{Bystander, Held, Inherit, ProcessFd, StopRequest, wait_for_any};
use pmu::log::{Header, Record, Slice};
use pmu::schedule::SLICE_CYCLES;
use vocab::Source;

use super::account::{Account, Clock};
use super::division;
use super::log_file::Log;
use super::painter::Painter;
use super::screen::Origin;
use crate::cli::{Here, SsbJob};
use crate::failure::{Failure, RUN_FAILED, passed_on};
use crate::modelled_counters::Turn;
use crate::output::Output;
use crate::run::{exec_failure, find_program};
use crate::stat::{Constants, count_failure};

fn failed(what: String) -> Failure {
    Failure::new(RUN_FAILED, what)
}

/// Watches a program or a process.
pub(super) fn watch(job: &SsbJob, here: &Here, output: &Output) -> Result<u8, Failure> {
    match here.pid {
        Some(pid) => {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let session = open(here, On::Process(pid))?;
            let stop = StopRequest::listen();
            let mut watch = Watch::new(job, here, output, session, pid, name.trim())?;
            watch.session.start().map_err(|error| count_failure(&error))?;
            let process = ProcessFd::open(pid);
            let is_gone = || !std::path::Path::new(&format!("/proc/{pid}")).exists();
            watch.follow(job, process.as_ref(), &|| stop.is_asked() || is_gone())?;
            watch.finish()?;
            Ok(0)
        }
        None => program(job, here, output),
    }
}

fn open(here: &Here, on: On) -> Result<Session, Failure> {
    let mut ask = Ask::new(here.events.events.clone(), on);
    let slice = match &here.turns.slice {
        Some(Turn::Of(slice)) => *slice,
        Some(Turn::OfEvent(number, _)) => counters::Slice::Occurrences(*number),
        None => counters::Slice::Cycles(SLICE_CYCLES),
    };
    ask.slicing = Slicing::Own { slice, however_short: false };
    ask.boundary.clone_from(&here.turns.boundary);
    ask.counters = here.turns.counters;
    ask.seed = here.turns.seed;
    ask.inherit = Inherit::All;
    Session::open(&ask).map_err(|error| count_failure(&error))
}

fn program(job: &SsbJob, here: &Here, output: &Output) -> Result<u8, Failure> {
    let program = find_program(&here.program)?;
    let (path, arguments, environment) = program.for_exec()?;
    let held = Held::fork(&path, &arguments, &environment)
        .map_err(|error| failed(format!("cannot start a process: {error}")))?;
    let pid = held.pid();
    let opened = open(here, On::Command(pid)).and_then(|session| {
        let name = program.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Watch::new(job, here, output, session, pid, &name)
    });
    let mut watch = match opened {
        Ok(watch) => watch,
        Err(failure) => {
            held.abandon();
            return Err(failure.kept("the program was not started"));
        }
    };
    let aside = Bystander::of(pid);
    watch.session.start().map_err(|error| count_failure(&error))?;
    let running = held.go().map_err(|failed| exec_failure(&program, failed))?;
    let process = ProcessFd::open(pid);
    watch.follow(job, process.as_ref(), &|| running.has_ended())?;
    let ended = running.wait().map_err(|error| failed(format!("lost the program: {error}")))?;
    drop(aside);
    watch.finish()?;
    Ok(passed_on(ended.code(), ended.signal()))
}

/// A session and what is made of its slices.
struct Watch<'a> {
    session: Session,
    account: Account,
    painter: Painter<'a>,
    log: Option<Log>,
    pid: u32,
    /// How far each lane has come, in the first anchor.
    at: Vec<u64>,
    damage: Vec<String>,
}

impl<'a> Watch<'a> {
    fn new(
        job: &SsbJob,
        here: &Here,
        output: &'a Output,
        session: Session,
        pid: u32,
        name: &str,
    ) -> Result<Watch<'a>, Failure> {
        let grouping = session.grouping().clone();
        let width = here.width.map(f64::from);
        let constants = Constants(width.map(|width| ("width", width)).into_iter().collect());
        let division = division(&here.breakdown, constants, &grouping)?;
        let time = grouping.find(counters::TIME).unwrap_or(0);
        // Intervals end with the clock on the wall, not by a process's own time.
        let account = Account::new(grouping, division, Clock::Anchor(time), f64::INFINITY);
        let mut painter = Painter::new(output, job.is_plain)?;
        painter.origin = Origin {
            title: format!("{name} ({pid})"),
            source: Source::Measured.word().into(),
            machine: here.core_title.clone(),
            mode: here.mode.to_owned(),
            ideal_cpi: width.map(|width| 1.0 / width),
        };
        let header = header(&session, here);
        let log = here.turns.log.as_deref();
        let log = log.map(|path| Log::create(path, header)).transpose()?;
        let damage = session
            .reduced()
            .iter()
            .map(|(asked, granted)| {
                format!("{asked} was counted as {granted}: this user may not look at the kernel")
            })
            .collect();
        let mut watch = Watch { session, account, painter, log, pid, at: Vec::new(), damage };
        watch.take(&Record::Process { pid, parent: 0, name: name.to_owned() })?;
        Ok(watch)
    }

    fn take(&mut self, record: &Record) -> Result<(), Failure> {
        if let Some(log) = &mut self.log {
            log.write(record)?;
        }
        if let Some(interval) = self.account.take(record) {
            self.painter.show(&self.account, &interval)?;
        }
        Ok(())
    }

    /// Takes what came since the last time.
    fn lap(&mut self, outcome: Outcome) -> Result<(), Failure> {
        for (lane, readings) in outcome.readings.into_iter().enumerate() {
            if self.at.len() <= lane {
                self.at.resize(lane + 1, 0);
            }
            for mut reading in readings {
                // Time that nobody counted belongs to no group; a log has a number for that too.
                if reading.group == NOBODY {
                    reading.group = u32::MAX as usize;
                }
                let passed = reading.counts.first().copied().unwrap_or(0);
                let at = self.at.get(lane).copied().unwrap_or(0).saturating_add(passed);
                if let Some(place) = self.at.get_mut(lane) {
                    *place = at;
                }
                let slice = Slice { pid: self.pid, tid: lane as u32, at, reading };
                self.take(&Record::Slice(slice))?;
            }
        }
        if let Some(interval) = self.account.close(self.pid) {
            self.painter.show(&self.account, &interval)?;
        }
        Ok(())
    }

    fn follow(
        &mut self,
        job: &SsbJob,
        process: Option<&ProcessFd>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let fds: Vec<i32> = process.iter().map(|process| process.raw_fd()).collect();
        let mut next = Instant::now() + job.interval;
        while !is_over() {
            let now = Instant::now();
            if now >= next {
                next += job.interval;
                let outcome = self.session.lap();
                self.lap(outcome)?;
                continue;
            }
            let wait = next.saturating_duration_since(now).max(Duration::from_millis(1));
            wait_for_any(&fds, wait).map_err(|error| failed(format!("cannot wait: {error}")))?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Failure> {
        let whole = self.session.stop();
        let outcome = self.session.lap();
        self.lap(outcome)?;
        for lane in 0..self.at.len() {
            self.take(&Record::End { pid: self.pid, tid: lane as u32 })?;
        }
        self.damage.extend(whole.stolen());
        self.damage.extend(whole.cut_short.clone());
        let damage = std::mem::take(&mut self.damage);
        self.painter.finish(&self.account, &damage)
    }
}

fn header(session: &Session, here: &Here) -> Header {
    let grouping = session.grouping();
    Header {
        source: "perf events".into(),
        machine: here.core_title.clone(),
        mode: here.mode.into(),
        boundary: grouping.events.first().cloned().unwrap_or_default(),
        slice: session.slice(),
        events: grouping.events.clone(),
        anchors: grouping.anchors,
        groups: grouping.groups.iter().map(|group| group.events.clone()).collect(),
    }
}
