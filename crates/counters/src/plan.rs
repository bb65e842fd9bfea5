//! From what is asked for to groups that the kernel takes.
//!
//! ```text
//! events ─probe each─► countable ─group─► Grouping ─open─► Bank
//!             └► refused, with the reason       ▲            │ 'these do not fit together'
//!                                               └────rule────┘
//! ```

use std::collections::BTreeMap;
use std::sync::OnceLock;

use perf::{Group, GroupOptions, GroupRefusal, Refusal, Target};
use pmu::{Counters, Grouping, Limit, Rule};
use vocab::{Event, Mode};

use crate::bank::{Bank, BankOptions, OnExec};
use crate::capacity::{Capacity, TIME, hardware, rationed};
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
            Err(refusal) => self.refuse(name, refusal),
        }
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

/// The fewest groups. Anchors of the core are added only where turns are taken at all, and only as
/// far as they leave room for what the user wants together.
pub(crate) fn grouping(
    countable: &mut Countable,
    counters: &Counters,
    target: &Target,
    must_have: Option<u64>,
) -> Result<Grouping, CountError> {
    let alone = pmu::group(counters, &[TIME], &countable.units)?;
    if alone.groups.len() == 1 && must_have.is_none() {
        return Ok(alone);
    }
    let mode = countable.mode();
    let mut anchors: Vec<String> = Vec::new();
    for config in [0, 1] {
        let event = Event { mode, ..hardware(config) };
        if (capacity().general > 0 || must_have.is_some()) && opens(&event, target).is_ok() {
            anchors.push(full_name(&event));
            countable.events.entry(full_name(&event)).or_insert(event);
        }
    }
    loop {
        let mut names: Vec<&str> = anchors.iter().map(String::as_str).collect();
        names.push(TIME);
        match pmu::group(counters, &names, &countable.units) {
            Ok(grouping) => return Ok(grouping),
            Err(error) if anchors.is_empty() => return Err(error.into()),
            Err(_) => drop(anchors.pop()),
        }
    }
}

/// Opens the groups on each set of targets, learning from the kernel what does not fit together.
pub(crate) fn open(
    ask: &Ask,
    mut countable: Countable,
    targets: &[Vec<Target>],
    must_have: Option<u64>,
    on_exec: impl Fn(usize) -> OnExec,
) -> Result<(Countable, Layout, Vec<Bank>), CountError> {
    let mut counters = counters_for(&countable, ask.counters);
    let probe = targets.first().and_then(|set| set.first()).ok_or(CountError::NoEvents)?;
    for _ in 0..LESSONS_MAX {
        let grouping = grouping(&mut countable, &counters, probe, must_have)?;
        let layout = Layout::new(grouping, &countable.events);
        let on_exec = on_exec(layout.opened.len());
        let options = BankOptions { inherit: ask.inherit, on_exec, user_read: false };
        let open = |set: &Vec<Target>| Bank::open(&layout.opened, set, options);
        match targets.iter().map(open).collect::<Result<Vec<Bank>, GroupRefusal>>() {
            Ok(banks) => return Ok((countable, layout, banks)),
            Err(refusal) if refusal.opens_alone => {
                let Some(rule) = lesson(&layout, &refusal) else {
                    return Err(CountError::Refused(refusal));
                };
                counters.rules.push(rule);
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
