//! The two kinds of samples.

use super::{Bits, Surroundings};

/// Instructions of a signature.
pub const LENGTH: usize = 1000;

/// Long and narrow: where a stretch of the program began, and two bits for each instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SignatureSample {
    /// The pc of the first.
    pub start: u64,
    /// The bits of the ten before it.
    pub before: Surroundings,
    /// The bits of each.
    pub bits: Vec<Bits>,
}

impl SignatureSample {
    /// The bits of the ten before instruction `place`, its own and the ten behind it, and how many
    /// of those are missing because the sample ends.
    pub fn around(&self, place: usize) -> (Surroundings, usize) {
        let end = place + super::AROUND + 1;
        let mut all = self.before;
        let from = end.saturating_sub(2 * super::AROUND + 1);
        let held = self.bits.get(from..end.min(self.bits.len())).unwrap_or_default();
        held.iter().for_each(|&bits| all.push(bits));
        let missing = end.saturating_sub(self.bits.len());
        (0..missing).for_each(|_| all.push(Bits::default()));
        (all, missing)
    }
}

/// Short and wide: all that was seen of one instruction, and the bits around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DetailedSample<D> {
    /// Its address.
    pub pc: u64,
    /// The bits of the ten before it, its own, and the ten after it.
    pub around: Surroundings,
    /// Where it went, if it is a branch whose bytes do not say.
    pub target: Option<u64>,
    /// What was seen of each of its micro-ops.
    pub ops: Vec<D>,
}

/// What a monitor has gathered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Samples<D> {
    /// In the order of time.
    pub signatures: Vec<SignatureSample>,
    /// In the order of time.
    pub details: Vec<DetailedSample<D>>,
    /// Instructions that went by.
    pub instructions: u64,
    /// Signatures that could not be finished.
    pub cut: u64,
    /// The pcs of each signature, where they were kept to check against.
    pub paths: Vec<Vec<u64>>,
}

impl<D> Default for Samples<D> {
    fn default() -> Samples<D> {
        Samples {
            signatures: Vec::new(),
            details: Vec::new(),
            instructions: 0,
            cut: 0,
            paths: Vec::new(),
        }
    }
}

impl<D> Samples<D> {
    /// Adds what another monitor gathered.
    pub fn merge(&mut self, other: Samples<D>) {
        self.signatures.extend(other.signatures);
        self.details.extend(other.details);
        self.instructions += other.instructions;
        self.cut += other.cut;
        self.paths.extend(other.paths);
    }
}
