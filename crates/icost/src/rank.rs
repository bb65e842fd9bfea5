//! Which static instructions are worth asking about.
//!
//! What an instruction costs is known only after it was idealised, and there are too many to try
//! them all. The cycles on its own edges, whether they were hidden or not, say which could cost
//! anything at all: a label bounds what dropping it saves.

use std::collections::HashMap;

use crate::{Category, Step};

/// Cycles on the edges of each instruction, by what they were for.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    cycles: HashMap<(u32, Category), u64>,
    last: u32,
}

impl Weights {
    /// Of these micro-ops, in order.
    pub fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Weights {
        let mut weights = Weights::default();
        steps.into_iter().for_each(|step| weights.add(step));
        weights
    }

    fn add(&mut self, step: &Step) {
        let own = step.instruction;
        for (category, cycles) in [
            (Category::Dmiss, step.miss + step.translation),
            (Category::Lgalu, step.long),
            (Category::Dl1, step.hit),
            (Category::Shalu, step.short),
            (Category::Imiss, step.code + step.code_translation),
        ] {
            self.put(own, category, cycles);
        }
        // The fault is the branch's, which is the instruction before.
        self.put(self.last, Category::Bmisp, step.redirect.1 + step.resteer);
        self.last = own;
    }

    fn put(&mut self, instruction: u32, category: Category, cycles: u32) {
        if cycles > 0 {
            *self.cycles.entry((instruction, category)).or_default() += u64::from(cycles);
        }
    }

    /// The heaviest parts of instructions, heaviest first.
    pub fn heaviest(&self, count: usize) -> Vec<(u32, Category)> {
        let mut all: Vec<_> = self.cycles.iter().map(|(&part, &cycles)| (cycles, part)).collect();
        all.sort_by_key(|&(cycles, part)| (std::cmp::Reverse(cycles), part));
        all.into_iter().take(count).map(|(_, part)| part).collect()
    }

    /// All cycles of each instruction.
    pub fn by_instruction(&self) -> HashMap<u32, u64> {
        let mut sums = HashMap::new();
        for (&(instruction, _), &cycles) in &self.cycles {
            *sums.entry(instruction).or_default() += cycles;
        }
        sums
    }
}
