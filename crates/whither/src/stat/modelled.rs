//! Counting on a modelled core.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;

use model::machine::Machine;
use pmu::log::Record;
use pmu::{Grouping, Reading, estimate};
use show::{Cell, Fact, Unit};
use tracer::launch::Finished;
use vocab::{Count, Source};

use super::batch::{Batch, CountRow, Missing, Part, Total};
use super::measures::{Constants, Slices, measures};
use super::native::Interval;
use super::view;
use crate::cli::StatJob;
use crate::failure::{Failure, passed_on};
use crate::modelled_counters::{Ask, Received, Turns, run};

/// What a modelled measurement left.
pub(super) struct Modelled {
    pub(super) batch: Batch,
    pub(super) facts: Vec<Fact>,
    pub(super) notes: Vec<String>,
    pub(super) status: u8,
}

/// Runs the program once on modelled cores.
pub(super) fn program(
    job: &StatJob,
    (machine, machine_text): &(Machine, String),
    interval: &mut Interval<'_>,
) -> Result<Modelled, Failure> {
    let ask = Ask {
        program: &job.program,
        machine,
        machine_text,
        events: &job.events,
        counters: job.counters,
        slice: job.slice.clone(),
        seed: job.seed,
        shares: job.shares,
        engine: &job.engine,
    };
    let turns = Turns::plan(&ask)?;
    let mut tally = Tally::new(job, machine, &turns.grouping);
    let mut damage = Vec::new();
    let finished = run(&ask, &turns, |received| {
        match received {
            Received::Record(Record::Slice(slice)) => {
                tally.take((slice.pid, slice.tid), slice.reading);
                if let Some(batch) = tally.interval_over() {
                    interval(batch)?;
                }
            }
            Received::Record(_) => {}
            Received::Damage(sentence) => damage.push(sentence),
        }
        Ok(())
    })?;
    if job.interval.is_some() && !tally.lap.is_empty() {
        interval(tally.close_lap())?;
    }
    let batch = tally.batch(&tally.whole, tally.cycles);
    let facts = facts(job, machine, &turns, &finished, &batch);
    let mut notes = damage;
    notes.push(format!(
        "modelled on {}: the core runs the program's own instructions in user mode only, no kernel \
         and no other program",
        machine.title
    ));
    let status = passed_on(finished.status.code(), finished.status.signal());
    Ok(Modelled { batch, facts, notes, status })
}

fn facts(
    job: &StatJob,
    machine: &Machine,
    turns: &Turns,
    finished: &Finished,
    batch: &Batch,
) -> Vec<Fact> {
    let words: Vec<_> = job.program.iter().map(|word| word.to_string_lossy()).collect();
    let groups = turns.grouping.groups.len();
    let counters = job.counters.unwrap_or(machine.pmu.general);
    let how = match groups {
        0 | 1 => "all events at the same time".to_owned(),
        _ => format!(
            "{} events in {groups} groups on {counters} general counters, slices of {} {}",
            turns.grouping.events.len(),
            turns.header.slice,
            turns.header.boundary
        ),
    };
    vec![
        Fact::new("command", "command", Cell::text(words.join(" "))),
        view::source_fact(Source::Modelled),
        Fact::new("machine", "machine", Cell::text(&*machine.name)),
        Fact::new("ended", "ended", Cell::text(finished.status.to_string())),
        Fact::new("clock_s", "at its clock", Cell::Number(batch.seconds, Unit::Seconds)),
        Fact::new("turns", "turns", Cell::text(how)),
        Fact::new("processes", "processes", Cell::Count(Count(finished.processes.len() as u64))),
    ]
}

/// Slices kept of a thread before neighbours are put together: a minute's worth, and still tens of
/// thousands afterwards.
const SLICES_MAX: usize = 1 << 17;

/// Every two slices of a group as one, where the first of the two stood.
fn paired(readings: Vec<Reading>) -> Vec<Reading> {
    let mut waiting = BTreeMap::<usize, usize>::new();
    let mut kept: Vec<Reading> = Vec::with_capacity(readings.len() / 2 + 1);
    for reading in readings {
        match waiting.remove(&reading.group).and_then(|place| kept.get_mut(place)) {
            Some(first) => {
                let sums = first.counts.iter_mut().zip(&reading.counts);
                sums.for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            }
            None => {
                waiting.insert(reading.group, kept.len());
                kept.push(reading);
            }
        }
    }
    kept
}

type Threads = BTreeMap<(u32, u32), Vec<Reading>>;

/// The slices so far.
struct Tally<'a> {
    job: &'a StatJob,
    machine: &'a Machine,
    grouping: &'a Grouping,
    whole: Threads,
    /// Since the last interval.
    lap: Threads,
    /// Cycles of all threads together, and those at the end of the last interval.
    cycles: u64,
    lap_began: u64,
}

impl<'a> Tally<'a> {
    fn new(job: &'a StatJob, machine: &'a Machine, grouping: &'a Grouping) -> Tally<'a> {
        let (whole, lap) = (Threads::new(), Threads::new());
        Tally { job, machine, grouping, whole, lap, cycles: 0, lap_began: 0 }
    }

    fn take(&mut self, who: (u32, u32), reading: Reading) {
        self.cycles += reading.counts.first().copied().unwrap_or(0);
        if self.job.interval.is_some() {
            self.lap.entry(who).or_default().push(reading.clone());
        }
        let whole = self.whole.entry(who).or_default();
        whole.push(reading);
        if whole.len() > SLICES_MAX {
            *whole = paired(std::mem::take(whole));
        }
    }

    fn clock_hz(&self) -> f64 {
        f64::from(self.machine.identity.clock_mhz) * 1e6
    }

    fn seconds(&self, cycles: u64) -> f64 {
        cycles as f64 / self.clock_hz()
    }

    /// The interval that has just ended, by the machine's clock over all threads.
    fn interval_over(&mut self) -> Option<Batch> {
        let interval = self.job.interval?.as_secs_f64();
        (self.seconds(self.cycles - self.lap_began) >= interval).then(|| self.close_lap())
    }

    fn close_lap(&mut self) -> Batch {
        let lap = std::mem::take(&mut self.lap);
        let mut batch = self.batch(&lap, self.cycles - self.lap_began);
        batch.at_s = Some(self.seconds(self.cycles));
        self.lap_began = self.cycles;
        batch
    }

    fn batch(&self, threads: &Threads, cycles: u64) -> Batch {
        // Thread after thread, as the estimators want them.
        let readings: Vec<Reading> = threads.values().flatten().cloned().collect();
        let seconds = self.seconds(cycles);
        let target_ns = (seconds * 1e9).round() as u64;
        let totals = estimate::totals(self.grouping, &readings);
        let row = |name: &String| {
            let event = self.grouping.find(name);
            let counted = event.and_then(|event| totals.get(event).copied().flatten());
            CountRow {
                typed: name.clone(),
                name: name.clone(),
                is_clock: false,
                part: Part::default(),
                total: counted.map(|counted| Total::of(&counted, target_ns)).ok_or_else(too_short),
            }
        };
        let mut batch = Batch {
            rows: self.job.events.typed.iter().map(row).collect(),
            seconds,
            ..Batch::default()
        };
        let constants = constants(self.machine);
        let slices = Slices {
            grouping: Some(self.grouping.clone()),
            readings: threads.values().cloned().collect(),
        };
        batch.measures = measures(&self.job.metrics, &batch, &constants, &slices);
        batch
    }
}

fn too_short() -> Missing {
    Missing {
        is_supported: true,
        why: "the run ended before its turn; run longer or slice shorter".into(),
    }
}

/// What formulas need of a machine.
pub(crate) fn constants(machine: &Machine) -> Constants {
    Constants(vec![
        ("clock", f64::from(machine.identity.clock_mhz) * 1e6),
        ("width", f64::from(machine.window.dispatch_width)),
        ("line-bytes", f64::from(machine.caches.l1d.line_bytes)),
        ("bytes", 1.0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_every_groups_sum() {
        let reading = |k: u64| Reading { group: (k % 3) as usize, round: k, counts: vec![10 + k] };
        let before: Vec<Reading> = (0..100).map(reading).collect();
        let after = paired(before.clone());
        assert!(after.len() < 55, "{}", after.len());
        let sum = |readings: &[Reading], group| -> u64 {
            readings.iter().filter(|r| r.group == group).map(|r| r.counts[0]).sum()
        };
        for group in 0..3 {
            assert_eq!(sum(&before, group), sum(&after, group));
        }
    }
}
