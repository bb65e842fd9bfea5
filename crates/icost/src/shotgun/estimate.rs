//! Costs from fragments, and how sure they are.
//!
//! Two things make a cost uncertain: which stretches of the program the signatures happened to
//! fall on, and which runs of an instruction the detailed samples did. The first shows from batch
//! to batch of fragments. The second shows when the same fragments are put together from a fifth
//! of the detailed samples, five times.

use metrology::{Estimate, mean};
use model::monitor::{DetailedSample, Samples, SignatureSample};

use super::tally::Tally;
use super::{Assembler, CodeBook, Database, Defaults, Fragment, Labels, walk};
use crate::{Arbitration, Categories, Fixed, Lanes, Lattice};

/// The machine and what is to be idealised on it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The machine's numbers.
    pub fixed: Fixed,
    /// What is taken for granted where nothing was seen.
    pub defaults: Defaults,
    /// The sets to idealise; the empty one is the program as it is.
    pub sets: &'a [Categories],
    /// Who gives ports out.
    pub arbitration: Arbitration,
    /// Decides between detailed samples that match equally well.
    pub seed: u64,
}

/// The graph that the samples stand for, timed with every set idealised.
#[derive(Clone, Debug)]
pub struct Shotgun {
    /// What became of the samples.
    pub tally: Tally,
    sets: Vec<Categories>,
    /// Cycles of each set, batch by batch of fragments in the order of time.
    batches: Vec<Vec<f64>>,
    /// Cycles of each set over the same fragments, part by part of the detailed samples.
    parts: Vec<Vec<f64>>,
}

/// Neighbouring fragments are alike, so that single ones would claim to know more than they do.
const BATCHES: usize = 30;
/// Parts that detailed samples are divided into, to see what they leave open.
const PARTS: usize = 5;

/// Puts fragments together and times them with each set idealised, as many as there are lanes.
pub fn analyse<const L: usize>(
    samples: &Samples<Labels>,
    code: &CodeBook,
    question: &Question<'_>,
) -> Shotgun {
    let mut tally = Tally { details: samples.details.len() as u64, ..Tally::default() };
    let mut truths = samples.paths.iter();
    let judged = |fragment: &Fragment<'_>| tally.judge(fragment, code, truths.next());
    let all = samples.signatures.iter();
    let (ends, assembler) = time::<L>(all, &samples.details, code, question, judged);
    (tally.instructions, tally.inferred) = assembler.inferred();
    tally.lost_edges = assembler.lost();
    let part = |k: usize| {
        let details: Vec<_> = samples.details.iter().skip(k).step_by(PARTS).cloned().collect();
        let some = samples.signatures.iter().step_by(PARTS);
        time::<L>(some, &details, code, question, |_| {}).0.pop().unwrap_or_default()
    };
    let parts = (0..PARTS).map(part).collect();
    let sets = question.sets.iter().copied().take(L).collect();
    Shotgun { tally, sets, batches: batches(&ends), parts }
}

/// The cycles of each set at the end of every consistent fragment.
fn time<'a, const L: usize>(
    signatures: impl Iterator<Item = &'a SignatureSample>,
    details: &[DetailedSample<Labels>],
    code: &CodeBook,
    question: &Question<'_>,
    mut judge: impl FnMut(&Fragment<'_>),
) -> (Vec<Vec<f64>>, Assembler) {
    let mut database = Database::new(details, code, question.seed);
    let mut assembler = Assembler::new(question.fixed, question.defaults);
    let mut lanes: Lanes<L> = Lanes::new(question.fixed, question.sets, question.arbitration);
    let mut ends = Vec::new();
    for signature in signatures {
        let fragment = walk(signature, code, &mut database);
        judge(&fragment);
        if fragment.is_consistent() {
            assembler.add(&fragment, signature, code, |step| lanes.step(step));
            ends.push(lanes.times().into_iter().map(|(_, time)| time).collect());
        }
    }
    (ends, assembler)
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
    /// With the fragments of another process, of which the same was asked.
    #[must_use]
    pub fn joined(mut self, other: Shotgun) -> Shotgun {
        self.tally.merge(&other.tally);
        self.batches.extend(other.batches);
        for (mine, theirs) in self.parts.iter_mut().zip(&other.parts) {
            mine.resize(mine.len().max(theirs.len()), 0.0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self
    }

    /// The cycles of every set, all fragments together.
    pub fn lattice(&self) -> Lattice {
        let sum = |k: usize| self.batches.iter().filter_map(|batch| batch.get(k)).sum();
        Lattice::new(self.sets.iter().enumerate().map(|(k, &set)| (set, sum(k))))
    }

    /// What a set adds to what its parts explain, as a share of the time. None if a part was not
    /// evaluated or there are fewer than two fragments.
    pub fn icost_share(&self, set: Categories) -> Option<Estimate> {
        self.share(|lattice| lattice.icost(set))
    }

    /// What idealising a set saves, as a share of the time.
    pub fn cost_share(&self, set: Categories) -> Option<Estimate> {
        self.share(|lattice| lattice.cost(set))
    }

    /// Cycles an instruction.
    pub fn cycles_per_instruction(&self) -> Option<f64> {
        let cycles = self.lattice().time(Categories::NONE)?;
        (self.tally.instructions > 0).then(|| cycles / self.tally.instructions as f64)
    }

    fn share(&self, saved: impl Fn(&Lattice) -> Option<f64>) -> Option<Estimate> {
        let lattice =
            |times: &Vec<f64>| Lattice::new(self.sets.iter().copied().zip(times.iter().copied()));
        let both = |times: &Vec<f64>| {
            let lattice = lattice(times);
            Some((saved(&lattice)?, lattice.time(Categories::NONE)?))
        };
        let pairs: Vec<(f64, f64)> = self.batches.iter().map(both).collect::<Option<_>>()?;
        let (saved, taken) =
            pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        let share = (taken > 0.0).then(|| saved / taken)?;
        // How far each batch is from the common share, in units of a batch's time.
        let each = taken / pairs.len() as f64;
        let off: Vec<f64> = pairs.iter().map(|pair| (pair.0 - share * pair.1) / each).collect();
        let fragments = Estimate { value: share, ..mean(&off).ok()? };
        let ratio = |(saved, taken): (f64, f64)| (taken > 0.0).then(|| saved / taken);
        // A part may hold no fragment together; then fewer say what is left open.
        let shares: Vec<f64> =
            self.parts.iter().filter_map(|part| both(part).and_then(ratio)).collect();
        // A fifth leaves five times the variance open, and the mean of five takes it back.
        let details = Estimate { value: 0.0, ..mean(&shares).ok()? };
        Some(fragments.plus(details))
    }
}
