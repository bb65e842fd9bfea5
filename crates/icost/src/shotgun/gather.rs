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
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metrology::Draws;
use model::core::Settings;
use model::machine::Machine;
use model::monitor::{DetailedSample, LENGTH, Monitor, Rates, Samples};
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;

use super::{CodeBook, LabelRecorder, Labels};
use crate::Fixed;

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
    /// Instructions that have run, and where the next window begins.
    position: AtomicU64,
    next: AtomicU64,
    state: Mutex<State>,
}

/// A window is under way: no other begins.
const UNDER_WAY: u64 = u64::MAX;

#[derive(Debug)]
struct State {
    draws: Draws,
    stratum: u64,
    next_stratum: u64,
    seed: u64,
    windows: Vec<(u64, Samples<Labels>)>,
    spare: BTreeMap<u64, Vec<DetailedSample<Labels>>>,
    code: BTreeMap<u64, CodeBook>,
}

impl Gathering {
    /// Nothing has run.
    pub fn new(machine: Machine, plan: Plan) -> Gathering {
        let stratum = plan.window_instructions.max(1);
        let state = State {
            draws: Draws::new(plan.rates.seed),
            stratum,
            next_stratum: stratum,
            seed: plan.rates.seed,
            windows: Vec::new(),
            spare: BTreeMap::new(),
            code: BTreeMap::new(),
        };
        let (position, next) = (AtomicU64::new(0), AtomicU64::new(0));
        Gathering { machine, plan, position, next, state: Mutex::new(state) }
    }

    /// What was gathered when everything has run: the instructions of the program, and of each
    /// process the samples.
    pub fn finish(&self) -> (u64, Vec<Gathered>) {
        let mut state = self.state();
        let mut samples: BTreeMap<u64, Samples<Labels>> = BTreeMap::new();
        for (process, window) in std::mem::take(&mut state.windows) {
            samples.entry(process).or_default().merge(window);
        }
        let mut all = Vec::new();
        for (process, mut samples) in samples {
            samples.details.extend(state.spare.remove(&process).unwrap_or_default());
            let code = state.code.remove(&process).unwrap_or_else(|| CodeBook::new(&self.machine));
            all.push(Gathered { process, samples, code });
        }
        (self.position.load(Relaxed), all)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a window begins here; if so it is under way.
    fn begins(&self) -> bool {
        let next = self.next.load(Relaxed);
        let is_due = next != UNDER_WAY && self.position.load(Relaxed) >= next;
        is_due && self.next.compare_exchange(next, UNDER_WAY, Relaxed, Relaxed).is_ok()
    }

    fn keep(&self, process: u64, samples: Samples<Labels>) {
        let next = self.state().keep(&self.plan, process, samples);
        self.next.store(next, Relaxed);
    }
}

impl State {
    /// Keeps a window; says where the next one begins.
    fn keep(&mut self, plan: &Plan, process: u64, samples: Samples<Labels>) -> u64 {
        self.windows.push((process, samples));
        if self.windows.len() >= 2 * plan.windows.max(1) {
            self.thin();
        }
        let room = self.stratum.saturating_sub(plan.window_instructions);
        let within = self.draws.below(usize::try_from(room).unwrap_or(0) + 1) as u64;
        let next = self.next_stratum + within;
        self.next_stratum += self.stratum;
        next
    }

    /// Keeps one of every two neighbours.
    fn thin(&mut self) {
        self.stratum *= 2;
        let mut windows = std::mem::take(&mut self.windows).into_iter();
        while let Some(first) = windows.next() {
            let Some(second) = windows.next() else {
                self.windows.push(first);
                break;
            };
            let is_first = self.draws.below(2) == 0;
            let (kept, dropped) = if is_first { (first, second) } else { (second, first) };
            self.windows.push(kept);
            let spare = self.spare.entry(dropped.0).or_default();
            let room = SPARE_MAX.saturating_sub(spare.len());
            spare.extend(dropped.1.details.into_iter().take(room));
        }
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
        if !self.gathering.begins() {
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
        self.gathering.position.fetch_add(u64::from(ran), Relaxed);
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
