//! What became of the samples, and what the truth says of it.

use std::collections::BTreeMap;

use super::{CodeBook, Flaw, Fragment};

/// What became of the samples.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Signatures followed.
    pub signatures: u64,
    /// Detailed samples to choose from.
    pub details: u64,
    /// Fragments that hold together from the first instruction to the last.
    pub consistent: u64,
    /// Those of them whose first path did not, and another did.
    pub mended: u64,
    /// Fragments that hold together as far as they could be followed.
    pub cut: u64,
    /// Fragments discarded, by why.
    pub discarded: BTreeMap<Flaw, u64>,
    /// Instructions in fragments that were not discarded.
    pub instructions: u64,
    /// Those of them that no detailed sample of their own spoke of.
    pub inferred: u64,
    /// Edges whose other end was not in sight.
    pub lost_edges: u64,
    /// What the truth says, where it was kept.
    pub truth: Option<Truth>,
}

/// Fragments against what really happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Truth {
    /// Fragments that left the path which the program took, if only for a while.
    pub errant: u64,
    /// Those of them whose errant path was discarded.
    pub errant_discarded: u64,
}

impl Truth {
    /// The share of errant paths that were discarded; none if there were none.
    pub fn discarded_share(self) -> Option<f64> {
        (self.errant > 0).then(|| self.errant_discarded as f64 / self.errant as f64)
    }
}

impl Tally {
    /// Adds what became of another process's samples.
    pub fn merge(&mut self, other: &Tally) {
        self.signatures += other.signatures;
        self.details += other.details;
        self.consistent += other.consistent;
        self.mended += other.mended;
        self.cut += other.cut;
        for (&flaw, count) in &other.discarded {
            *self.discarded.entry(flaw).or_default() += count;
        }
        self.instructions += other.instructions;
        self.inferred += other.inferred;
        self.lost_edges += other.lost_edges;
        if let Some(theirs) = other.truth {
            let truth = self.truth.get_or_insert_default();
            truth.errant += theirs.errant;
            truth.errant_discarded += theirs.errant_discarded;
        }
    }

    /// Fragments that were discarded, whyever.
    pub fn discarded_count(&self) -> u64 {
        self.discarded.values().sum()
    }

    /// The share of fragments whose first path held together, as the paper counts them.
    pub fn consistent_share(&self) -> Option<f64> {
        let first = self.consistent - self.mended + self.cut;
        (self.signatures > 0).then(|| first as f64 / self.signatures as f64)
    }

    /// The share of instructions that no detailed sample spoke of.
    pub fn inferred_share(&self) -> Option<f64> {
        (self.instructions > 0).then(|| self.inferred as f64 / self.instructions as f64)
    }

    pub(super) fn judge(
        &mut self,
        fragment: &Fragment<'_>,
        code: &CodeBook,
        path: Option<&Vec<u64>>,
    ) {
        self.signatures += 1;
        match fragment.flaw {
            None => {
                self.consistent += 1;
                self.mended += u64::from(fragment.retries > 0);
            }
            Some(Flaw::NoTarget) => self.cut += 1,
            Some(flaw) => *self.discarded.entry(flaw).or_default() += 1,
        }
        let Some(path) = path else { return };
        let truth = self.truth.get_or_insert_default();
        let walked = fragment.places.iter().filter_map(|&place| code.at(place));
        let strayed = walked.zip(path).any(|(known, &pc)| known.instruction.pc != pc);
        let noticed = fragment.retries > 0 || !fragment.is_consistent();
        truth.errant += u64::from(strayed || noticed);
        let is_gone = !fragment.is_consistent() || !strayed;
        truth.errant_discarded += u64::from(noticed && is_gone);
    }
}
