//! A thread's master list: every event once, whoever wants it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perf::{GroupReading, Inherit, Refusal, Target};
use pmu::schedule::Scheduler;
use pmu::{Group, Grouping, Reading};
use vocab::Event;

use super::set::{Set, State};
use super::{SetError, Value};
use crate::bank::{Bank, BankOptions, OnExec};
use crate::capacity::TIME;
use crate::engine::{Boundary, Engine};
use crate::history::{History, NOBODY};
use crate::layout::Layout;
use crate::name::full_name;
use crate::outcome::one_list;
use crate::plan::{Countable, counters_for};
use crate::{NotCounted, SLICE_NS, session};

/// Engines of other mixtures of sets that are kept open, so that nesting in a loop opens nothing.
const PARKED_MAX: usize = 2;

/// A thread that does not run is not asked more often than this, so that many waiting threads do not
/// keep the helper busy.
const LOOK_MIN: Duration = Duration::from_millis(1);

/// How a thread counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SetOptions {
    /// How long a slice is, in nanoseconds of the thread's time.
    pub slice_ns: u64,
    /// Only so many events at a time, even of those that do not compete by themselves.
    pub counters: Option<u32>,
    /// Where the order of turns comes from.
    pub seed: u64,
}

impl Default for SetOptions {
    fn default() -> SetOptions {
        SetOptions { slice_ns: SLICE_NS, counters: None, seed: 1 }
    }
}

/// An event of the master list.
#[derive(Clone, Debug)]
struct Entry {
    event: Event,
    /// How many sets hold it.
    references: u32,
    /// How many of those run. More than none makes it eligible for turns.
    activations: u32,
}

/// Turns over the events that are active together.
#[derive(Debug)]
pub(super) struct Running {
    active: Vec<usize>,
    pub(super) engine: Engine,
    /// The engine's groups, by their place in the master grouping.
    groups: Vec<usize>,
    /// Tells engines apart, for whoever holds their pages.
    pub(super) number: u64,
    /// When the helper should look again, after how long a wait, and how far the thread had come.
    due: Option<Instant>,
    wait: Duration,
    reached: u64,
}

/// The master list of a thread.
#[derive(Debug)]
pub(super) struct Master {
    options: SetOptions,
    /// Time first, then the entries: places here and in `entries` differ by one.
    grouping: Grouping,
    entries: Vec<Entry>,
    pub(super) sets: BTreeMap<i32, Set>,
    history: History,
    pub(super) running: Option<Running>,
    parked: Vec<Running>,
    made: u64,
}

impl Master {
    pub(super) fn new() -> Master {
        Master {
            options: SetOptions::default(),
            grouping: empty_grouping(),
            entries: Vec::new(),
            sets: BTreeMap::new(),
            history: History::default(),
            running: None,
            parked: Vec::new(),
            made: 0,
        }
    }

    pub(super) fn configure(&mut self, options: SetOptions) -> Result<(), SetError> {
        if self.running.is_some() {
            return Err(SetError::IsRunning);
        }
        self.parked.clear();
        self.options = options;
        Ok(())
    }

    fn set(&mut self, id: i32) -> Result<&mut Set, SetError> {
        self.sets.get_mut(&id).ok_or(SetError::NoSuchSet)
    }

    fn stopped(&mut self, id: i32) -> Result<&mut Set, SetError> {
        let set = self.set(id)?;
        if set.began().is_some() { Err(SetError::IsRunning) } else { Ok(set) }
    }

    fn began(&mut self, id: i32) -> Result<usize, SetError> {
        self.set(id)?.began().ok_or(SetError::NotRunning)
    }

    /// Adds an event to a set, having tried whether it can be counted at all.
    pub(super) fn add(&mut self, id: i32, event: &Event) -> Result<(), SetError> {
        self.stopped(id)?;
        let probed = Countable::probe(&[vec![event.clone()]], &Target::ThisThread);
        if let Some((name, refusal)) = probed.refused.first() {
            return Err(SetError::Refused(name.clone(), *refusal));
        }
        if let Some(name) = probed.without_slot.first() {
            return Err(SetError::Refused(name.clone(), Refusal::Exhausted));
        }
        // Where the kernel may not be looked at, this is the user-mode event.
        let granted = probed.events.values().next().unwrap_or(event);
        let place = self.place(granted);
        let set = self.stopped(id)?;
        if set.events.contains(&place) {
            return Err(SetError::Twice(full_name(event)));
        }
        set.events.push(place);
        set.state = State::Stopped(Vec::new());
        if let Some(entry) = self.entries.get_mut(place) {
            entry.references += 1;
        }
        Ok(())
    }

    /// An event's place in the list, which it gets now if it has none.
    fn place(&mut self, event: &Event) -> usize {
        if let Some(place) = self.entries.iter().position(|entry| entry.event == *event) {
            return place;
        }
        self.grouping.events.push(full_name(event));
        self.entries.push(Entry { event: event.clone(), references: 0, activations: 0 });
        self.entries.len() - 1
    }

    pub(super) fn names(&mut self, id: i32) -> Result<Vec<String>, SetError> {
        let events = self.set(id)?.events.clone();
        Ok(events
            .iter()
            .filter_map(|&e| self.entries.get(e))
            .map(|e| full_name(&e.event))
            .collect())
    }

    /// Takes all events out of a set.
    pub(super) fn cleanup(&mut self, id: i32) -> Result<(), SetError> {
        let events = std::mem::take(&mut self.stopped(id)?.events);
        for event in events {
            if let Some(entry) = self.entries.get_mut(event) {
                entry.references = entry.references.saturating_sub(1);
            }
        }
        self.set(id)?.state = State::Stopped(Vec::new());
        self.forget_unreferenced();
        Ok(())
    }

    pub(super) fn destroy(&mut self, id: i32) -> Result<(), SetError> {
        self.cleanup(id)?;
        self.sets.remove(&id);
        Ok(())
    }

    /// Events that no set holds leave the list. Places must stay, so they leave together.
    fn forget_unreferenced(&mut self) {
        if self.entries.iter().all(|entry| entry.references == 0) {
            self.entries.clear();
            self.parked.clear();
            self.running = None;
            self.grouping = empty_grouping();
            self.history.forget_before(self.history.position());
        }
    }

    pub(super) fn start(&mut self, id: i32, pages: &mut Pages) -> Result<(), SetError> {
        let events = self.stopped(id)?.events.clone();
        if events.is_empty() {
            return Err(SetError::Empty);
        }
        self.activate(&events, true);
        if let Err(error) = self.settle(pages) {
            self.activate(&events, false);
            // What ran before runs on; that it could is known.
            self.settle(pages)?;
            return Err(error);
        }
        let began = self.history.position();
        self.set(id)?.state = State::Running(began);
        Ok(())
    }

    fn activate(&mut self, events: &[usize], on: bool) {
        for &event in events {
            if let Some(entry) = self.entries.get_mut(event) {
                let change = if on { 1 } else { -1 };
                entry.activations = entry.activations.saturating_add_signed(change);
            }
        }
    }

    pub(super) fn read(&mut self, id: i32, pages: &mut Pages) -> Result<Vec<Value>, SetError> {
        match self.set(id)?.state.clone() {
            State::Stopped(values) => Ok(values),
            State::Running(began) => {
                self.credit(pages)?;
                self.values(id, began)
            }
        }
    }

    /// From now on the set counts anew.
    pub(super) fn reset(&mut self, id: i32, pages: &mut Pages) -> Result<(), SetError> {
        if self.set(id)?.began().is_none() {
            self.set(id)?.state = State::Stopped(Vec::new());
            return Ok(());
        }
        self.credit(pages)?;
        let began = self.history.position();
        self.set(id)?.state = State::Running(began);
        self.forget();
        Ok(())
    }

    pub(super) fn stop(&mut self, id: i32, pages: &mut Pages) -> Result<Vec<Value>, SetError> {
        let began = self.began(id)?;
        self.credit(pages)?;
        let values = self.values(id, began)?;
        let events = self.set(id)?.events.clone();
        self.set(id)?.state = State::Stopped(values.clone());
        self.activate(&events, false);
        self.settle(pages)?;
        self.forget();
        Ok(values)
    }

    fn values(&mut self, id: i32, began: usize) -> Result<Vec<Value>, SetError> {
        let events = self.set(id)?.events.clone();
        let readings = self.history.since(began);
        let totals = one_list(&self.grouping, readings);
        let value = |event: &usize| {
            let total = totals.get(event + 1).copied().flatten();
            total.ok_or_else(|| self.why_not(*event, readings))
        };
        Ok(events.iter().map(value).collect())
    }

    /// A group whose turn came and that never had its counters left only gaps.
    fn why_not(&self, event: usize, readings: &[Reading]) -> NotCounted {
        let on = self.running.as_ref().is_some_and(|running| {
            let has = |&group: &usize| {
                self.grouping.groups.get(group).is_some_and(|g| g.events.contains(&(event + 1)))
            };
            let places = running.groups.iter().enumerate().filter(|(_, group)| has(group));
            let enabled = &running.engine.tally().enabled_ns;
            places.into_iter().any(|(local, _)| enabled.get(local).is_some_and(|&ns| ns > 0))
        });
        let lost = readings.iter().any(|reading| reading.group == NOBODY);
        if on && lost { NotCounted::NeverRan } else { NotCounted::NoTurn }
    }

    /// Brings the turns into line with what is active, crediting what was under way.
    fn settle(&mut self, pages: &mut Pages) -> Result<(), SetError> {
        let is_active = |(place, entry): (usize, &Entry)| (entry.activations > 0).then_some(place);
        let active: Vec<usize> = self.entries.iter().enumerate().filter_map(is_active).collect();
        if self.running.as_ref().is_some_and(|running| running.active == active) {
            return self.credit(pages);
        }
        if let Some(mut running) = self.running.take() {
            running.engine.stop()?;
            self.keep(&mut running);
            self.parked.push(running);
            if self.parked.len() > PARKED_MAX {
                self.parked.remove(0);
            }
        }
        if active.is_empty() {
            return Ok(());
        }
        let parked = self.parked.iter().position(|parked| parked.active == active);
        let mut running = match parked {
            Some(place) => self.parked.remove(place),
            None => self.open(active)?,
        };
        running.engine.start()?;
        running.due = None;
        self.running = Some(running);
        Ok(())
    }

    fn open(&mut self, active: Vec<usize>) -> Result<Running, SetError> {
        let mut countable = Countable::default();
        for entry in active.iter().filter_map(|&place| self.entries.get(place)) {
            let name = full_name(&entry.event);
            countable.units.push(vec![name.clone()]);
            countable.events.insert(name, entry.event.clone());
        }
        let counters = counters_for(&countable, self.options.counters);
        let grouping =
            pmu::group(&counters, &[TIME], &countable.units).map_err(SetError::Grouping)?;
        let groups = grouping.groups.iter().map(|group| self.adopt(&grouping, group)).collect();
        let layout = Arc::new(Layout::new(grouping, &countable.events));
        let bank = self.bank(&layout)?;
        self.made += 1;
        let seed = self.options.seed.wrapping_add(self.made);
        let plan = session::turns(bank.len(), self.options.slice_ns, seed);
        let engine = Engine::new(bank, layout, Scheduler::new(plan), Boundary::Time, 0);
        let (due, wait, reached) = (None, Duration::ZERO, 0);
        Ok(Running { active, engine, groups, number: self.made, due, wait, reached })
    }

    fn bank(&mut self, layout: &Layout) -> Result<Bank, SetError> {
        let options = BankOptions {
            inherit: Inherit::No,
            on_exec: OnExec::Nothing,
            user_read: true,
            alarm: None,
        };
        let open = || Bank::open(&layout.opened, &[Target::ThisThread], options);
        match open() {
            // Descriptors and breakpoints are few, and parked engines hold some.
            Err(refusal) if refusal.refusal == Refusal::Exhausted && !self.parked.is_empty() => {
                self.parked.clear();
                open().map_err(SetError::Kernel)
            }
            opened => opened.map_err(SetError::Kernel),
        }
    }

    /// A group of an engine as a group of the master grouping.
    fn adopt(&mut self, from: &Grouping, group: &Group) -> usize {
        let names = group.events.iter().filter_map(|&event| from.events.get(event));
        let events: Vec<usize> = names.filter_map(|name| self.grouping.find(name)).collect();
        if let Some(known) = self.grouping.groups.iter().position(|known| known.events == events) {
            return known;
        }
        self.grouping.groups.push(Group { events, places: Vec::new() });
        self.grouping.groups.len() - 1
    }

    /// Credits the slice under way, from the registers where that is allowed.
    fn credit(&mut self, pages: &mut Pages) -> Result<(), SetError> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let fast = |group: usize, into: &mut GroupReading| pages.read(&running.number, group, into);
        let mut credited = running.engine.credit_from(fast);
        if running.groups.len() > 1 {
            credited = credited.and_then(|()| running.engine.credit_gaps());
        }
        self.keep(&mut running);
        self.running = Some(running);
        Ok(credited?)
    }

    /// Takes an engine's readings into the history.
    fn keep(&mut self, running: &mut Running) {
        let adopted = |mut reading: Reading| {
            reading.group = running.groups.get(reading.group).copied().unwrap_or(NOBODY);
            reading
        };
        let readings = running.engine.take_readings();
        self.history.extend(readings.into_iter().map(adopted));
        if let Some(last) = self.sets.values().filter_map(Set::began).max() {
            self.history.shorten_after(last);
        }
    }

    fn forget(&mut self) {
        let first = self.sets.values().filter_map(Set::began).min();
        self.history.forget_before(first.unwrap_or(self.history.position()));
    }

    /// For the helper: gives the next group its turn if it is time. When to come again, if turns
    /// are taken at all.
    pub(super) fn tick(&mut self, now: Instant) -> Option<Instant> {
        self.turns()?;
        let mut running = self.running.take()?;
        let slice = Duration::from_nanos(self.options.slice_ns);
        let due = running.due.filter(|due| *due > now).unwrap_or_else(|| {
            // A thread that has just ended answers nothing; its sets end with it.
            let (left, reached) = running.engine.tick().unwrap_or((u64::MAX, running.reached));
            let wait = if reached == running.reached {
                // It waits, or never got to run: it is asked less and less often.
                (running.wait * 2).clamp(LOOK_MIN, slice.max(LOOK_MIN))
            } else {
                Duration::from_nanos(left).min(slice)
            };
            (running.wait, running.reached) = (wait, reached);
            now + wait
        });
        running.due = Some(due);
        self.keep(&mut running);
        self.running = Some(running);
        Some(due)
    }

    /// The engine for which a helper is needed, by its number.
    pub(super) fn turns(&self) -> Option<u64> {
        self.running.as_ref().filter(|running| running.groups.len() > 1).map(|r| r.number)
    }
}

/// The counters' pages of the engine that runs. They stay with their thread.
#[derive(Debug, Default)]
pub(super) struct Pages {
    number: u64,
    groups: Vec<Option<perf::UserPages>>,
}

impl Pages {
    /// Maps the pages of the engine that runs, if they are not those that are mapped.
    pub(super) fn follow(&mut self, master: &Master) {
        let Some(running) = &master.running else { return };
        if self.number != running.number {
            self.number = running.number;
            self.groups = running.engine.bank.user_pages();
        }
    }

    fn read(&self, number: &u64, group: usize, into: &mut GroupReading) -> bool {
        self.number == *number
            && self.groups.get(group).is_some_and(|p| p.as_ref().is_some_and(|p| p.read(into)))
    }
}

fn empty_grouping() -> Grouping {
    Grouping { events: vec![TIME.to_owned()], anchors: 1, groups: Vec::new(), is_fewest: true }
}
