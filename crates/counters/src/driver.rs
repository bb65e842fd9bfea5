//! One bank under either kind of turns, with what it has read so far.

use std::io;

use perf::AlarmClock;
use pmu::Reading;

use crate::engine::{Engine, Tally};
use crate::history::History;
use crate::outcome::Lanes;
use crate::rotation::Rotation;

/// Who gives the turns.
#[derive(Debug)]
pub(crate) enum Turns {
    /// We do.
    Own(Box<Engine>),
    /// The kernel does.
    Kernel(Box<Rotation>),
}

/// A bank with its readings.
#[derive(Debug)]
pub(crate) struct Driver {
    turns: Turns,
    whole: Vec<History>,
    lap: Vec<History>,
    /// The first call that failed: what was read before stands.
    failure: Option<String>,
}

impl Driver {
    pub(crate) fn new(turns: Turns) -> Driver {
        Driver { turns, whole: Vec::new(), lap: Vec::new(), failure: None }
    }

    pub(crate) fn start(&mut self) -> io::Result<()> {
        match &mut self.turns {
            Turns::Own(engine) => engine.start(),
            Turns::Kernel(rotation) => rotation.start(),
        }
    }

    pub(crate) fn start_on_exec(&mut self) {
        match &mut self.turns {
            Turns::Own(engine) => engine.start_on_exec(),
            Turns::Kernel(rotation) => rotation.start_on_exec(),
        }
    }

    /// Switches if it is time. How much is left and how far it has come; `None` where the kernel
    /// rotates.
    pub(crate) fn tick(&mut self) -> Option<(u64, u64)> {
        let outcome = match &mut self.turns {
            Turns::Own(engine) => engine.tick().map(Some),
            Turns::Kernel(rotation) => rotation.credit().map(|()| None),
        };
        self.take_in();
        match outcome {
            Ok(left) => left,
            Err(error) => {
                self.fail(&error);
                None
            }
        }
    }

    /// Whether its groups say when a turn is over.
    pub(crate) fn rings(&self) -> bool {
        matches!(&self.turns, Turns::Own(engine) if engine.bank().rings())
    }

    /// Lets the groups wake the thread of the clock.
    pub(crate) fn ring(&self, clock: &AlarmClock) -> io::Result<()> {
        match &self.turns {
            Turns::Own(engine) => engine.bank().ring(clock),
            Turns::Kernel(_) => Ok(()),
        }
    }

    /// Counts the slice under way as far as it got.
    pub(crate) fn credit(&mut self) {
        let outcome = match &mut self.turns {
            Turns::Own(engine) if engine.is_on() => {
                engine.credit().and_then(|()| engine.credit_gaps())
            }
            Turns::Own(_) => Ok(()),
            Turns::Kernel(rotation) => rotation.credit(),
        };
        self.settle(outcome);
    }

    pub(crate) fn stop(&mut self) {
        let outcome = match &mut self.turns {
            Turns::Own(engine) => engine.stop(),
            Turns::Kernel(rotation) => rotation.stop(),
        };
        self.settle(outcome);
    }

    pub(crate) fn tally(&self) -> &Tally {
        match &self.turns {
            Turns::Own(engine) => engine.tally(),
            Turns::Kernel(rotation) => rotation.tally(),
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// All readings so far.
    pub(crate) fn whole(&mut self) -> Lanes {
        self.whole.iter().map(|history| history.since(0).to_vec()).collect()
    }

    /// The readings since this was last asked.
    pub(crate) fn take_lap(&mut self) -> Lanes {
        self.lap.iter_mut().map(|history| std::mem::take(history).since(0).to_vec()).collect()
    }

    fn settle(&mut self, outcome: io::Result<()>) {
        if let Err(error) = outcome {
            self.fail(&error);
        }
        self.take_in();
    }

    fn fail(&mut self, error: &io::Error) {
        self.failure.get_or_insert_with(|| error.to_string());
    }

    fn take_in(&mut self) {
        let lanes: Vec<Vec<Reading>> = match &mut self.turns {
            Turns::Own(engine) => vec![engine.take_readings()],
            Turns::Kernel(rotation) => rotation.take_lanes(),
        };
        for histories in [&mut self.whole, &mut self.lap] {
            histories.resize_with(lanes.len(), History::default);
            for (history, readings) in histories.iter_mut().zip(&lanes) {
                history.extend(readings.iter().cloned());
                history.shorten_after(0);
            }
        }
    }
}
