//! One pass over a program's instructions that answers two questions.
//!
//! ```text
//!            ┌─ Comparer  warms; at random places times a window on both cores, from the same units
//! stream ────┼─ FastCore  the full answer
//!            └─ Sampling  SampledCore × seeds: does each interval hold it?
//! ```
//!
//! A program's threads have a core each. Windows fall on all of them, where the program's
//! instructions as a whole say; sampling is judged on the busiest one.

mod compared;
mod sampling;
mod windows;

use std::sync::Arc;

use metrology::Coverage;
use model::core::{Accounting, Settings};
use model::event::Event;
use model::fast::FastCore;
use model::machine::Machine;
use model::sampled::{Plan, SampledCore};
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use serde::{Deserialize, Serialize};
use tracer::results::ProcessKey;
use tracer::trace::Audience;

use sampling::Sampling;

pub use compared::{Compared, is_cause, is_compared};
pub use windows::{Comparer, Places};

/// Instructions in a window.
pub const WINDOW_INSTRUCTIONS: u64 = 100_000;

/// What is to be found out about a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// The machine.
    pub machine: String,
    /// Instructions that the program runs, about: windows are laid over them.
    pub instructions: u64,
    /// How many windows.
    pub windows: usize,
    /// Where they lie.
    pub seed: u64,
    /// The relative error that sampling is to reach.
    pub error: f64,
    /// A sampled core for each.
    pub sampling_seeds: Vec<u64>,
}

/// One sampled answer beside the full one, in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SampledAnswer {
    /// The estimate.
    pub cycles: f64,
    /// Its interval at 95 %.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Windows timed.
    pub windows: u64,
}

/// What was found out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The windows.
    pub windows: Vec<Compared>,
    /// Instructions of the busiest thread.
    pub instructions: u64,
    /// Its cycles on the one-pass core.
    pub cycles: u64,
    /// What sampling says of them; a seed that had fewer than two windows is left out.
    pub sampled: Vec<SampledAnswer>,
}

impl Answer {
    /// How many intervals hold the full answer.
    pub fn held(&self) -> u64 {
        let truth = self.cycles as f64;
        self.sampled.iter().filter(|s| (s.low..=s.high).contains(&truth)).count() as u64
    }
}

/// Those who listen to a program to find it out.
#[derive(Debug)]
pub struct Listeners {
    machine: Arc<Machine>,
    question: Question,
    places: Arc<Places>,
    answer: Answer,
}

impl Listeners {
    /// Nothing has been heard yet.
    ///
    /// # Errors
    ///
    /// The machine is not known.
    pub fn new(question: Question) -> Result<Listeners, String> {
        let machine = Machine::named(&question.machine).map_err(|e| e.to_string())?;
        let places = Places::new(question.seed, question.windows, question.instructions);
        Ok(Listeners {
            machine: Arc::new(machine),
            places: Arc::new(places),
            answer: Answer::default(),
            question,
        })
    }

    /// The answer when the stream is over.
    pub fn answer(mut self) -> Answer {
        self.answer.windows = self.places.windows();
        self.answer
    }
}

impl Audience for Listeners {
    type Core = Listener;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Listener {
        let (machine, error) = (self.machine.clone(), self.question.error);
        let seeds = self.question.sampling_seeds.clone();
        let sampled = move || {
            let core = |&seed: &u64| {
                let plan = Plan { error, seed, ..Plan::default() };
                SampledCore::new(&machine, Settings::default(), plan)
            };
            seeds.iter().map(core).collect()
        };
        Listener {
            comparer: Comparer::new(self.machine.clone(), self.places.clone()),
            full: FastCore::new(&self.machine, Settings::default()),
            sampled: Sampling::new(sampled),
        }
    }

    fn ended(&mut self, _: ProcessKey, _: u32, mut core: Listener) {
        core.full.finish();
        let counts = core.full.counts();
        if counts[Event::Instructions] <= self.answer.instructions {
            return;
        }
        self.answer.instructions = counts[Event::Instructions];
        self.answer.cycles = counts[Event::Cycles];
        let mut sampled = core.sampled.into_cores();
        self.answer.sampled = sampled.iter_mut().filter_map(sampled_answer).collect();
    }
}

fn sampled_answer(core: &mut SampledCore) -> Option<SampledAnswer> {
    // As a modelled run does at its end: what is under way counts, and what was never timed.
    core.settle_all();
    let estimate = core.estimate(Event::Cycles)?;
    let interval = estimate.interval(Coverage::P95);
    Some(SampledAnswer {
        cycles: estimate.value,
        low: interval.low,
        high: interval.high,
        windows: core.windows(),
    })
}

/// The listener of one thread.
#[derive(Debug)]
pub struct Listener {
    comparer: Comparer,
    full: FastCore,
    sampled: Sampling,
}

impl CoreListener for Listener {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.comparer.translated(id, block);
        self.full.translated(id, block);
        self.sampled.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.comparer.executed(id, ran, accesses);
        self.full.executed(id, ran, accesses);
        self.sampled.executed(id, ran, accesses);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.comparer.continued(id, accesses);
        self.full.continued(id, accesses);
        self.sampled.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.comparer.interrupted();
        self.full.interrupted();
        self.sampled.interrupted();
    }
}
