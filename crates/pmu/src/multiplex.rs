//! Counters that take turns: a backend, its groups and the scheduler together.
//!
//! ```text
//! start ──► program group k ──► the backend runs until `Turn::until` ──► switch: read, program next
//!                                                    stop, or a read in between: a partial slice
//! ```

use crate::schedule::{Plan, Scheduler, Turn};
use crate::{Grouping, Reading};

/// Counters that can be programmed with one group at a time.
pub trait Pmu {
    /// Why they could not be.
    type Error;

    /// Programs the counters with a group; they count from zero.
    ///
    /// # Errors
    ///
    /// The backend's own.
    fn program(&mut self, grouping: &Grouping, group: usize) -> Result<(), Self::Error>;

    /// What was counted since, in the order of the group's events. Counting goes on.
    ///
    /// # Errors
    ///
    /// The backend's own.
    fn read(&mut self) -> Result<Vec<u64>, Self::Error>;
}

/// The turns of one thread, process or CPU.
#[derive(Clone, Debug)]
pub struct Multiplexer {
    grouping: Grouping,
    scheduler: Scheduler,
    boundary: usize,
    now: u64,
}

impl Multiplexer {
    /// Takes turns by a plan; `boundary` is the anchor whose count ends a slice.
    pub fn new(grouping: Grouping, plan: Plan, boundary: usize) -> Multiplexer {
        Multiplexer { grouping, scheduler: Scheduler::new(plan), boundary, now: 0 }
    }

    /// The events and groups.
    pub fn grouping(&self) -> &Grouping {
        &self.grouping
    }

    /// The scheduler, for what its plan has become.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// How much of the boundary's event was counted, up to the last slice that was read.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// How much of the boundary's event is left of the turn that began with the last switch.
    pub fn left(&self) -> u64 {
        self.scheduler.turn().map_or(0, |turn| turn.until.saturating_sub(self.now))
    }

    /// Starts counting, or goes on after a stop.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub fn start<P: Pmu>(&mut self, pmu: &mut P) -> Result<Turn, P::Error> {
        let turn = self.scheduler.start(self.now);
        pmu.program(&self.grouping, turn.group)?;
        Ok(turn)
    }

    /// The turn is over: reads its slice and begins the next turn. `None` if none was under way.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub fn switch<P: Pmu>(&mut self, pmu: &mut P) -> Result<Option<Reading>, P::Error> {
        let Some(reading) = self.take(pmu)? else { return Ok(None) };
        let turn = self.scheduler.advance(self.now);
        pmu.program(&self.grouping, turn.group)?;
        Ok(Some(reading))
    }

    /// Reads the slice under way without ending it: what a total read now must be credited with.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub fn peek<P: Pmu>(&self, pmu: &mut P) -> Result<Option<Reading>, P::Error> {
        let Some(turn) = self.scheduler.turn() else { return Ok(None) };
        Ok(Some(Reading { group: turn.group, round: turn.round, counts: pmu.read()? }))
    }

    /// Stops counting and credits the slice under way. `None` if none was.
    ///
    /// # Errors
    ///
    /// The backend's.
    pub fn stop<P: Pmu>(&mut self, pmu: &mut P) -> Result<Option<Reading>, P::Error> {
        let reading = self.take(pmu)?;
        self.scheduler.stop(self.now);
        Ok(reading)
    }

    fn take<P: Pmu>(&mut self, pmu: &mut P) -> Result<Option<Reading>, P::Error> {
        let Some(reading) = self.peek(pmu)? else { return Ok(None) };
        let passed = reading.counts.get(self.boundary).copied().unwrap_or(0);
        self.now = self.now.saturating_add(passed);
        self.scheduler.observe(&self.grouping, &reading);
        Ok(Some(reading))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Counters, estimate, group};
    use std::convert::Infallible;

    /// Counters over a clock that the test moves: cycles, and events at rates of their own.
    #[derive(Default)]
    struct Clock {
        now: u64,
        from: u64,
        rates: Vec<u64>,
    }

    impl Pmu for Clock {
        type Error = Infallible;

        fn program(&mut self, grouping: &Grouping, group: usize) -> Result<(), Infallible> {
            self.from = self.now;
            self.rates = grouping.groups[group].events.iter().map(|&e| e as u64 + 1).collect();
            Ok(())
        }

        fn read(&mut self) -> Result<Vec<u64>, Infallible> {
            Ok(self.rates.iter().map(|rate| rate * (self.now - self.from)).collect())
        }
    }

    #[test]
    fn partial_slices_are_credited_on_read_and_stop_and_nothing_is_counted_twice() {
        let units: Vec<Vec<String>> = ["a", "b", "c"].iter().map(|e| vec![(*e).into()]).collect();
        let grouping = group(&Counters::alike(2), &["cycles"], &units).unwrap();
        assert_eq!(grouping.groups.len(), 3);
        let plan = Plan { opening: None, ..Plan::even(3, 100, 1) };
        let mut turns = Multiplexer::new(grouping, plan, 0);
        let mut clock = Clock::default();
        assert_eq!(turns.switch(&mut clock), Ok(None));
        let mut readings = Vec::new();
        // Starts and stops every 70 cycles; time passes in between and is nobody's.
        for _ in 0..30 {
            turns.start(&mut clock).unwrap();
            let mut left = 70;
            while left >= turns.left() {
                left -= turns.left();
                clock.now += turns.left();
                readings.extend(turns.switch(&mut clock).unwrap());
            }
            clock.now += left;
            let peeked = turns.peek(&mut clock).unwrap();
            assert_eq!(turns.stop(&mut clock).unwrap(), peeked);
            readings.extend(peeked);
            clock.now += 1000;
        }
        let cycles: u64 = readings.iter().map(|r| r.counts[0]).sum();
        assert_eq!((cycles, turns.now()), (2100, 2100));
        let totals = estimate::totals(turns.grouping(), &readings);
        for event in 1..4 {
            let counted = totals[event].unwrap();
            assert_eq!(counted.estimate.value.round(), (event as f64 + 1.0) * 2100.0);
            // 21 slices in rounds of three: every group seven.
            assert!((counted.share - 1.0 / 3.0).abs() < 1e-12);
        }
    }
}
