//! A log, counted again by counters that take turns.

use model::event::Event;
use model::machine::Machine;
use pmu::schedule::{Plan, Scheduler};
use pmu::{Grouping, Reading};

use super::columns::Columns;

/// What is counted in every group.
pub const ANCHORS: [Event; 2] = [Event::Cycles, Event::Instructions];

/// Sums from the start, so that any stretch costs a subtraction.
#[derive(Debug, Clone)]
pub struct Sums(Vec<Vec<u64>>);

impl Sums {
    /// Of a log.
    pub fn new(columns: &Columns) -> Sums {
        let sums = |column: &Vec<u32>| {
            let mut sum = 0;
            let mut list = Vec::with_capacity(column.len() + 1);
            list.push(0);
            for &count in column {
                sum += u64::from(count);
                list.push(sum);
            }
            list
        };
        Sums(columns.0.iter().map(sums).collect())
    }

    /// An event's count over a stretch of slices.
    pub fn between(&self, event: Event, from: usize, to: usize) -> u64 {
        let Some(sums) = self.0.get(event as usize) else { return 0 };
        let at = |place: usize| sums.get(place).or(sums.last()).copied().unwrap_or(0);
        at(to).saturating_sub(at(from))
    }

    /// An event's total: the truth.
    pub fn total(&self, event: Event) -> u64 {
        self.0.get(event as usize).and_then(|sums| sums.last()).copied().unwrap_or(0)
    }

    /// The sums of an event.
    fn of(&self, event: Event) -> &[u64] {
        self.0.get(event as usize).map_or(&[], Vec::as_slice)
    }

    /// How many slices there are.
    pub fn slices(&self) -> usize {
        self.0.first().map_or(0, |sums| sums.len().saturating_sub(1))
    }
}

/// The groups of some events on a machine; anchors are cycles and instructions.
///
/// # Errors
///
/// The machine is not known, or an event cannot be counted on it.
pub fn grouping(machine: &str, events: &[Event]) -> Result<Grouping, String> {
    let machine = Machine::named(machine).map_err(|e| e.to_string())?;
    let counters = model::pmu::counters(&machine.pmu);
    let anchors = ANCHORS.map(Event::name);
    let units: Vec<Vec<String>> = events.iter().map(|e| vec![e.name().to_owned()]).collect();
    pmu::group(&counters, &anchors, &units).map_err(|e| e.to_string())
}

/// The events behind a grouping's names.
pub fn events_of(grouping: &Grouping) -> Vec<Event> {
    let named = |name: &String| Event::named(name).unwrap_or(Event::Cycles);
    grouping.events.iter().map(named).collect()
}

/// What the counters read when the groups take turns by a plan, and where on the log each slice
/// ends.
pub fn replay(sums: &Sums, grouping: &Grouping, plan: Plan) -> (Vec<Reading>, Vec<usize>) {
    let events = events_of(grouping);
    let cycles = sums.of(Event::Cycles);
    let mut scheduler = Scheduler::new(plan);
    let (mut readings, mut ends) = (Vec::new(), Vec::new());
    let mut turn = scheduler.start(0);
    let mut from = 0;
    while from < sums.slices() {
        let passed = cycles.partition_point(|&sum| sum < turn.until);
        let to = passed.clamp(from + 1, sums.slices());
        let group = grouping.groups.get(turn.group).map_or(&[][..], |g| g.events.as_slice());
        let count =
            |&event: &usize| events.get(event).map_or(0, |&event| sums.between(event, from, to));
        let counts = group.iter().map(count).collect();
        let reading = Reading { group: turn.group, round: turn.round, counts };
        scheduler.observe(grouping, &reading);
        readings.push(reading);
        ends.push(to);
        from = to;
        turn = scheduler.advance(cycles.get(to).copied().unwrap_or(turn.until));
    }
    (readings, ends)
}
