//! Sessions under way, and what they come to.

use std::time::Instant;

use counters::{Ask, CountError, NotCounted, Outcome, Session, Slice, Slicing};
use perf::Inherit;
use pmu::EventList;
use vocab::Event;

use super::batch::{Batch, CountRow, Missing, Part, Total, joined};
use super::measures::{Constants, Slices, measures};
use super::native::Interval;
use crate::cli::{StatJob, Subject};
use crate::failure::{Failure, RUN_FAILED};
use crate::modelled_counters::{Shares, Turn};

/// Sessions under way, one for each that is counted apart.
pub(super) struct Counting {
    sessions: Vec<Apart>,
    pub(super) began: Instant,
    pub(super) has_started: bool,
    /// The end of the last interval.
    last_s: f64,
}

/// One session.
struct Apart {
    session: Session,
    part: Part,
    events: EventList,
    /// Where each event of the list stands in the session's outcome.
    places: Vec<usize>,
    /// The targets' time at the end of the last interval.
    last_ns: u64,
}

impl Counting {
    pub(super) fn open(
        job: &StatJob,
        events: &EventList,
        subjects: &[Subject],
    ) -> Result<Counting, Failure> {
        let open = |subject: &Subject| {
            let events = chosen(events, subject.events.as_deref());
            let (units, places) = units(&events);
            let mut ask = Ask::new(Vec::new(), subject.on.clone());
            ask.units = units;
            ask.slicing = slicing(job);
            ask.boundary.clone_from(&job.boundary);
            ask.counters = job.counters;
            ask.seed = job.seed;
            ask.adapts = job.shares == Shares::Spread;
            ask.inherit = if job.inherits { Inherit::All } else { Inherit::No };
            let session = Session::open(&ask).map_err(|error| count_failure(&error))?;
            Ok(Apart { session, part: subject.part.clone(), events, places, last_ns: 0 })
        };
        Ok(Counting {
            sessions: subjects.iter().map(open).collect::<Result<_, Failure>>()?,
            began: Instant::now(),
            has_started: false,
            last_s: 0.0,
        })
    }

    pub(super) fn start(&mut self) -> Result<(), Failure> {
        self.has_started = true;
        self.sessions
            .iter_mut()
            .try_for_each(|apart| apart.session.start().map_err(|error| count_failure(&error)))
    }

    pub(super) fn lap(&mut self, job: &StatJob) -> Batch {
        let at_s = self.began.elapsed().as_secs_f64();
        let lap = |apart: &mut Apart| {
            let outcome = apart.session.lap();
            let time_ns = outcome.time_ns.saturating_sub(apart.last_ns);
            apart.last_ns = outcome.time_ns;
            (outcome, time_ns)
        };
        let outcomes: Vec<(Outcome, u64)> = self.sessions.iter_mut().map(lap).collect();
        let mut batch = self.batch(job, &outcomes, at_s - self.last_s);
        self.last_s = at_s;
        batch.at_s = Some(at_s);
        batch
    }

    pub(super) fn finish(
        mut self,
        job: &StatJob,
        interval: &mut Interval<'_>,
    ) -> Result<(Batch, Vec<String>, String), Failure> {
        let seconds = self.began.elapsed().as_secs_f64();
        let stop = |apart: &mut Apart| {
            let outcome = apart.session.stop();
            let time_ns = outcome.time_ns;
            (outcome, time_ns)
        };
        let outcomes: Vec<(Outcome, u64)> = self.sessions.iter_mut().map(stop).collect();
        if job.interval.is_some() {
            let batch = self.lap(job);
            interval(batch)?;
        }
        let batch = self.batch(job, &outcomes, seconds);
        let notes = self.notes(job, &outcomes);
        Ok((batch, notes, turns(&outcomes)))
    }

    /// Sessions of one part are added up; parts stay apart.
    fn batch(&self, job: &StatJob, outcomes: &[(Outcome, u64)], seconds: f64) -> Batch {
        let mut parts: Vec<&Part> = Vec::new();
        for apart in &self.sessions {
            if !parts.contains(&&apart.part) {
                parts.push(&apart.part);
            }
        }
        let one = |part: &Part| {
            let of = self.sessions.iter().zip(outcomes).filter(|(apart, _)| apart.part == *part);
            let (aparts, outcomes): (Vec<&Apart>, Vec<&(Outcome, u64)>) = of.unzip();
            aparts.first().map(|apart| apart.batch(job, &outcomes, seconds))
        };
        joined(parts.into_iter().filter_map(one).collect())
    }

    fn notes(&self, job: &StatJob, outcomes: &[(Outcome, u64)]) -> Vec<String> {
        let mut notes = Vec::new();
        for apart in &self.sessions {
            for (asked, granted) in apart.session.reduced() {
                notes.push(format!(
                    "{asked} was counted as {granted}: this user may not look at the kernel"
                ));
            }
            let is_by_events = job.boundary.is_some() || is_by_instructions(job);
            let has_turns = apart.session.grouping().groups.len() > 1;
            if is_by_events && has_turns && !apart.session.rings() {
                notes.push(
                    "no overflow ended the slices: the counter cannot interrupt so often or at \
                     all, so it was looked at in time, and slices are somewhat longer than asked"
                        .to_owned(),
                );
            }
        }
        for (outcome, _) in outcomes {
            notes.extend(outcome.stolen());
            notes.extend(outcome.cut_short.as_ref().map(|why| format!("a part is missing: {why}")));
        }
        notes.sort();
        notes.dedup();
        notes
    }
}

impl Apart {
    fn batch(&self, job: &StatJob, outcomes: &[&(Outcome, u64)], seconds: f64) -> Batch {
        let time_ns = outcomes.iter().map(|(_, time_ns)| time_ns).sum();
        let outcomes: Vec<&Outcome> = outcomes.iter().map(|(outcome, _)| outcome).collect();
        let row = |(typed, (event, &place)): (&String, (&Event, &usize))| CountRow {
            typed: typed.clone(),
            name: event.name.clone(),
            is_clock: is_clock(event),
            part: self.part.clone(),
            total: total(&outcomes, place, time_ns),
        };
        let listed = self.events.typed.iter().zip(self.events.events.iter().zip(&self.places));
        let mut batch = Batch { rows: listed.map(row).collect(), seconds, ..Batch::default() };
        let constants = Constants(vec![("seconds", seconds), ("bytes", 1.0)]);
        batch.measures = measures(&job.metrics, &batch, &constants, &slices(&outcomes));
        batch
    }
}

fn is_by_instructions(job: &StatJob) -> bool {
    matches!(job.slice, Some(Turn::Of(Slice::Instructions(_))))
}

/// The events of some places; all where none are named. Braces stay where all of theirs are there.
fn chosen(events: &EventList, places: Option<&[usize]>) -> EventList {
    let Some(places) = places else { return events.clone() };
    let at = |old: &usize| places.iter().position(|place| place == old);
    let within = |group: &Vec<usize>| group.iter().map(at).collect::<Option<Vec<usize>>>();
    EventList {
        events: places.iter().filter_map(|&place| events.events.get(place)).cloned().collect(),
        typed: places.iter().filter_map(|&place| events.typed.get(place)).cloned().collect(),
        groups: events.groups.iter().filter_map(within).collect(),
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
        Some(Turn::OfEvent(number, _)) => Slice::Occurrences(*number),
        None => Slice::Nanoseconds(counters::SLICE_NS),
    };
    Slicing::Own { slice, however_short: false }
}

/// One event over all that are counted apart: totals add, and so do variances.
fn total(outcomes: &[&Outcome], place: usize, time_ns: u64) -> Result<Total, Missing> {
    let mut sum: Option<Total> = None;
    if time_ns == 0 && outcomes.iter().all(|outcome| is_opened(outcome, place)) {
        return Err(Missing { is_supported: true, why: "the target did not run".into() });
    }
    for outcome in outcomes {
        let Some(event) = outcome.events.get(place) else { continue };
        let counted = event.total.as_ref().map_err(|why| Missing {
            is_supported: !matches!(why, NotCounted::Refused(_)),
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
        matches!(event.total, Err(NotCounted::Refused(_) | NotCounted::NoSlot))
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

fn slices(outcomes: &[&Outcome]) -> Slices {
    match outcomes {
        [outcome] => {
            Slices { grouping: Some(outcome.grouping.clone()), readings: outcome.readings.clone() }
        }
        // Groupings may differ; without them covariances are taken as nothing.
        _ => Slices::default(),
    }
}

fn turns(outcomes: &[(Outcome, u64)]) -> String {
    let Some((first, _)) = outcomes.first() else { return String::new() };
    let groups = first.grouping.groups.len();
    let switches: u64 = outcomes.iter().map(|(outcome, _)| outcome.switches).sum();
    match groups {
        0 | 1 => "all events at the same time".to_owned(),
        _ => format!("{groups} groups took turns, {switches} times"),
    }
}

/// The sentence where nothing can be counted.
pub(crate) fn count_failure(error: &CountError) -> Failure {
    let failure = Failure::new(RUN_FAILED, error.to_string());
    match error {
        CountError::NoneCounts(_, perf::Refusal::NoSuchEvent) => {
            failure.remedy("hardware events need a PMU; `--machine NAME` counts on a modelled core")
        }
        CountError::NotOurs(..) => failure.remedy("`whither doctor` says what this user may do"),
        CountError::NoneCounts(_, refusal) if refusal.is_permission() => {
            failure.remedy("`whither doctor` says what this user may do")
        }
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
