//! Groups open on every target, of which one at a time is switched on.
//!
//! ```text
//!            thread 7   thread 8   thread 9
//! group 0     leader     leader     leader      ← switched on: one call a target
//! group 1     leader     leader     leader
//! clock         ·          ·          ·         ← always on: how long the targets ran in all
//! ```

use std::io;

use perf::{
    Alarm, AlarmClock, Group, GroupOptions, GroupReading, GroupRefusal, Inherit, Refusal, Target,
    UserPages,
};
use vocab::{Event, EventCode, Mode};

/// What a group counted between two readings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Delta {
    /// In the order of the group's events.
    pub(crate) counts: Vec<u64>,
    /// How long it was switched on, over all targets.
    pub(crate) enabled_ns: u64,
    /// How long it had its counters.
    pub(crate) running_ns: u64,
}

/// One group on all targets.
#[derive(Debug)]
struct Row {
    groups: Vec<Group>,
    /// What had been read when it was last read.
    seen: GroupReading,
}

/// All groups on all targets.
#[derive(Debug)]
pub(crate) struct Bank {
    rows: Vec<Row>,
    clock: Row,
    alarm: Option<Alarm>,
    /// Used again and again, so that reading allocates nothing.
    one: GroupReading,
}

/// How a bank is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BankOptions {
    pub(crate) inherit: Inherit,
    pub(crate) on_exec: OnExec,
    /// The target's own thread will read the counters.
    pub(crate) user_read: bool,
    /// The member that ends a turn, where it can say when.
    pub(crate) alarm: Option<Alarm>,
}

/// What begins with the target's exec; the clock does with any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnExec {
    Nothing,
    Group(usize),
    Everything,
}

impl Bank {
    /// Opens every group on every target, switched off. Threads that are gone are passed over.
    pub(crate) fn open(
        groups: &[Vec<Event>],
        targets: &[Target],
        options: BankOptions,
    ) -> Result<Bank, GroupRefusal> {
        let mut rows = Vec::with_capacity(groups.len());
        for (place, events) in groups.iter().enumerate() {
            let on_exec = match options.on_exec {
                OnExec::Nothing => false,
                OnExec::Group(first) => first == place,
                OnExec::Everything => true,
            };
            rows.push(Row::open(events, targets, options, on_exec)?);
        }
        let on_exec = options.on_exec != OnExec::Nothing;
        let still = BankOptions { alarm: None, ..options };
        let clock = Row::open(&[clock_for(targets)], targets, still, on_exec)?;
        Ok(Bank { rows, clock, alarm: options.alarm, one: GroupReading::default() })
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Switches a group on.
    pub(crate) fn enable(&self, group: usize) -> io::Result<()> {
        self.rows.get(group).map_or(Ok(()), Row::enable)
    }

    /// Switches a group off.
    pub(crate) fn disable(&self, group: usize) -> io::Result<()> {
        self.rows.get(group).map_or(Ok(()), Row::disable)
    }

    /// Switches the clock.
    pub(crate) fn switch_clock(&self, on: bool) -> io::Result<()> {
        if on { self.clock.enable() } else { self.clock.disable() }
    }

    /// Whether its groups say when a turn is over.
    pub(crate) fn rings(&self) -> bool {
        self.alarm.is_some()
    }

    /// Lets every group wake the thread of the clock.
    pub(crate) fn ring(&self, clock: &AlarmClock) -> io::Result<()> {
        let Some(alarm) = self.alarm else { return Ok(()) };
        let mut groups = self.rows.iter().flat_map(|row| &row.groups);
        groups.try_for_each(|group| clock.hear(group, alarm))
    }

    /// What a group counted since it was last taken.
    pub(crate) fn take(&mut self, group: usize) -> io::Result<Delta> {
        match self.rows.get_mut(group) {
            Some(row) => row.take(&mut self.one),
            None => Ok(Delta::default()),
        }
    }

    /// The same, read by someone who knows a faster way; `false` from there asks the kernel.
    pub(crate) fn take_from(
        &mut self,
        group: usize,
        fast: impl FnOnce(&mut GroupReading) -> bool,
    ) -> io::Result<Delta> {
        match self.rows.get_mut(group) {
            Some(row) if fast(&mut self.one) => {
                let delta = row.since(&self.one);
                row.seen.clone_from(&self.one);
                Ok(delta)
            }
            _ => self.take(group),
        }
    }

    /// The pages of every group, for the thread that is counted.
    pub(crate) fn user_pages(&self) -> Vec<Option<UserPages>> {
        let map = |group: &Group| UserPages::map(group).ok().filter(UserPages::allowed);
        self.rows.iter().map(|row| row.groups.first().and_then(map)).collect()
    }

    /// What a group has counted since it was last taken, without taking it.
    pub(crate) fn look(&mut self, group: usize) -> io::Result<Delta> {
        match self.rows.get_mut(group) {
            Some(row) => row.look(&mut self.one),
            None => Ok(Delta::default()),
        }
    }

    /// How long the targets ran since this was last taken, in nanoseconds.
    pub(crate) fn take_clock(&mut self) -> io::Result<u64> {
        Ok(self.clock.take(&mut self.one)?.enabled_ns)
    }
}

impl Row {
    fn open(
        events: &[Event],
        targets: &[Target],
        options: BankOptions,
        on_exec: bool,
    ) -> Result<Row, GroupRefusal> {
        let BankOptions { inherit, user_read, alarm, .. } = options;
        let options =
            GroupOptions { inherit, on_exec, user_read, alarm, ..GroupOptions::default() };
        let mut groups = Vec::with_capacity(targets.len());
        let mut gone = None;
        for target in targets {
            match Group::open(events, target, options) {
                Ok(group) => groups.push(group),
                Err(refusal) if refusal.refusal == Refusal::ProcessGone => gone = Some(refusal),
                Err(refusal) => return Err(refusal),
            }
        }
        match gone {
            Some(refusal) if groups.is_empty() => Err(refusal),
            _ => Ok(Row { groups, seen: GroupReading::default() }),
        }
    }

    fn enable(&self) -> io::Result<()> {
        self.groups.iter().try_for_each(Group::enable)
    }

    fn disable(&self) -> io::Result<()> {
        self.groups.iter().try_for_each(Group::disable)
    }

    /// The sum over all targets.
    fn read(&self, one: &mut GroupReading) -> io::Result<GroupReading> {
        let mut sum = GroupReading::default();
        for group in &self.groups {
            group.read(one)?;
            sum.enabled_ns += one.enabled_ns;
            sum.running_ns += one.running_ns;
            sum.counts.resize(one.counts.len(), vocab::Count::ZERO);
            sum.counts.iter_mut().zip(&one.counts).for_each(|(sum, &count)| *sum += count);
        }
        Ok(sum)
    }

    fn look(&self, one: &mut GroupReading) -> io::Result<Delta> {
        let now = self.read(one)?;
        Ok(self.since(&now))
    }

    fn take(&mut self, one: &mut GroupReading) -> io::Result<Delta> {
        let now = self.read(one)?;
        let delta = self.since(&now);
        self.seen = now;
        Ok(delta)
    }

    fn since(&self, now: &GroupReading) -> Delta {
        let before = self.seen.counts.iter().map(|count| count.0).chain(std::iter::repeat(0));
        Delta {
            counts: now.counts.iter().zip(before).map(|(n, b)| n.0.saturating_sub(b)).collect(),
            enabled_ns: now.enabled_ns.saturating_sub(self.seen.enabled_ns),
            running_ns: now.running_ns.saturating_sub(self.seen.running_ns),
        }
    }
}

/// A clock that any user may have: nothing of it is counted, only its time.
fn clock_for(targets: &[Target]) -> Event {
    // A CPU's clock runs while nothing does; a thread's only while it runs.
    let whole_cpu = targets.iter().all(|target| target.cpu().is_some());
    let (name, config) = if whole_cpu { ("cpu-clock", 0) } else { ("task-clock", 1) };
    Event { name: name.into(), code: EventCode::new(1, config), mode: Mode::User }
}
