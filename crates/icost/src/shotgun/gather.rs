//! Samples from windows all over a program.
//!
//! ```text
//! stream ─► warm ─┬──────────┬─────────►   caches, translation, predictors: always
//!                 └ window   └ window      the cycle-by-cycle core with a monitor on it
//! ```
//!
//! How long a program runs shows only in the end. Windows fall one in a stratum; when there are
//! too many, every second one's signatures are dropped and strata become twice as long. Its
//! detailed samples stay: an instruction behaves as it does wherever it was met.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::core::Settings;
use model::machine::Machine;
use model::monitor::{DetailedSample, LENGTH, Monitor, Rates, Samples};
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;

use super::{CodeBook, LabelRecorder, Labels};
use crate::Fixed;
use crate::strata::{Strata, Turns};

/// Where windows fall and what is sampled in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Instructions in a window.
    pub window_instructions: u64,
    /// Windows that are kept at least; fewer than twice as many are.
    pub windows: usize,
    /// How often samples are taken in them.
    pub rates: Rates,
}

impl Default for Plan {
    /// Windows are short, so that a detailed sample follows the other; hardware would take as many
    /// from a longer run.
    fn default() -> Plan {
        let rates = Rates { signature_every: 2 * LENGTH as u64, detail_every: 30, seed: 1 };
        Plan { window_instructions: 50_000, windows: 32, rates }
    }
}

/// Detailed samples of windows whose signatures were dropped that are kept at most.
const SPARE_MAX: usize = 300_000;

/// The samples of one process and the code that it ran.
#[derive(Clone, Debug)]
pub struct Gathered {
    /// The process, as whoever listens numbers it.
    pub process: u64,
    /// The samples.
    pub samples: Samples<Labels>,
    /// The code.
    pub code: CodeBook,
}

/// What the threads of a program share.
#[derive(Debug)]
pub struct Gathering {
    machine: Machine,
    plan: Plan,
    turns: Turns,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    seed: u64,
    windows: Strata<(u64, Samples<Labels>)>,
    spare: BTreeMap<u64, Vec<DetailedSample<Labels>>>,
    code: BTreeMap<u64, CodeBook>,
}

impl Gathering {
    /// Nothing has run.
    pub fn new(machine: Machine, plan: Plan) -> Gathering {
        let seed = plan.rates.seed;
        let state = State {
            seed,
            windows: Strata::new(plan.window_instructions, plan.windows, seed),
            spare: BTreeMap::new(),
            code: BTreeMap::new(),
        };
        Gathering { machine, plan, turns: Turns::default(), state: Mutex::new(state) }
    }

    /// What was gathered when everything has run: the instructions of the program, and of each
    /// process the samples.
    pub fn finish(&self) -> (u64, Vec<Gathered>) {
        let mut state = self.state();
        let mut samples: BTreeMap<u64, Samples<Labels>> = BTreeMap::new();
        for (process, window) in state.windows.take() {
            samples.entry(process).or_default().merge(window);
        }
        let mut all = Vec::new();
        for (process, mut samples) in samples {
            samples.details.extend(state.spare.remove(&process).unwrap_or_default());
            let code = state.code.remove(&process).unwrap_or_else(|| CodeBook::new(&self.machine));
            all.push(Gathered { process, samples, code });
        }
        (self.turns.position(), all)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, process: u64, samples: Samples<Labels>) {
        let mut state = self.state();
        let State { windows, spare, .. } = &mut *state;
        let next = windows.keep((process, samples), |(process, dropped)| {
            let spare = spare.entry(process).or_default();
            let room = SPARE_MAX.saturating_sub(spare.len());
            spare.extend(dropped.details.into_iter().take(room));
        });
        self.turns.next_at(next);
    }
}

/// The listener of one thread.
pub struct Gatherer {
    gathering: Arc<Gathering>,
    process: u64,
    warmer: Warmer,
    /// Idle between windows; its units are replaced when one begins.
    core: Option<Box<ReferenceCore<Monitor<LabelRecorder>>>>,
    /// Instructions that are left of the window.
    left: u64,
}

impl Gatherer {
    /// Cold units, for a thread of a process.
    pub fn new(gathering: Arc<Gathering>, process: u64) -> Gatherer {
        let machine = &gathering.machine;
        let monitor = Monitor::new(LabelRecorder::new(Fixed::of(machine)), gathering.plan.rates);
        let core = ReferenceCore::watched(machine, Settings::default(), monitor);
        let warmer = Warmer::new(machine);
        Gatherer { process, warmer, core: Some(Box::new(core)), left: 0, gathering }
    }

    fn begin(&mut self) {
        if !self.gathering.turns.begins() {
            return;
        }
        let seed = {
            let mut state = self.gathering.state();
            state.seed += 1;
            state.seed
        };
        let Some(core) = self.core.take() else { return };
        let (memory, predictor) = self.warmer.clone().into_units();
        let mut core = core.with_units(memory, predictor);
        let recorder = LabelRecorder::new(Fixed::of(&self.gathering.machine));
        let rates = Rates { seed, ..self.gathering.plan.rates };
        *core.watcher_mut() = Monitor::new(recorder, rates);
        self.core = Some(Box::new(core));
        self.left = self.gathering.plan.window_instructions;
    }

    fn advance(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(core) = self.core.as_mut().filter(|_| self.left > 0) else { return };
        core.executed(id, ran, accesses);
        self.left = self.left.saturating_sub(u64::from(ran));
        if self.left == 0 {
            core.finish();
            let samples = core.watcher_mut().take();
            self.gathering.keep(self.process, samples);
        }
    }
}

impl Drop for Gatherer {
    fn drop(&mut self) {
        // A thread that ends within a window leaves the next one to another, but not its samples.
        if self.left > 0
            && let Some(core) = &mut self.core
        {
            core.finish();
            let samples = core.watcher_mut().take();
            self.gathering.keep(self.process, samples);
        }
    }
}

impl CoreListener for Gatherer {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.warmer.translated(id, block);
        if let Some(core) = &mut self.core {
            core.translated(id, block);
        }
        let machine = &self.gathering.machine;
        let mut state = self.gathering.state();
        state.code.entry(self.process).or_insert_with(|| CodeBook::new(machine)).add(block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.left == 0 {
            self.begin();
        }
        self.advance(id, ran, accesses);
        self.warmer.executed(id, ran, accesses);
        self.gathering.turns.ran(u64::from(ran));
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        if let Some(core) = self.core.as_mut().filter(|_| self.left > 0) {
            core.continued(id, accesses);
        }
        self.warmer.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        if let Some(core) = self.core.as_mut().filter(|_| self.left > 0) {
            core.interrupted();
        }
        self.warmer.interrupted();
    }
}
