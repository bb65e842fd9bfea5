//! Counting on the machine itself, through perf events.

use std::time::{Duration, Instant};

use counters::{Ask, CountError, On, Outcome, Session, Slice, Slicing};
use perf::{Bystander, Ended, Held, Inherit, ProcessFd, Running, StopRequest, wait_for_any};
use pmu::EventList;
use vocab::Event;

use super::batch::{Batch, CountRow, Missing, Total};
use super::measures::{Constants, Slices, measures};
use crate::cli::StatJob;
use crate::failure::{Failure, RUN_FAILED};
use crate::modelled_counters::Turn;
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
    let mut counting = match Counting::open(job, events, vec![on]) {
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
    let mut watch =
        Watch { running: Some(&running), fds: raw(process.iter()), pids: &[], stop: None };
    counting.follow(job, &mut watch, interval)?;
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
    on: &[On],
    timer: Option<&Program>,
    interval: &mut Interval<'_>,
) -> Result<Measured, Failure> {
    let mut counting = Counting::open(job, events, on.to_vec())?;
    let stop = StopRequest::listen();
    let held = timer.map(hold).transpose()?;
    let pids: Vec<u32> = on.iter().filter_map(process_of).collect();
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
    let mut watch = Watch { running: running.as_ref(), fds, pids: &pids, stop: Some(&stop) };
    counting.follow(job, &mut watch, interval)?;
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

/// Sessions under way, one for each that is counted apart.
struct Counting {
    sessions: Vec<Session>,
    /// Where each event of the list stands in the sessions' outcomes.
    places: Vec<usize>,
    events: EventList,
    began: Instant,
    has_started: bool,
    /// The end of the last interval, and the targets' time until then.
    last: (f64, u64),
}

impl Counting {
    fn open(job: &StatJob, events: &EventList, on: Vec<On>) -> Result<Counting, Failure> {
        let (units, places) = units(events);
        let open = |on: On| {
            let mut ask = Ask::new(Vec::new(), on);
            ask.units.clone_from(&units);
            ask.slicing = slicing(job);
            ask.counters = job.counters;
            ask.seed = job.seed;
            ask.inherit = if job.inherits { Inherit::All } else { Inherit::No };
            Session::open(&ask).map_err(|error| count_failure(&error))
        };
        Ok(Counting {
            sessions: on.into_iter().map(open).collect::<Result<_, _>>()?,
            places,
            events: events.clone(),
            began: Instant::now(),
            has_started: false,
            last: (0.0, 0),
        })
    }

    fn start(&mut self) -> Result<(), Failure> {
        self.has_started = true;
        self.sessions
            .iter_mut()
            .try_for_each(|session| session.start().map_err(|error| count_failure(&error)))
    }

    /// Waits for the end; starts late where that was asked, prints intervals, ends in time.
    fn follow(
        &mut self,
        job: &StatJob,
        watch: &mut Watch<'_>,
        interval: &mut Interval<'_>,
    ) -> Result<(), Failure> {
        let mut next = job.interval;
        let mut is_timed_out = false;
        while !watch.is_over() {
            let now = self.began.elapsed();
            if !self.has_started && job.delay.is_some_and(|delay| now >= delay) {
                self.start()?;
            }
            if let (Some(due), Some(step)) = (next, job.interval)
                && now >= due
            {
                let batch = self.lap(job);
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
            let delay = job.delay.filter(|_| !self.has_started);
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

    fn lap(&mut self, job: &StatJob) -> Batch {
        let outcomes: Vec<Outcome> = self.sessions.iter_mut().map(Session::lap).collect();
        let at_s = self.began.elapsed().as_secs_f64();
        let time_ns = outcomes.iter().map(|outcome| outcome.time_ns).sum::<u64>();
        let (before_s, before_ns) = self.last;
        self.last = (at_s, time_ns);
        let mut batch =
            self.batch(job, &outcomes, at_s - before_s, time_ns.saturating_sub(before_ns));
        batch.at_s = Some(at_s);
        batch
    }

    fn finish(
        mut self,
        job: &StatJob,
        interval: &mut Interval<'_>,
    ) -> Result<(Batch, Vec<String>, String), Failure> {
        let seconds = self.began.elapsed().as_secs_f64();
        let outcomes: Vec<Outcome> = self.sessions.iter_mut().map(Session::stop).collect();
        if job.interval.is_some() {
            let batch = self.lap(job);
            interval(batch)?;
        }
        let time_ns = outcomes.iter().map(|outcome| outcome.time_ns).sum();
        let batch = self.batch(job, &outcomes, seconds, time_ns);
        let turns = turns(&outcomes);
        Ok((batch, self.notes(&outcomes), turns))
    }

    fn batch(&self, job: &StatJob, outcomes: &[Outcome], seconds: f64, time_ns: u64) -> Batch {
        let row = |(typed, (event, &place)): (&String, (&Event, &usize))| CountRow {
            typed: typed.clone(),
            name: event.name.clone(),
            is_clock: is_clock(event),
            total: total(outcomes, place, time_ns),
        };
        let listed = self.events.typed.iter().zip(self.events.events.iter().zip(&self.places));
        let mut batch = Batch { rows: listed.map(row).collect(), seconds, ..Batch::default() };
        let constants = Constants(vec![("seconds", seconds), ("bytes", 1.0)]);
        let slices = slices(outcomes);
        batch.measures = measures(&job.metrics, &batch, &constants, &slices);
        batch
    }

    fn notes(&self, outcomes: &[Outcome]) -> Vec<String> {
        let mut notes = Vec::new();
        for session in &self.sessions {
            for (asked, granted) in session.reduced() {
                notes.push(format!(
                    "{asked} was counted as {granted}: this user may not look at the kernel"
                ));
            }
        }
        for outcome in outcomes {
            notes.extend(outcome.stolen());
            notes.extend(outcome.cut_short.as_ref().map(|why| format!("a part is missing: {why}")));
        }
        notes.sort();
        notes.dedup();
        notes
    }
}

/// Two clocks of the kernel's, in nanoseconds.
fn is_clock(event: &Event) -> bool {
    event.code.kind == 1 && event.code.config <= 1
}

/// Braces become units of their own; every event's place in the flattened units.
fn units(events: &EventList) -> (Vec<Vec<Event>>, Vec<usize>) {
    let mut units = Vec::new();
    let mut places = vec![0; events.events.len()];
    let mut next = 0;
    for (place, event) in events.events.iter().enumerate() {
        let group = events.groups.iter().find(|group| group.contains(&place));
        let members = group.cloned().unwrap_or_else(|| vec![place]);
        // A group stands where its first member does.
        if members.first() != Some(&place) {
            continue;
        }
        let of = |member: &usize| events.events.get(*member).unwrap_or(event).clone();
        units.push(members.iter().map(of).collect());
        for member in members {
            if let Some(place) = places.get_mut(member) {
                *place = next;
            }
            next += 1;
        }
    }
    (units, places)
}

fn slicing(job: &StatJob) -> Slicing {
    if job.rotates {
        return Slicing::Kernel;
    }
    let slice = match &job.slice {
        Some(Turn::Of(slice)) => *slice,
        _ => Slice::Nanoseconds(counters::SLICE_NS),
    };
    Slicing::Own { slice, however_short: false }
}

/// One event over all that are counted apart: totals add, and so do variances.
fn total(outcomes: &[Outcome], place: usize, time_ns: u64) -> Result<Total, Missing> {
    let mut sum: Option<Total> = None;
    if time_ns == 0 && outcomes.iter().all(|outcome| is_opened(outcome, place)) {
        return Err(Missing { is_supported: true, why: "the target did not run".into() });
    }
    for outcome in outcomes {
        let Some(event) = outcome.events.get(place) else { continue };
        let counted = event.total.as_ref().map_err(|why| Missing {
            is_supported: !matches!(why, counters::NotCounted::Refused(_)),
            why: why.to_string(),
        })?;
        let one = Total::of(counted, time_ns);
        sum = Some(match sum {
            None => one,
            Some(sum) => added(&sum, &one),
        });
    }
    sum.ok_or(Missing { is_supported: true, why: "nothing was there to count for".into() })
}

/// Whether the kernel took the event.
fn is_opened(outcome: &Outcome, place: usize) -> bool {
    let refused = |event: &counters::EventOutcome| {
        matches!(event.total, Err(counters::NotCounted::Refused(_)))
    };
    outcome.events.get(place).is_some_and(|event| !refused(event))
}

fn added(a: &Total, b: &Total) -> Total {
    let estimate = a.estimate.plus(b.estimate);
    Total {
        estimate,
        interval: estimate.interval(a.interval.coverage),
        share: (a.share + b.share) / 2.0,
        estimator: if a.estimator == "exact" { b.estimator } else { a.estimator },
        ..*a
    }
}

fn slices(outcomes: &[Outcome]) -> Slices {
    match outcomes {
        [outcome] => {
            Slices { grouping: Some(outcome.grouping.clone()), readings: outcome.readings.clone() }
        }
        // Groupings may differ; without them covariances are taken as nothing.
        _ => Slices::default(),
    }
}

fn turns(outcomes: &[Outcome]) -> String {
    let Some(first) = outcomes.first() else { return String::new() };
    let groups = first.grouping.groups.len();
    let switches: u64 = outcomes.iter().map(|outcome| outcome.switches).sum();
    match groups {
        0 | 1 => "all events at the same time".to_owned(),
        _ => format!("{groups} groups took turns, {switches} times"),
    }
}

/// The sentence where nothing can be counted.
pub(crate) fn count_failure(error: &CountError) -> Failure {
    let failure = failed(error.to_string());
    match error {
        CountError::NoneCounts(_, refusal) if !refusal.is_permission() => {
            failure.remedy("hardware events need a PMU; `--machine NAME` counts on a modelled core")
        }
        CountError::NoneCounts(..) => failure.remedy("`whither doctor` says what this user may do"),
        _ => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::{Dictionary, EventTable};

    #[test]
    fn braces_become_units_and_every_event_keeps_its_place() {
        let dictionary = Dictionary::of_table(EventTable::embedded().unwrap());
        let list = dictionary.parse_list("cycles,{branches,cs},faults,{instructions,migrations}");
        let (units, places) = units(&list.unwrap());
        let sizes: Vec<usize> = units.iter().map(Vec::len).collect();
        assert_eq!(sizes, [1, 2, 1, 2]);
        assert_eq!(places, [0, 1, 2, 3, 4, 5]);
    }
}
