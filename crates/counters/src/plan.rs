//! From what is asked for to groups that the kernel takes.
//!
//! ```text
//! events ─probe each─► countable ─group─► Grouping ─open─► Bank
//!             └► refused, with the reason       ▲            │ 'these do not fit together'
//!                                               └────rule────┘
//! ```

use std::collections::BTreeMap;
use std::sync::OnceLock;

use perf::{Alarm, Group, GroupOptions, GroupRefusal, Refusal, Target};
use pmu::{Counters, Grouping, Limit, Rule};
use vocab::{Event, Mode};

use crate::bank::{Bank, BankOptions, OnExec};
use crate::capacity::{BREAKPOINT, Capacity, TIME, hardware, rationed};
use crate::layout::Layout;
use crate::name::full_name;
use crate::{Ask, CountError};

/// How often the kernel may teach us that events do not fit together.
const LESSONS_MAX: usize = 32;

/// Events that can be counted, and those that cannot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Countable {
    /// By full name.
    pub(crate) events: BTreeMap<String, Event>,
    /// What stays together, by full name.
    pub(crate) units: Vec<Vec<String>>,
    /// What was refused, by the full name that was asked for.
    pub(crate) refused: Vec<(String, Refusal)>,
    /// Breakpoints for which no slot was left. A slot is taken when a breakpoint is opened and held
    /// until it is closed, so that breakpoints cannot take turns.
    pub(crate) without_slot: Vec<String>,
    /// What is counted in user mode only because the kernel may not be looked at: asked, granted.
    pub(crate) reduced: Vec<(String, String)>,
}

impl Countable {
    /// Tries each event on a target.
    pub(crate) fn probe(units: &[Vec<Event>], target: &Target) -> Countable {
        let mut countable = Countable::default();
        for unit in units {
            let names = unit.iter().filter_map(|event| countable.admit(event, target)).collect();
            countable.units.push(names);
        }
        countable.units.retain(|unit: &Vec<String>| !unit.is_empty());
        countable
    }

    fn admit(&mut self, event: &Event, target: &Target) -> Option<String> {
        let name = full_name(event);
        if self.events.contains_key(&name) {
            return Some(name);
        }
        if let Some((_, granted)) = self.reduced.iter().find(|(asked, _)| *asked == name) {
            return Some(granted.clone());
        }
        match opens(event, target) {
            Ok(()) => {
                self.events.insert(name.clone(), event.clone());
                Some(name)
            }
            Err(refusal) if refusal.is_permission() && event.mode == Mode::Both => {
                let user = Event { mode: Mode::User, ..event.clone() };
                match opens(&user, target) {
                    Ok(()) => {
                        let granted = full_name(&user);
                        self.events.insert(granted.clone(), user);
                        self.reduced.push((name, granted.clone()));
                        Some(granted)
                    }
                    Err(refusal) => self.refuse(name, refusal),
                }
            }
            Err(Refusal::Exhausted) if event.code.kind == BREAKPOINT => {
                self.without_slot.push(name);
                None
            }
            Err(refusal) => self.refuse(name, refusal),
        }
    }

    /// Gives up a breakpoint for which there is no slot beside the others; whether it was one.
    fn give_up(&mut self, refusal: &GroupRefusal) -> bool {
        let is_it = |(_, event): &(&String, &Event)| {
            event.code.kind == BREAKPOINT && event.name == refusal.event
        };
        let found =
            self.events.iter().find(is_it).filter(|_| refusal.refusal == Refusal::Exhausted);
        let Some(name) = found.map(|(name, _)| name.clone()) else { return false };
        self.events.remove(&name);
        self.units.iter_mut().for_each(|unit| unit.retain(|member| *member != name));
        self.units.retain(|unit| !unit.is_empty());
        self.without_slot.push(name);
        true
    }

    /// Why nothing can be counted, where that is so.
    pub(crate) fn lack(&self) -> Option<CountError> {
        let nothing = match (self.refused.first(), self.without_slot.first()) {
            (Some((name, refusal)), _) => CountError::NoneCounts(name.clone(), *refusal),
            (None, Some(name)) => CountError::NoSlot(name.clone()),
            (None, None) => CountError::NoEvents,
        };
        self.units.is_empty().then_some(nothing)
    }

    fn refuse(&mut self, name: String, refusal: Refusal) -> Option<String> {
        if !self.refused.iter().any(|(refused, _)| *refused == name) {
            self.refused.push((name, refusal));
        }
        None
    }

    /// The mode that most of the core's events count in, for anchors.
    fn mode(&self) -> Mode {
        self.events
            .values()
            .map(|event| event.mode)
            .max_by_key(|&mode| self.events.values().filter(|event| event.mode == mode).count())
            .unwrap_or(Mode::User)
    }
}

fn opens(event: &Event, target: &Target) -> Result<(), Refusal> {
    Group::open(std::slice::from_ref(event), target, GroupOptions::default())
        .map(drop)
        .map_err(|refusal| refusal.refusal)
}

/// What the core's PMU has; found out once.
pub(crate) fn capacity() -> Capacity {
    static CAPACITY: OnceLock<Capacity> = OnceLock::new();
    *CAPACITY.get_or_init(Capacity::probe)
}

/// The counters as asked for, or as they are.
pub(crate) fn counters_for(countable: &Countable, ration: Option<u32>) -> Counters {
    let events: Vec<Event> = countable.events.values().cloned().collect();
    match ration {
        Some(n) => rationed(n),
        None => capacity().counters(&events),
    }
}

/// What ends a slice, where that is neither time nor cycles.
#[derive(Clone, Debug)]
pub(crate) struct MustHave {
    pub(crate) event: Event,
    /// Whether it counts in the mode that the others do.
    pub(crate) follows_mode: bool,
    /// How much of it a slice is.
    pub(crate) amount: u64,
}

/// Slices shorter than this overflow so often that the kernel would hold the counter back for a
/// while, and counts would be lost.
const HARDWARE_PERIOD_MIN: u64 = 1_000_000;
const PERIOD_MIN: u64 = 100;

impl MustHave {
    /// The event that is opened on a target.
    fn resolved(&self, mode: Mode, target: &Target) -> Result<Event, CountError> {
        let mode = if self.follows_mode { mode } else { self.event.mode };
        let event = Event { mode, ..self.event.clone() };
        match opens(&event, target) {
            Ok(()) => Ok(event),
            Err(why) => Err(CountError::NoBoundary(full_name(&event), Some(why))),
        }
    }

    /// The alarm of its member, where it can be given one.
    fn alarm(&self, layout: &Layout, target: &Target) -> Option<Alarm> {
        let group = layout.opened.first().filter(|_| layout.opened.len() > 1)?;
        let place = group.iter().position(|event| event.code == self.event.code)?;
        let is_software = matches!(self.event.code.kind, 1 | 2 | 5);
        let least = if is_software { PERIOD_MIN } else { HARDWARE_PERIOD_MIN };
        let alarm = Some(Alarm { place: 0, period: self.amount });
        let options = GroupOptions { alarm, ..GroupOptions::default() };
        let rings =
            self.amount >= least && Group::open(group.get(place..=place)?, target, options).is_ok();
        rings.then_some(Alarm { place, period: self.amount })
    }
}

/// The fewest groups. Anchors of the core are added only where turns are taken at all, and only as
/// far as they leave room for what the user wants together.
pub(crate) fn grouping(
    countable: &mut Countable,
    counters: &Counters,
    target: &Target,
    must_have: Option<&MustHave>,
) -> Result<Grouping, CountError> {
    let alone = pmu::group(counters, &[TIME], &countable.units)?;
    if alone.groups.len() == 1 {
        return Ok(alone);
    }
    let mode = countable.mode();
    let mut anchors: Vec<String> = Vec::new();
    for config in [0, 1] {
        let event = Event { mode, ..hardware(config) };
        if capacity().general > 0 && opens(&event, target).is_ok() {
            anchors.push(full_name(&event));
            countable.events.entry(full_name(&event)).or_insert(event);
        }
    }
    let boundary = match must_have {
        Some(must_have) => {
            let event = must_have.resolved(mode, target)?;
            let name = full_name(&event);
            countable.events.entry(name.clone()).or_insert(event);
            Some(name)
        }
        None => None,
    };
    loop {
        let mut names: Vec<&str> = anchors.iter().map(String::as_str).collect();
        // Estimators take the first anchor as the size of a slice: what ends it comes last, unless
        // it is an anchor already.
        names.push(TIME);
        names.extend(boundary.as_deref());
        match (pmu::group(counters, &names, &countable.units), &boundary) {
            (Ok(grouping), _) => return Ok(grouping),
            (Err(_), Some(name)) if anchors.is_empty() => {
                return Err(CountError::NoBoundary(name.clone(), None));
            }
            (Err(error), None) if anchors.is_empty() => return Err(error.into()),
            (Err(_), _) => drop(anchors.pop()),
        }
    }
}

/// Opens the groups on each set of targets, learning from the kernel what does not fit together.
pub(crate) fn open(
    ask: &Ask,
    mut countable: Countable,
    targets: &[Vec<Target>],
    must_have: Option<&MustHave>,
    on_exec: impl Fn(usize) -> OnExec,
) -> Result<(Countable, Layout, Vec<Bank>), CountError> {
    let mut counters = counters_for(&countable, ask.counters);
    let probe = targets.first().and_then(|set| set.first()).ok_or(CountError::NoEvents)?;
    for _ in 0..LESSONS_MAX {
        let grouping = grouping(&mut countable, &counters, probe, must_have)?;
        let layout = Layout::new(grouping, &countable.events);
        let on_exec = on_exec(layout.opened.len());
        let alarm = must_have.and_then(|must_have| must_have.alarm(&layout, probe));
        let options = BankOptions { inherit: ask.inherit, on_exec, user_read: false, alarm };
        let open = |set: &Vec<Target>| Bank::open(&layout.opened, set, options);
        match targets.iter().map(open).collect::<Result<Vec<Bank>, GroupRefusal>>() {
            Ok(banks) => return Ok((countable, layout, banks)),
            Err(refusal) if refusal.opens_alone => {
                let Some(rule) = lesson(&layout, &refusal) else {
                    return Err(CountError::Refused(refusal));
                };
                counters.rules.push(rule);
            }
            Err(refusal) if countable.give_up(&refusal) => {
                if let Some(nothing) = countable.lack() {
                    return Err(nothing);
                }
            }
            Err(refusal) => return Err(CountError::Refused(refusal)),
        }
    }
    Err(CountError::NoEvents)
}

/// What a refusal teaches: so many of this group's events and no more.
fn lesson(layout: &Layout, refusal: &GroupRefusal) -> Option<Rule> {
    let group = layout
        .opened
        .iter()
        .find(|group| group.get(refusal.place).is_some_and(|event| event.name == refusal.event))?;
    let events: Vec<String> = group.iter().take(refusal.place + 1).map(full_name).collect();
    Some(Rule {
        limit: Limit::Together(refusal.place as u32),
        events,
        source: "the kernel's answer".into(),
    })
}
