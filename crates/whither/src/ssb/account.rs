//! Slices by process, cut into intervals.
//!
//! ```text
//! Record::Slice ─► process ─► lap: slices since its last interval ─► totals ─► Parts
//!                        └──► whole: the intervals' totals added up, so that memory is bounded
//! ```
//!
//! An interval is one of the process's own time: cycles at the machine's clock, or the time that
//! the kernel counted beside them.

use std::collections::BTreeMap;

use metrology::Estimate;
use pmu::log::Record;
use pmu::{Grouping, Reading, estimate};

use super::parts::{Division, Parts, Totals};
use crate::stat::Slices;

/// CPIs that a screen shows of the past.
const PAST: usize = 400;

/// An interval of one process.
#[derive(Clone, Debug)]
pub(crate) struct ProcessInterval {
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// When it ended, in seconds of the process's own time.
    pub(crate) at_s: f64,
    pub(crate) seconds: f64,
    pub(crate) parts: Parts,
}

/// One process so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub(crate) name: String,
    /// Threads that have begun and not ended.
    running: Vec<u32>,
    lap: BTreeMap<u32, Vec<Reading>>,
    lap_s: f64,
    pub(crate) at_s: f64,
    whole: Totals,
    /// The CPI of past intervals.
    pub(crate) past: Vec<f64>,
    pub(crate) last: Option<Parts>,
}

/// All processes.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) grouping: Grouping,
    pub(crate) division: Division,
    /// Nanoseconds a slice has of an anchor that is time, or cycles a second.
    clock: Clock,
    interval_s: f64,
    pub(crate) processes: BTreeMap<u32, Process>,
}

/// How slices tell time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Clock {
    /// An anchor in nanoseconds, by its place.
    Anchor(usize),
    /// Cycles, the first anchor, at so many a second.
    Cycles(f64),
}

impl Account {
    pub(crate) fn new(
        grouping: Grouping,
        division: Division,
        clock: Clock,
        interval_s: f64,
    ) -> Account {
        Account { grouping, division, clock, interval_s, processes: BTreeMap::new() }
    }

    /// Takes a record; gives back the interval that it completes.
    pub(crate) fn take(&mut self, record: &Record) -> Option<ProcessInterval> {
        match record {
            Record::Header(_) => None,
            Record::Process { pid, name, .. } => {
                let short = name.rsplit('/').next().unwrap_or(name).to_owned();
                self.processes.entry(*pid).or_default().name = short;
                None
            }
            Record::End { pid, tid } => {
                let process = self.processes.entry(*pid).or_default();
                process.running.retain(|thread| thread != tid);
                // What is left of a process that is gone is an interval, however short.
                let is_over = process.running.is_empty() && !process.lap.is_empty();
                is_over.then(|| self.close(*pid)).flatten()
            }
            Record::Slice(slice) => {
                let seconds = self.seconds(&slice.reading);
                let process = self.processes.entry(slice.pid).or_default();
                if !process.running.contains(&slice.tid) {
                    process.running.push(slice.tid);
                }
                process.lap.entry(slice.tid).or_default().push(slice.reading.clone());
                process.lap_s += seconds;
                process.at_s += seconds;
                (process.lap_s >= self.interval_s).then(|| self.close(slice.pid)).flatten()
            }
        }
    }

    fn seconds(&self, reading: &Reading) -> f64 {
        let count = |place: usize| reading.counts.get(place).map_or(0.0, |&count| count as f64);
        match self.clock {
            Clock::Anchor(place) => count(place) * 1e-9,
            Clock::Cycles(hertz) => count(0) / hertz,
        }
    }

    /// Ends a process's interval now; none where nothing was counted.
    pub(crate) fn close(&mut self, pid: u32) -> Option<ProcessInterval> {
        let process = self.processes.get_mut(&pid)?;
        let lap = std::mem::take(&mut process.lap);
        let seconds = std::mem::take(&mut process.lap_s);
        let readings: Vec<Reading> = lap.values().flatten().cloned().collect();
        if readings.is_empty() {
            return None;
        }
        let totals: Totals = estimate::totals(&self.grouping, &readings)
            .into_iter()
            .map(|counted| counted.map(|counted| counted.estimate))
            .collect();
        add(&mut process.whole, &totals);
        let slices =
            Slices { grouping: Some(self.grouping.clone()), readings: lap.into_values().collect() };
        let parts = self.division.parts(&self.grouping, &totals, &slices);
        if let Ok(cpi) = &parts.cpi {
            process.past.push(cpi.value);
            let surplus = process.past.len().saturating_sub(PAST);
            process.past.drain(..surplus);
        }
        process.last = Some(parts.clone());
        let (name, at_s) = (process.name.clone(), process.at_s);
        Some(ProcessInterval { pid, name, at_s, seconds, parts })
    }

    /// Ends every interval that has something in it.
    pub(crate) fn close_all(&mut self) -> Vec<ProcessInterval> {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        pids.into_iter().filter_map(|pid| self.close(pid)).collect()
    }

    /// Whether something was counted and every thread that began has ended. Another may yet begin:
    /// a process becomes another program by exec.
    pub(crate) fn is_over(&self) -> bool {
        let mut processes = self.processes.values();
        processes.all(|process| process.running.is_empty())
            && self.processes.values().any(|process| process.at_s > 0.0)
    }

    /// The parts over all of a process's time. Intervals were counted apart, so that their errors
    /// are independent.
    pub(crate) fn whole(&self, process: &Process) -> Option<Parts> {
        (!process.whole.is_empty())
            .then(|| self.division.parts(&self.grouping, &process.whole, &Slices::default()))
    }
}

/// An event that one interval did not count has no total over all: it is unknown, not smaller.
fn add(whole: &mut Totals, lap: &Totals) {
    if whole.is_empty() {
        whole.clone_from(lap);
        return;
    }
    for (sum, one) in whole.iter_mut().zip(lap) {
        *sum = match (*sum, *one) {
            (Some(sum), Some(one)) => Some(Estimate::plus(sum, one)),
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stat::Constants;
    use pmu::log::Slice;
    use pmu::{Counters, group, modelled_events};

    /// Two groups of four, the anchors among them; cycles 1000, instructions 500 a slice, and
    /// every cause 10 cycles.
    fn account() -> Account {
        let breakdown = modelled_events().unwrap().breakdown.remove(0);
        let units: Vec<Vec<String>> =
            breakdown.events().into_iter().skip(2).map(|event| vec![event]).collect();
        let grouping = group(&Counters::alike(8), &["cycles", "instructions"], &units).unwrap();
        let division = Division::new(breakdown, Constants::default(), &grouping).unwrap();
        Account::new(grouping, division, Clock::Cycles(1e6), 0.010)
    }

    fn slice(account: &Account, pid: u32, group: usize) -> Record {
        let name = |place: &usize| account.grouping.events[*place].as_str();
        let count = |name: &str| match name {
            "cycles" => 1000,
            "instructions" => 500,
            "stall-cycles" => 400,
            _ => 10,
        };
        let events = &account.grouping.groups[group].events;
        let counts = events.iter().map(|place| count(name(place))).collect();
        let reading = Reading { group, round: 0, counts };
        Record::Slice(Slice { pid, tid: 0, at: 0, reading })
    }

    #[test]
    fn an_interval_is_a_processs_own_time_and_its_parts_add_up() {
        let mut account = account();
        let groups = account.grouping.groups.len();
        let mut intervals = Vec::new();
        // 1000 cycles a slice at 1 MHz: ten slices make 10 ms.
        for k in 0..30 {
            let record = slice(&account, 7, k % groups);
            intervals.extend(account.take(&record));
        }
        assert_eq!(intervals.len(), 3);
        for interval in &intervals {
            assert!((interval.seconds - 0.010).abs() < 1e-9);
            let parts = &interval.parts;
            let cpi = parts.cpi.as_ref().unwrap().value;
            assert_eq!(cpi, 2.0);
            let causes: f64 = parts.causes.iter().map(|part| part.as_ref().unwrap().value).sum();
            let rest = parts.rest.as_ref().unwrap().value;
            assert!((causes + rest - cpi).abs() < 1e-9);
            // Fourteen counts of ten cycles in 1000, at two cycles an instruction.
            assert!((causes - 13.0 * 10.0 / 500.0).abs() < 1e-9, "{causes}");
        }
    }

    #[test]
    fn what_is_left_of_a_process_that_ends_is_an_interval_and_the_whole_is_all_of_them() {
        let mut account = account();
        let groups = account.grouping.groups.len();
        for k in 0..14 {
            let record = slice(&account, 7, k % groups);
            account.take(&record);
        }
        assert!(!account.is_over());
        let last = account.take(&Record::End { pid: 7, tid: 0 }).unwrap();
        assert!((last.seconds - 0.004).abs() < 1e-9);
        assert!(account.is_over());
        let whole = account.whole(&account.processes[&7]).unwrap();
        assert_eq!(whole.instructions, 14.0 * 500.0);
        assert_eq!(whole.cpi.unwrap().value, 2.0);
    }

    #[test]
    fn an_event_whose_turn_never_came_leaves_its_cause_uncounted() {
        let mut account = account();
        for _ in 0..3 {
            let record = slice(&account, 7, 0);
            account.take(&record);
        }
        let interval = account.close(7).unwrap();
        assert!(interval.parts.cpi.is_ok());
        assert!(interval.parts.causes.iter().any(Result::is_err));
        assert!(interval.parts.rest.is_err());
    }
}
