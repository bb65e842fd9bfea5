//! Detailed samples, looked up by pc and by the bits around them.

use std::collections::HashMap;

use metrology::Draws;
use model::machine::Class;
use model::monitor::{AROUND, Bits, DetailedSample, Surroundings};

use super::Labels;
use super::code::{CodeBook, Known};

/// All detailed samples of a program.
#[derive(Debug)]
pub struct Database<'a> {
    samples: &'a [DetailedSample<Labels>],
    by_pc: HashMap<u64, Entries>,
    /// Of all instructions of one kind with the same two bits.
    by_kind: HashMap<(Kind, Bits), Vec<u32>>,
    draws: Draws,
    /// Samples that share the best bits, kept from look to look to save allocating.
    best: Vec<u32>,
}

/// The samples of one pc, those with the same bits together.
#[derive(Clone, Debug, Default)]
struct Entries {
    bits: Vec<(Surroundings, Vec<u32>)>,
    places: HashMap<Surroundings, usize>,
}

/// Instructions are of one kind if their micro-ops are.
type Kind = Vec<Class>;

/// A detailed sample found for an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Chosen<'a> {
    /// The sample.
    pub sample: &'a DetailedSample<Labels>,
    /// Whether it is of this very instruction, rather than of another one of its kind.
    pub is_own: bool,
}

impl<'a> Database<'a> {
    /// Orders samples for looking up. Where several match equally well, the seed decides.
    pub fn new(samples: &'a [DetailedSample<Labels>], code: &CodeBook, seed: u64) -> Database<'a> {
        let mut by_pc: HashMap<u64, Entries> = HashMap::new();
        let mut by_kind: HashMap<(Kind, Bits), Vec<u32>> = HashMap::new();
        for (number, sample) in samples.iter().enumerate() {
            // What does not fit the code speaks of other code.
            let Some(known) = code.find(sample.pc) else { continue };
            if known.ops.len() != sample.ops.len() {
                continue;
            }
            by_pc.entry(sample.pc).or_default().add(sample.around, number as u32);
            let key = (kind(&known), sample.around.back(AROUND));
            by_kind.entry(key).or_default().push(number as u32);
        }
        Database { samples, by_pc, by_kind, draws: Draws::new(seed), best: Vec::new() }
    }

    /// The sample of an instruction with the most identical bits; one of them by lot, since taking
    /// the first would give its labels to every run of the instruction.
    ///
    /// Samples whose own two bits differ are left out: a load that missed is not labelled by one
    /// that did not, whatever surrounds it. If there is no other, one of the same kind with the
    /// same two bits stands in, whatever its pc; and only then one whose bits differ.
    pub fn closest(
        &mut self,
        known: &Known<'_>,
        around: Surroundings,
        missing: usize,
    ) -> Option<Chosen<'a>> {
        let own = around.back(AROUND);
        self.best.clear();
        let entries = self.by_pc.get(&known.instruction.pc);
        if let Some(entries) = entries {
            entries.closest(around, missing, |bits| bits.back(AROUND) == own, &mut self.best);
        }
        if let Some(sample) = self.draw() {
            return Some(Chosen { sample, is_own: true });
        }
        if let Some(list) = self.by_kind.get(&(kind(known), own)) {
            self.best.extend_from_slice(list);
        }
        if let Some(sample) = self.draw() {
            return Some(Chosen { sample, is_own: false });
        }
        self.by_pc.get(&known.instruction.pc)?.closest(around, missing, |_| true, &mut self.best);
        self.draw().map(|sample| Chosen { sample, is_own: true })
    }

    /// How many bits the most alike of an instruction's samples shares; none if it has none.
    pub fn alike(&self, pc: u64, around: Surroundings, missing: usize) -> Option<u32> {
        let entries = self.by_pc.get(&pc)?;
        entries.bits.iter().map(|(bits, _)| bits.same(around, missing)).max()
    }

    /// Where a branch went whenever it was seen, and how many bits of a sample that went there are
    /// the same: first as in one of the closest samples, by lot, then all other targets, those with
    /// closer bits first.
    pub fn targets(&mut self, pc: u64, around: Surroundings, missing: usize) -> Vec<(u64, u32)> {
        let Some(entries) = self.by_pc.get(&pc) else { return Vec::new() };
        self.best.clear();
        entries.closest(around, missing, |_| true, &mut self.best);
        let mut best: HashMap<u64, u32> = HashMap::new();
        for (bits, list) in &entries.bits {
            let same = bits.same(around, missing);
            let seen = list.iter().filter_map(|&number| self.samples.get(number as usize));
            for target in seen.filter_map(|sample| sample.target) {
                let most = best.entry(target).or_default();
                *most = same.max(*most);
            }
        }
        let first = self.draw().and_then(|sample| sample.target);
        let mut targets: Vec<(u64, u32)> = best.into_iter().collect();
        targets.sort_by_key(|&(target, same)| {
            (Some(target) != first, std::cmp::Reverse(same), target)
        });
        targets
    }

    fn draw(&mut self) -> Option<&'a DetailedSample<Labels>> {
        let number = *self.best.get(self.draws.below(self.best.len()))?;
        self.samples.get(number as usize)
    }
}

fn kind(known: &Known<'_>) -> Kind {
    known.ops.iter().map(|op| op.class).collect()
}

impl Entries {
    fn add(&mut self, around: Surroundings, number: u32) {
        let next = self.bits.len();
        let place = *self.places.entry(around).or_insert(next);
        if place == next {
            self.bits.push((around, Vec::new()));
        }
        if let Some((_, list)) = self.bits.get_mut(place) {
            list.push(number);
        }
    }

    /// Those with the most identical bits among the ones that may be taken.
    fn closest(
        &self,
        around: Surroundings,
        missing: usize,
        may: impl Fn(Surroundings) -> bool,
        best: &mut Vec<u32>,
    ) {
        let exact = self.places.get(&around).filter(|_| missing == 0);
        if let Some((_, list)) = exact.and_then(|&place| self.bits.get(place)) {
            best.extend_from_slice(list);
            return;
        }
        let mut most = 0;
        for (bits, list) in self.bits.iter().filter(|(bits, _)| may(*bits)) {
            let same = bits.same(around, missing);
            if same > most {
                most = same;
                best.clear();
            }
            if same == most {
                best.extend_from_slice(list);
            }
        }
    }
}
