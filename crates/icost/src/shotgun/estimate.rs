//! Costs from fragments, and how sure they are.

use std::collections::BTreeMap;

use metrology::{Estimate, Joint, propagate};
use model::monitor::Samples;

use super::{Assembler, CodeBook, Database, Defaults, Flaw, Fragment, Labels, walk};
use crate::{Arbitration, Categories, Fixed, Lanes, Lattice};

/// What became of the samples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Signatures followed.
    pub signatures: u64,
    /// Detailed samples to choose from.
    pub details: u64,
    /// Fragments that hold together.
    pub consistent: u64,
    /// Fragments that hold together as far as they could be followed.
    pub cut: u64,
    /// Those discarded, by why.
    pub discarded: BTreeMap<&'static str, u64>,
    /// Instructions in consistent fragments.
    pub instructions: u64,
    /// Those of them that no detailed sample spoke of.
    pub inferred: u64,
    /// Edges whose other end was not in the fragment.
    pub lost_edges: u64,
    /// What the truth says, where it was kept.
    pub truth: Option<Truth>,
}

/// Fragments against what really happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Truth {
    /// Fragments that left the path which the program took, or would have with another step.
    pub errant: u64,
    /// Those of them that were discarded.
    pub errant_discarded: u64,
}

impl Tally {
    fn judge(&mut self, fragment: &Fragment<'_>, code: &CodeBook, path: Option<&Vec<u64>>) {
        self.signatures += 1;
        match fragment.flaw {
            None => self.consistent += 1,
            Some(Flaw::NoTarget) => self.cut += 1,
            Some(flaw) => *self.discarded.entry(flaw.key()).or_default() += 1,
        }
        let Some(path) = path else { return };
        let truth = self.truth.get_or_insert_default();
        let walked = fragment.places.iter().filter_map(|&place| code.at(place));
        let strayed = walked.zip(path).any(|(known, &pc)| known.instruction.pc != pc);
        match (strayed, fragment.is_consistent()) {
            (true, true) => truth.errant += 1,
            (_, false) => {
                truth.errant += 1;
                truth.errant_discarded += 1;
            }
            (false, true) => {}
        }
    }
}

/// The graph that the samples stand for, timed with every set idealised.
#[derive(Clone, Debug)]
pub struct Shotgun {
    /// What became of the samples.
    pub tally: Tally,
    sets: Vec<Categories>,
    /// Cycles of each set, batch by batch of fragments in the order of time.
    batches: Vec<Vec<f64>>,
}

/// Neighbouring fragments are alike, so that single ones would claim to know more than they do.
const BATCHES: usize = 30;

/// Puts fragments together and times them with each set idealised, as many as there are lanes.
pub fn analyse<const L: usize>(
    samples: &Samples<Labels>,
    code: &CodeBook,
    (fixed, defaults): (Fixed, Defaults),
    (sets, arbitration): (&[Categories], Arbitration),
    seed: u64,
) -> Shotgun {
    let mut database = Database::new(&samples.details, code, seed);
    let mut assembler = Assembler::new(fixed, defaults);
    let mut lanes: Lanes<L> = Lanes::new(fixed, sets, arbitration);
    let mut tally = Tally { details: samples.details.len() as u64, ..Tally::default() };
    let mut ends: Vec<Vec<f64>> = Vec::new();
    for (k, signature) in samples.signatures.iter().enumerate() {
        let fragment = walk(signature, code, &mut database);
        tally.judge(&fragment, code, samples.paths.get(k));
        if fragment.is_consistent() {
            assembler.add(&fragment, signature, code, |step| lanes.step(step));
            ends.push(lanes.times().into_iter().map(|(_, time)| time).collect());
        }
    }
    (tally.instructions, tally.inferred) = assembler.inferred();
    tally.lost_edges = assembler.lost();
    let sets = sets.iter().copied().take(L).collect();
    Shotgun { tally, sets, batches: batches(&ends) }
}

/// From the times at which fragments ended to the times that batches of them took.
fn batches(ends: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let size = (ends.len() / BATCHES).max(1);
    let whole = ends.len() / size * size;
    // Fragments that fill no batch join the last.
    let last = |k: usize| if k + size >= whole { ends.len() } else { k + size };
    let mut before = vec![0.0; ends.first().map_or(0, Vec::len)];
    let mut all = Vec::new();
    for k in (0..whole).step_by(size) {
        let Some(end) = ends.get(last(k) - 1) else { continue };
        all.push(end.iter().zip(&before).map(|(end, before)| end - before).collect());
        before.clone_from(end);
    }
    all
}

impl Shotgun {
    /// The cycles of every set, all fragments together.
    pub fn lattice(&self) -> Lattice {
        let sum = |k: usize| self.batches.iter().filter_map(|batch| batch.get(k)).sum();
        Lattice::new(self.sets.iter().enumerate().map(|(k, &set)| (set, sum(k))))
    }

    /// What a set adds to what its parts explain, as a share of the time, with what differs from
    /// fragment to fragment. None if a part was not evaluated or there are fewer than two batches.
    pub fn icost_share(&self, set: Categories) -> Option<Estimate> {
        self.ratio(|lattice| lattice.icost(set))
    }

    /// What idealising a set saves, as a share of the time.
    pub fn cost_share(&self, set: Categories) -> Option<Estimate> {
        self.ratio(|lattice| lattice.cost(set))
    }

    /// Cycles an instruction.
    pub fn cycles_per_instruction(&self) -> Option<f64> {
        let cycles = self.lattice().time(Categories::NONE)?;
        (self.tally.instructions > 0).then(|| cycles / self.tally.instructions as f64)
    }

    fn ratio(&self, cycles: impl Fn(&Lattice) -> Option<f64>) -> Option<Estimate> {
        let lattice =
            |batch: &Vec<f64>| Lattice::new(self.sets.iter().copied().zip(batch.iter().copied()));
        let (mut saved, mut taken) = (Vec::new(), Vec::new());
        for batch in &self.batches {
            let lattice = lattice(batch);
            saved.push(cycles(&lattice)?);
            taken.push(lattice.time(Categories::NONE)?);
        }
        let joint = Joint::of(&[&saved, &taken]).ok()?;
        propagate(&[joint], |means| match means {
            [saved, taken] if *taken > 0.0 => saved / taken,
            _ => f64::NAN,
        })
    }
}
