//! Counting on the machine itself, through perf events.

use std::time::{Duration, Instant};

use counters::On;
use perf::{Bystander, Ended, Held, ProcessFd, Running, StopRequest, wait_for_any};
use pmu::EventList;

use super::batch::Batch;
use super::counting::Counting;
use crate::cli::{StatJob, Subject};
use crate::failure::{Failure, RUN_FAILED};
use crate::run::{Program, exec_failure};

/// How long to sleep where nothing else says when to look again.
const LOOK: Duration = Duration::from_millis(200);

/// Takes a batch as soon as an interval is over.
pub(super) type Interval<'a> = dyn FnMut(Batch) -> Result<(), Failure> + 'a;

/// What a measurement left.
pub(super) struct Measured {
    pub(super) batch: Batch,
    /// How the program ended, where one was started.
    pub(super) ended: Option<Ended>,
    pub(super) elapsed: Duration,
    pub(super) notes: Vec<String>,
    /// Groups, and how often they were switched.
    pub(super) turns: String,
}

/// Runs the program once and counts for it.
pub(super) fn program(
    job: &StatJob,
    events: &EventList,
    program: &Program,
    interval: &mut Interval<'_>,
) -> Result<Measured, Failure> {
    let held = hold(program)?;
    // A delayed start is not tied to the exec.
    let on = match job.delay {
        None => On::Command(held.pid()),
        Some(_) => On::Thread(held.pid()),
    };
    let mut counting = match Counting::open(job, events, &[Subject::all(on)]) {
        Ok(counting) => counting,
        Err(failure) => {
            held.abandon();
            return Err(failure.kept("the program was not started"));
        }
    };
    let aside = Bystander::of(held.pid());
    if job.delay.is_none() {
        counting.start()?;
    }
    counting.began = Instant::now();
    let running = held.go().map_err(|failed| exec_failure(program, failed))?;
    let process = ProcessFd::open(running.pid());
    let watch = Watch { running: Some(&running), fds: raw(process.iter()), pids: &[], stop: None };
    follow(&mut counting, job, &watch, interval)?;
    let elapsed = counting.began.elapsed();
    let ended = running.wait().map_err(|error| failed(format!("lost the program: {error}")))?;
    drop(aside);
    let (batch, notes, turns) = counting.finish(job, interval)?;
    Ok(Measured { batch, ended: Some(ended), elapsed, notes, turns })
}

/// Counts for what runs already, until it ends, a program ends, or someone asks.
pub(super) fn others(
    job: &StatJob,
    events: &EventList,
    subjects: &[Subject],
    timer: Option<&Program>,
    interval: &mut Interval<'_>,
) -> Result<Measured, Failure> {
    let mut counting = Counting::open(job, events, subjects)?;
    let stop = StopRequest::listen();
    let held = timer.map(hold).transpose()?;
    let pids: Vec<u32> = subjects.iter().filter_map(|subject| process_of(&subject.on)).collect();
    let processes: Vec<ProcessFd> = pids.iter().filter_map(|&pid| ProcessFd::open(pid)).collect();
    if job.delay.is_none() {
        counting.start()?;
    }
    counting.began = Instant::now();
    let running = match (held, timer) {
        (Some(held), Some(program)) => {
            Some(held.go().map_err(|failed| exec_failure(program, failed))?)
        }
        _ => None,
    };
    let own = running.as_ref().and_then(|running| ProcessFd::open(running.pid()));
    let fds = raw(processes.iter().chain(&own));
    let watch = Watch { running: running.as_ref(), fds, pids: &pids, stop: Some(&stop) };
    follow(&mut counting, job, &watch, interval)?;
    let elapsed = counting.began.elapsed();
    let ended = match running {
        Some(running) => {
            if stop.is_asked() {
                perf::terminate(running.pid());
            }
            let ended = running.wait();
            Some(ended.map_err(|error| failed(format!("lost the program: {error}")))?)
        }
        None => None,
    };
    let (batch, notes, turns) = counting.finish(job, interval)?;
    Ok(Measured { batch, ended, elapsed, notes, turns })
}

fn failed(what: String) -> Failure {
    Failure::new(RUN_FAILED, what)
}

fn hold(program: &Program) -> Result<Held, Failure> {
    let (path, arguments, environment) = program.for_exec()?;
    Held::fork(&path, &arguments, &environment)
        .map_err(|error| failed(format!("cannot start a process: {error}")))
}

fn process_of(on: &On) -> Option<u32> {
    match on {
        On::Process(pid) | On::Thread(pid) => Some(*pid),
        _ => None,
    }
}

fn raw<'a>(fds: impl Iterator<Item = &'a ProcessFd>) -> Vec<i32> {
    fds.map(ProcessFd::raw_fd).collect()
}

/// What ends a measurement.
struct Watch<'a> {
    running: Option<&'a Running>,
    fds: Vec<i32>,
    /// Processes or threads that are counted and were not started by us.
    pids: &'a [u32],
    stop: Option<&'a StopRequest>,
}

impl Watch<'_> {
    fn is_over(&self) -> bool {
        let is_gone = |pid: &u32| !std::path::Path::new(&format!("/proc/{pid}")).exists();
        self.running.is_some_and(Running::has_ended)
            || (!self.pids.is_empty() && self.pids.iter().all(is_gone))
            || self.stop.is_some_and(StopRequest::is_asked)
    }
}

/// Waits for the end; starts late where that was asked, prints intervals, ends in time.
fn follow(
    counting: &mut Counting,
    job: &StatJob,
    watch: &Watch<'_>,
    interval: &mut Interval<'_>,
) -> Result<(), Failure> {
    let mut next = job.interval;
    let mut is_timed_out = false;
    while !watch.is_over() {
        let now = counting.began.elapsed();
        if !counting.has_started && job.delay.is_some_and(|delay| now >= delay) {
            counting.start()?;
        }
        if let (Some(due), Some(step)) = (next, job.interval)
            && now >= due
        {
            let batch = counting.lap(job);
            interval(batch)?;
            next = Some(due + step);
            continue;
        }
        if !is_timed_out && job.timeout.is_some_and(|timeout| now >= timeout) {
            is_timed_out = true;
            match watch.running {
                Some(running) => perf::terminate(running.pid()),
                None => break,
            }
        }
        let delay = job.delay.filter(|_| !counting.has_started);
        let timeout = job.timeout.filter(|_| !is_timed_out);
        let due = [next, delay, timeout].into_iter().flatten().min();
        // The descriptor of a process wakes us; where there is none we look now and again.
        let wait = due.map_or(LOOK, |due| due.saturating_sub(now));
        let wait = if watch.fds.is_empty() { wait.min(LOOK) } else { wait };
        wait_for_any(&watch.fds, wait.max(Duration::from_millis(1)))
            .map_err(|error| failed(format!("cannot wait: {error}")))?;
    }
    Ok(())
}
