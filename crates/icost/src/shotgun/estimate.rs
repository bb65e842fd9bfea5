//! Costs from fragments, and how sure they are.
//!
//! Two things make a cost uncertain: which stretches of the program the signatures happened to
//! fall on, and which runs of an instruction the detailed samples did. The first shows from batch
//! to batch of fragments. The second shows when the same fragments are put together from a fifth
//! of the detailed samples, five times.

use std::collections::HashMap;

use model::monitor::{DetailedSample, Samples, SignatureSample};

use super::tally::Tally;
use super::{Assembler, CodeBook, Database, Defaults, Fragment, Labels, walk};
use crate::{Arbitration, Categories, Costs, Fixed, Lanes};

/// The machine and what is to be idealised on it.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The machine's numbers.
    pub fixed: Fixed,
    /// What is taken for granted where nothing was seen.
    pub defaults: Defaults,
    /// The sets to idealise, the empty one first: the program as it is.
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
            ends.push(in_order(question.sets, &lanes.times()));
        }
    }
    (ends, assembler)
}

/// Lanes stand in an order of their own.
fn in_order(sets: &[Categories], times: &[(Categories, f64)]) -> Vec<f64> {
    let times: HashMap<Categories, f64> = times.iter().copied().collect();
    sets.iter().map_while(|set| times.get(set).copied()).collect()
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

    /// What the sets cost, with both kinds of uncertainty in the ±.
    ///
    /// Batches differ by what signatures leave open. What detailed samples leave open is laid on
    /// top: the parts differ from their mean by amounts that add up to nothing, so that nothing
    /// moves but the spread. Scaled by √(batches ÷ parts), they spread the mean of the batches by
    /// as much as they spread their own.
    pub fn costs(&self) -> Costs {
        let whole: Vec<&Vec<f64>> = self.parts.iter().filter(|part| !part.is_empty()).collect();
        let (batches, parts) = (self.batches.len() as f64, whole.len() as f64);
        let sum = |k: usize| self.batches.iter().filter_map(|batch| batch.get(k)).sum::<f64>();
        let mean = |k: usize| whole.iter().filter_map(|part| part.get(k)).sum::<f64>() / parts;
        // Batches beyond the last whole round of parts stay as they are.
        let rounds = self.batches.len() / whole.len().max(1) * whole.len();
        let spread = |place: usize, k: usize| {
            let part = whole.get(place % whole.len().max(1)).filter(|_| place < rounds);
            let Some(&of_part) = part.and_then(|part| part.get(k)) else { return 0.0 };
            // A part covers other time than a batch does.
            let scale = sum(0) / batches / mean(0).max(1.0);
            (batches / parts).sqrt() * scale * (of_part - mean(k))
        };
        let batch = |(place, times): (usize, &Vec<f64>)| {
            let times = self.sets.iter().zip(times).enumerate();
            times.map(|(k, (&set, time))| (set, time + spread(place, k))).collect()
        };
        let windows = self.batches.iter().enumerate().map(batch).collect();
        Costs::from_windows(windows, sum(0))
    }

    /// Cycles an instruction.
    pub fn cycles_per_instruction(&self) -> Option<f64> {
        let cycles: f64 = self.batches.iter().filter_map(|batch| batch.first()).sum();
        (self.tally.instructions > 0).then(|| cycles / self.tally.instructions as f64)
    }
}
