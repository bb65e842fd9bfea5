//! Turns over perf events: the scheduler decides, the bank switches, the history remembers.
//!
//! ```text
//! start ─ enable g0 ─── tick: over? disable g0, read, enable g1 ─── … ─── stop: disable, read
//!                       └ not yet: how much is left                        └ a short slice counts
//! ```
//! Between a disable and the next enable nothing is counted. The clock, which is never switched,
//! says how much of the targets' time that was; it enters the history as time that nobody counted.

use std::io;
use std::sync::Arc;

use perf::GroupReading;
use pmu::Reading;
use pmu::schedule::{Scheduler, Turn};

use crate::bank::{Bank, Delta};
use crate::layout::Layout;

/// What ends a slice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Boundary {
    /// Time for which the group was switched on, in nanoseconds.
    Time,
    /// The count of an anchor, by its place.
    Anchor(usize),
}

/// A group that waits for a counter longer than this gives its turn up, whatever its boundary.
const PATIENCE_NS: u64 = 20_000_000;

/// Turns on one bank.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) bank: Bank,
    pub(crate) layout: Arc<Layout>,
    scheduler: Scheduler,
    boundary: Boundary,
    /// A turn lasts for at least so long, whatever its boundary: occurrences may come so fast that
    /// switching would take all the time.
    least_ns: u64,
    /// How far the boundary's quantity had come at the last taken reading.
    spent: u64,
    /// Anchors over all slices.
    anchors: Vec<u64>,
    /// The time that taken readings cover, against what the clock says.
    enabled_ns: u64,
    clock_ns: u64,
    tally: Tally,
    readings: Vec<Reading>,
    is_on: bool,
}

/// What is known of a bank beside its readings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    /// The targets' time.
    pub(crate) time_ns: u64,
    /// Time within our slices in which another user had the counters.
    pub(crate) stolen_ns: u64,
    pub(crate) switches: u64,
    /// How long each group was switched on.
    pub(crate) enabled_ns: Vec<u64>,
}

impl Engine {
    pub(crate) fn new(
        bank: Bank,
        layout: Arc<Layout>,
        scheduler: Scheduler,
        boundary: Boundary,
        least_ns: u64,
    ) -> Engine {
        let tally = Tally { enabled_ns: vec![0; bank.len()], ..Tally::default() };
        Engine {
            anchors: vec![0; layout.grouping.anchors],
            bank,
            layout,
            scheduler,
            boundary,
            least_ns,
            spent: 0,
            enabled_ns: 0,
            clock_ns: 0,
            tally,
            readings: Vec::new(),
            is_on: false,
        }
    }

    /// Begins, or goes on after a stop.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        let turn = self.scheduler.start(self.spent);
        self.bank.switch_clock(true)?;
        self.bank.enable(turn.group)?;
        self.is_on = true;
        Ok(())
    }

    /// Begins with the target's exec, for which the bank was opened.
    pub(crate) fn start_on_exec(&mut self) {
        self.scheduler.start(self.spent);
        self.is_on = true;
    }

    /// Switches if the turn is over. How much of the boundary is left now, and how far it has come.
    pub(crate) fn tick(&mut self) -> io::Result<(u64, u64)> {
        let Some(turn) = self.scheduler.turn().filter(|_| self.is_on) else {
            return Ok((u64::MAX, self.spent));
        };
        let ahead = self.bank.look(turn.group)?;
        let now = self.spent.saturating_add(self.quantity(&ahead));
        let is_stuck = ahead.running_ns == 0 && ahead.enabled_ns > PATIENCE_NS;
        if now < turn.until && !is_stuck {
            return Ok((turn.until - now, now));
        }
        if ahead.enabled_ns < self.least_ns && !is_stuck {
            // Any number that is left brings us back soon.
            return Ok((1, now));
        }
        self.switch(turn, now)?;
        let until = self.scheduler.turn().map_or(u64::MAX, |turn| turn.until);
        Ok((until.saturating_sub(self.spent), self.spent))
    }

    /// Ends the turn now and begins the next. The two calls stand together, because the target may
    /// run on meanwhile; what the finished slice counted can wait to be read.
    fn switch(&mut self, turn: Turn, now: u64) -> io::Result<()> {
        let next = self.scheduler.advance(now);
        if next.group != turn.group {
            self.bank.disable(turn.group)?;
            self.bank.enable(next.group)?;
        }
        let delta = self.bank.take(turn.group)?;
        self.take_in(turn, &delta);
        self.tally.switches += 1;
        Ok(())
    }

    /// Stops; the short slice counts.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        let Some(turn) = self.scheduler.turn().filter(|_| self.is_on) else { return Ok(()) };
        self.bank.disable(turn.group)?;
        self.bank.switch_clock(false)?;
        self.is_on = false;
        self.credit()?;
        self.credit_gaps()?;
        self.scheduler.stop(self.spent);
        Ok(())
    }

    /// Turns what the slice under way has counted so far into a reading, and goes on.
    pub(crate) fn credit(&mut self) -> io::Result<()> {
        let Some(turn) = self.scheduler.turn() else { return Ok(()) };
        let delta = self.bank.take(turn.group)?;
        self.take_in(turn, &delta);
        Ok(())
    }

    /// The same, read by someone who knows a faster way for a group.
    pub(crate) fn credit_from(
        &mut self,
        fast: impl FnOnce(usize, &mut GroupReading) -> bool,
    ) -> io::Result<()> {
        let Some(turn) = self.scheduler.turn() else { return Ok(()) };
        let delta = self.bank.take_from(turn.group, |into| fast(turn.group, into))?;
        self.take_in(turn, &delta);
        Ok(())
    }

    fn take_in(&mut self, turn: Turn, delta: &Delta) {
        self.spent = self.spent.saturating_add(self.quantity(delta));
        self.enabled_ns += delta.enabled_ns;
        if let Some(enabled_ns) = self.tally.enabled_ns.get_mut(turn.group) {
            *enabled_ns += delta.enabled_ns;
        }
        let lost_ns = delta.enabled_ns.saturating_sub(delta.running_ns);
        if delta.running_ns > 0 {
            let reading = self.layout.reading(turn.group, turn.round, delta);
            let sums = self.anchors.iter_mut().zip(&reading.counts);
            sums.for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            self.scheduler.observe(&self.layout.grouping, &reading);
            self.readings.push(reading);
        }
        if lost_ns > 0 {
            self.tally.stolen_ns += lost_ns;
            self.readings.push(self.layout.gap(turn.round, lost_ns, &self.anchors));
        }
    }

    /// Time that passed while groups were switched; nothing where there is only one.
    pub(crate) fn credit_gaps(&mut self) -> io::Result<()> {
        let passed_ns = self.bank.take_clock()?;
        self.clock_ns += passed_ns;
        self.tally.time_ns += passed_ns;
        let between_ns = self.clock_ns.saturating_sub(self.enabled_ns);
        if self.bank.len() > 1 && between_ns > 0 {
            self.clock_ns = self.enabled_ns;
            self.readings.push(self.layout.gap(0, between_ns, &self.anchors));
        }
        Ok(())
    }

    pub(crate) fn bank(&self) -> &Bank {
        &self.bank
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// The readings since they were last taken.
    pub(crate) fn take_readings(&mut self) -> Vec<Reading> {
        std::mem::take(&mut self.readings)
    }

    fn quantity(&self, delta: &Delta) -> u64 {
        match self.boundary {
            Boundary::Time => delta.enabled_ns,
            Boundary::Anchor(place) => self.layout.anchor(place, delta),
        }
    }
}
