//! The shotgun profiler on the same windows, beside the graph and the idealised cores.
//!
//! Signatures come from the windows that are compared. Detailed samples come from these and from
//! further windows, as hardware would take them all over a run.

use std::sync::{Mutex, PoisonError};

use icost::shotgun::{CodeBook, Defaults, LabelRecorder, Labels, Question, analyse};
use icost::{Arbitration, Categories, Fixed, Lattice, subsets_up_to};
use model::core::Settings;
use model::machine::Machine;
use model::monitor::{LENGTH, Monitor, Rates, Samples};
use serde::{Deserialize, Serialize};

use super::times::Timed;

/// Lanes for singles and pairs of the eight.
const LANES: usize = 48;
/// Instructions from a detailed sample to the next.
const DETAIL_EVERY: u64 = 30;

/// What the samples of a program's windows showed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Shot {
    /// Cycles of each set, as bits.
    pub sets: Vec<(u16, f64)>,
    /// Signatures that were followed.
    pub signatures: u64,
    /// Detailed samples.
    pub details: u64,
    /// The share of fragments that held together at once.
    pub consistent: f64,
    /// Fragments that strayed, and those of them whose errant path was discarded.
    pub errant: (u64, u64),
    /// The share of instructions without a sample of their own.
    pub inferred: f64,
}

impl Shot {
    /// The cycles of every set.
    pub fn lattice(&self) -> Lattice {
        Lattice::new(self.sets.iter().map(|&(set, cycles)| (Categories(set), cycles)))
    }
}

/// Samples of all windows so far.
#[derive(Debug)]
pub(super) struct Shots {
    gathered: Mutex<(Samples<Labels>, CodeBook)>,
    seed: u64,
}

impl Shots {
    pub(super) fn new(machine: &Machine, seed: u64) -> Shots {
        Shots { gathered: Mutex::new((Samples::default(), CodeBook::new(machine))), seed }
    }

    /// Samples a window; its signatures count only if it is one of those that are compared.
    pub(super) fn take(&self, timed: &Timed<'_>, is_compared: bool) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(gathered.0.instructions);
        let rates = Rates { signature_every: LENGTH as u64, detail_every: DETAIL_EVERY, seed };
        let recorder = LabelRecorder::new(Fixed::of(timed.machine));
        let monitor = Monitor::new(recorder, rates).with_truth();
        let mut samples = timed.run(Settings::default(), monitor).watcher_mut().take();
        if !is_compared {
            samples.signatures.clear();
            samples.paths.clear();
        }
        gathered.0.merge(samples);
        timed.blocks.iter().for_each(|block| gathered.1.add(block));
    }

    pub(super) fn answer(&self, machine: &Machine) -> Shot {
        let gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let (samples, code) = &*gathered;
        let sets = subsets_up_to(2);
        let question = Question {
            fixed: Fixed::of(machine),
            defaults: Defaults::of(machine),
            sets: &sets,
            arbitration: Arbitration::Anew,
            seed: self.seed,
        };
        let found = analyse::<LANES>(samples, code, &question);
        let (costs, tally) = (found.costs(), &found.tally);
        let time = |set: &Categories| Some((set.0, costs.whole().time(*set)?));
        let truth = tally.truth.unwrap_or_default();
        Shot {
            sets: sets.iter().filter_map(time).collect(),
            signatures: tally.signatures,
            details: tally.details,
            consistent: tally.consistent_share().unwrap_or(f64::NAN),
            errant: (truth.errant, truth.errant_discarded),
            inferred: tally.inferred_share().unwrap_or(f64::NAN),
        }
    }
}
