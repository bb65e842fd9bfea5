//! A measurement under way.
//!
//! Whoever switches does so from the target's own CPU where that is one CPU: the target then waits
//! meanwhile, so that it misses nothing, and no interrupt is sent, which costs ten times as much. A
//! CPU has a thread of its own for that; a thread or a process is followed to where it runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use perf::{AlarmClock, ring_on_time, run_first};
use pmu::Grouping;
use pmu::estimate::Counted;
use pmu::schedule::{Plan, Scheduler};

use crate::bank::OnExec;
use crate::capacity::{TIME, hardware};
use crate::driver::{Driver, Turns};
use crate::engine::{Boundary, Engine};
use crate::layout::Layout;
use crate::name::full_name;
use crate::outcome::{Lanes, estimates};
use crate::pace::Pace;
use crate::place::Place;
use crate::plan::{self, Countable, MustHave};
use crate::rotation::Rotation;
use crate::{Ask, CountError, EventOutcome, NotCounted, On, Outcome, Slice, Slicing};

/// How often the kernel's rotation is asked how far it got.
const ASKING: Duration = Duration::from_millis(20);

/// A measurement: opened, running or stopped.
#[derive(Debug)]
pub struct Session {
    banks: Vec<Arc<Counting>>,
    workers: Vec<JoinHandle<()>>,
    stop: Arc<Stop>,
    layout: Arc<Layout>,
    countable: Countable,
    asked: Vec<String>,
    on_exec: bool,
    slice: u64,
}

/// One bank, its thread's and everybody's.
#[derive(Debug)]
struct Counting {
    driver: Mutex<Driver>,
    place: Place,
}

/// Tells the threads that switch to end.
#[derive(Debug, Default)]
struct Stop {
    asked: Mutex<bool>,
    woken: Condvar,
}

impl Session {
    /// Opens everything, switched off. Events that cannot be counted are in the outcome with their
    /// reason; only if none can is that an error.
    pub fn open(ask: &Ask) -> Result<Session, CountError> {
        let targets = ask.on.targets()?;
        let first = targets.first().and_then(|set| set.first()).ok_or(CountError::NoEvents)?;
        let countable = Countable::probe(&ask.units, first);
        match countable.lack() {
            Some(CountError::NoneCounts(name, refusal)) if refusal.is_permission() => {
                return Err(match ask.on.stranger() {
                    Some(pid) => CountError::NotOurs(pid, name),
                    None => CountError::NoneCounts(name, refusal),
                });
            }
            Some(nothing) => return Err(nothing),
            None => {}
        }
        let on_exec = matches!(ask.on, On::Command(_));
        let starts = |groups| match ask.slicing {
            _ if !on_exec => OnExec::Nothing,
            Slicing::Kernel => OnExec::Everything,
            Slicing::Own { .. } => {
                OnExec::Group(Scheduler::new(turns(groups, 1, ask.seed)).start(0).group)
            }
        };
        let must_have = must_have(ask)?;
        let (countable, layout, banks) =
            plan::open(ask, countable, &targets, must_have.as_ref(), starts)?;
        let layout = Arc::new(layout);
        let mut slice = 0;
        let mut counting = Vec::with_capacity(banks.len());
        for (place, bank) in banks.into_iter().enumerate() {
            let turns = match ask.slicing {
                Slicing::Kernel => {
                    Turns::Kernel(Box::new(Rotation::new(bank, Arc::clone(&layout))))
                }
                Slicing::Own { slice: length, however_short } => {
                    let least_ns = if however_short { 1 } else { crate::least_slice_ns() };
                    let must_have = must_have.as_ref();
                    let (boundary, amount) = boundary(length, least_ns, must_have, &layout);
                    slice = amount;
                    let plan = turns(bank.len(), amount, ask.seed.wrapping_add(place as u64));
                    let scheduler = Scheduler::new(Plan { adapts: ask.adapts, ..plan });
                    let layout = Arc::clone(&layout);
                    Turns::Own(Box::new(Engine::new(bank, layout, scheduler, boundary, least_ns)))
                }
            };
            let driver = Driver::new(turns);
            let place = Place::of(targets.get(place).and_then(|set| set.first()));
            counting.push(Arc::new(Counting { driver: Mutex::new(driver), place }));
        }
        let asked = ask.units.iter().flatten().map(full_name).collect();
        let (workers, stop) = (Vec::new(), Arc::default());
        Ok(Session { banks: counting, workers, stop, layout, countable, asked, on_exec, slice })
    }

    /// The groups that take turns; one means that everything is counted all the time.
    pub fn grouping(&self) -> &Grouping {
        &self.layout.grouping
    }

    /// How long a slice is, in its own unit; 0 where the kernel rotates.
    pub fn slice(&self) -> u64 {
        self.slice
    }

    /// How turns end that are measured in occurrences: whether the counter itself says when, or it
    /// is looked at now and again.
    pub fn rings(&self) -> bool {
        self.banks.iter().all(|bank| bank.lock().rings())
    }

    /// What is counted in user mode only, because the kernel may not be looked at: asked, granted.
    pub fn reduced(&self) -> &[(String, String)] {
        &self.countable.reduced
    }

    /// Begins. On a held program counting begins with its exec, and this is called before or right
    /// after it is let go.
    pub fn start(&mut self) -> Result<(), CountError> {
        for bank in &self.banks {
            let mut driver = bank.lock();
            if self.on_exec { driver.start_on_exec() } else { driver.start()? }
        }
        *self.stop.asked.lock().unwrap_or_else(PoisonError::into_inner) = false;
        if !self.workers.is_empty() || !self.needs_turns() {
            return Ok(());
        }
        for bank in &self.banks {
            let (bank, stop) = (Arc::clone(bank), Arc::clone(&self.stop));
            let name = "whither-turns".to_owned();
            let worker =
                std::thread::Builder::new().name(name).spawn(move || turn_by_turn(&bank, &stop))?;
            self.workers.push(worker);
        }
        Ok(())
    }

    fn needs_turns(&self) -> bool {
        self.layout.grouping.groups.len() > 1
    }

    /// Everything so far, while it runs: the slice under way counts as far as it got.
    pub fn read(&mut self) -> Outcome {
        self.credit();
        self.outcome(Driver::whole)
    }

    /// What came since the last lap, or the start.
    pub fn lap(&mut self) -> Outcome {
        self.credit();
        self.outcome(Driver::take_lap)
    }

    /// Stops; what was counted stays, and a start goes on from here.
    pub fn stop(&mut self) -> Outcome {
        *self.stop.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.woken.notify_all();
        for worker in self.workers.drain(..) {
            // A thread that panicked has poisoned nothing that the outcome needs.
            let _ = worker.join();
        }
        self.banks.iter().for_each(|bank| bank.lock().stop());
        self.outcome(Driver::whole)
    }

    fn credit(&self) {
        self.banks.iter().for_each(|bank| bank.lock().credit());
    }

    fn outcome(&self, which: impl Fn(&mut Driver) -> Lanes) -> Outcome {
        let mut lanes = Vec::new();
        let mut outcome = Outcome {
            events: Vec::new(),
            grouping: self.layout.grouping.clone(),
            readings: Vec::new(),
            time_ns: 0,
            stolen_ns: 0,
            switches: 0,
            cut_short: None,
        };
        let mut enabled_ns = vec![0_u64; self.layout.grouping.groups.len()];
        for bank in &self.banks {
            let mut driver = bank.lock();
            lanes.push(which(&mut driver));
            let tally = driver.tally();
            outcome.time_ns += tally.time_ns;
            outcome.stolen_ns += tally.stolen_ns;
            outcome.switches += tally.switches;
            enabled_ns.iter_mut().zip(&tally.enabled_ns).for_each(|(sum, ns)| *sum += ns);
            outcome.cut_short = outcome.cut_short.or_else(|| driver.failure().map(str::to_owned));
        }
        let totals = estimates(&self.layout.grouping, &lanes);
        outcome.events =
            self.asked.iter().map(|name| self.event(name, &totals, &enabled_ns)).collect();
        outcome.readings = lanes.into_iter().flatten().collect();
        outcome
    }

    fn event(&self, name: &str, totals: &[Option<Counted>], enabled_ns: &[u64]) -> EventOutcome {
        let granted = self.countable.reduced.iter().find(|(asked, _)| asked == name);
        let counted_as = granted.map_or(name, |(_, granted)| granted).to_owned();
        let refused = self.countable.refused.iter().find(|(refused, _)| refused == name);
        let grouping = &self.layout.grouping;
        let is_slotless = self.countable.without_slot.contains(&counted_as);
        let total = match (refused, grouping.find(&counted_as)) {
            _ if is_slotless => Err(NotCounted::NoSlot),
            (Some((_, refusal)), _) => Err(NotCounted::Refused(*refusal)),
            (None, None) => Err(NotCounted::NoTurn),
            (None, Some(event)) => totals.get(event).copied().flatten().ok_or_else(|| {
                let was_on = |group: usize| enabled_ns.get(group).is_some_and(|&ns| ns > 0);
                let waited = grouping.groups_of(event).any(was_on);
                if waited { NotCounted::NeverRan } else { NotCounted::NoTurn }
            }),
        };
        EventOutcome { name: name.to_owned(), counted_as, total }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.workers.is_empty() {
            self.stop();
        }
    }
}

impl Counting {
    fn lock(&self) -> MutexGuard<'_, Driver> {
        self.driver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The life of a thread that switches.
fn turn_by_turn(bank: &Counting, stop: &Stop) {
    ring_on_time();
    run_first();
    let mut place = bank.place.clone();
    let mut pace = Pace::new(1.0);
    let clock = alarm_clock(bank);
    let mut asked = stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
    while !*asked {
        drop(asked);
        place.go();
        let wait = match bank.lock().tick() {
            Some((left, now)) => pace.sleep(now, left),
            None => ASKING,
        };
        if let Some(clock) = &clock {
            clock.wait(wait);
            asked = stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        asked = stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !*asked {
            let waited = stop.woken.wait_timeout(asked, wait);
            asked = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Where groups say when a turn is over, the calling thread wakes at that moment; else, and where
/// the kernel will not have it, it looks when the turn should be over by the pace so far. A stop is
/// seen when the wait is over, which is never long.
fn alarm_clock(bank: &Counting) -> Option<AlarmClock> {
    let driver = bank.lock();
    if !driver.rings() {
        return None;
    }
    AlarmClock::here().ok().filter(|clock| driver.ring(clock).is_ok())
}

/// Turns of one slice a group each round.
pub(crate) fn turns(groups: usize, slice: u64, seed: u64) -> Plan {
    Plan { opening: None, ..Plan::even(groups, slice, seed) }
}

/// The anchor that the slices need beside those that all groups have anyway.
fn must_have(ask: &Ask) -> Result<Option<MustHave>, CountError> {
    let Slicing::Own { slice, .. } = ask.slicing else { return Ok(None) };
    Ok(match slice {
        Slice::Nanoseconds(_) | Slice::Cycles(_) => None,
        Slice::Instructions(amount) => {
            Some(MustHave { event: hardware(1), follows_mode: true, amount: amount.max(1) })
        }
        Slice::Occurrences(amount) => {
            let event = ask.boundary.clone().ok_or(CountError::NoEvents)?;
            Some(MustHave { event, follows_mode: false, amount: amount.max(1) })
        }
    })
}

/// What ends a slice, and how much of it.
fn boundary(
    slice: Slice,
    least_ns: u64,
    must_have: Option<&MustHave>,
    layout: &Layout,
) -> (Boundary, u64) {
    let anchors = layout.grouping.events.iter().take(layout.grouping.anchors);
    let anchor = |wanted: &str| {
        anchors.clone().position(|name| name.split(':').next() == Some(wanted) && name != TIME)
    };
    match (slice, must_have) {
        (Slice::Nanoseconds(ns), _) => (Boundary::Time, ns.max(least_ns)),
        // A cycle is never much longer than a nanosecond; as a floor that is enough.
        (Slice::Cycles(cycles), _) => match anchor("cycles") {
            Some(place) => (Boundary::Anchor(place), cycles.max(least_ns)),
            None => (Boundary::Time, cycles.max(least_ns)),
        },
        (_, Some(must_have)) => {
            let is_it = |name: &str| layout.has_code(name, &must_have.event.code);
            match anchors.clone().position(|name| is_it(name)) {
                Some(place) => (Boundary::Anchor(place), must_have.amount),
                // Everything is counted at the same time: there are no turns.
                None => (Boundary::Time, crate::SLICE_NS),
            }
        }
        (_, None) => (Boundary::Time, crate::SLICE_NS),
    }
}
