//! Detailed samples, looked up by pc and by the bits around them.

use std::collections::HashMap;

use metrology::Draws;
use model::monitor::{AROUND, DetailedSample, Surroundings};

use super::Labels;

/// All detailed samples of a program.
#[derive(Debug)]
pub struct Database<'a> {
    samples: &'a [DetailedSample<Labels>],
    by_pc: HashMap<u64, Entries>,
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

impl<'a> Database<'a> {
    /// Orders samples for looking up. Where several match equally well, the seed decides.
    pub fn new(samples: &'a [DetailedSample<Labels>], seed: u64) -> Database<'a> {
        let mut by_pc: HashMap<u64, Entries> = HashMap::new();
        for (number, sample) in samples.iter().enumerate() {
            let entries = by_pc.entry(sample.pc).or_default();
            let next = entries.bits.len();
            let place = *entries.places.entry(sample.around).or_insert(next);
            if place == next {
                entries.bits.push((sample.around, Vec::new()));
            }
            if let Some((_, list)) = entries.bits.get_mut(place) {
                list.push(number as u32);
            }
        }
        Database { samples, by_pc, draws: Draws::new(seed), best: Vec::new() }
    }

    /// The sample of a pc with the most identical bits; one of them by lot, since taking the first
    /// would give its labels to every run of the instruction.
    ///
    /// Samples whose own two bits are the same go before all others: a load that missed is not
    /// labelled by one that did not, whatever surrounds it.
    pub fn closest(
        &mut self,
        pc: u64,
        around: Surroundings,
        missing: usize,
    ) -> Option<&'a DetailedSample<Labels>> {
        let entries = self.by_pc.get(&pc)?;
        self.best.clear();
        let exact = entries.places.get(&around).filter(|_| missing == 0);
        if let Some((_, list)) = exact.and_then(|&place| entries.bits.get(place)) {
            self.best.extend_from_slice(list);
        } else {
            let mut most = 0;
            for (bits, list) in &entries.bits {
                let score = closeness(*bits, around, missing);
                if score > most {
                    most = score;
                    self.best.clear();
                }
                if score == most {
                    self.best.extend_from_slice(list);
                }
            }
        }
        let number = *self.best.get(self.draws.below(self.best.len()))?;
        self.samples.get(number as usize)
    }
}

/// More than all bits together.
const OWN: u32 = 64;

fn closeness(one: Surroundings, other: Surroundings, missing: usize) -> u32 {
    let own = u32::from(one.back(AROUND) == other.back(AROUND));
    OWN * own + one.same(other, missing)
}
