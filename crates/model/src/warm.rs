//! Warming: the program runs past the units without being timed.
//!
//! Caches, translation and predictors see every access and branch, so that a core started from
//! them finds them as if it had been timed all along. Nothing else is kept.

use crate::core::{Accesses, Ideal};
use crate::machine::Machine;
use crate::program::Program;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::units::branch::{Branch, Predictor};
use crate::units::memory::Memory;

/// What a block needs for warming.
#[derive(Clone, Copy, Debug)]
struct Outline {
    /// Its first and last byte.
    first: u64,
    last: u64,
    count: u16,
    /// The place of its last instruction.
    end: u32,
}

/// The units of one thread, and what they need of the program.
#[derive(Clone, Debug)]
pub struct Warmer {
    program: Program,
    outlines: Vec<Outline>,
    memory: Memory,
    predictor: Predictor,
    open: Option<u32>,
    line: u64,
    instructions: u64,
}

impl Warmer {
    /// Cold units of a machine.
    pub fn new(machine: &Machine) -> Warmer {
        let memory = Memory::new(machine);
        let predictor = Predictor::new(&machine.branch);
        Warmer::from_units(machine, memory, predictor)
    }

    /// Warms units on.
    pub fn from_units(machine: &Machine, memory: Memory, predictor: Predictor) -> Warmer {
        Warmer {
            program: Program::new(machine, Ideal::NONE),
            outlines: Vec::new(),
            memory,
            predictor,
            open: None,
            line: u64::MAX,
            instructions: 0,
        }
    }

    /// The warmed units.
    pub fn into_units(self) -> (Memory, Predictor) {
        (self.memory, self.predictor)
    }

    /// Instructions that have run past.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// The units, to be exchanged with a core's.
    pub(crate) fn units_mut(&mut self) -> (&mut Memory, &mut Predictor) {
        (&mut self.memory, &mut self.predictor)
    }

    /// Learns where the open branch went.
    #[inline]
    pub(crate) fn settle(&mut self, next: u64) {
        let Some(place) = self.open.take() else { return };
        let instruction = &self.program.instructions[place as usize];
        let after = instruction.next();
        let branch = Branch {
            pc: instruction.pc,
            flow: instruction.flow,
            taken: next != after || instruction.target == next,
            target: next,
            next: after,
        };
        self.predictor.observe(&branch);
    }

    #[inline]
    fn fetch(&mut self, first: u64, last: u64) {
        let shift = self.memory.line_shift();
        let mut line = first >> shift;
        loop {
            if line != self.line {
                self.line = line;
                self.memory.code::<false>(line << shift, 0);
            }
            if line >= last >> shift {
                return;
            }
            line += 1;
        }
    }
}

impl CoreListener for Warmer {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.program.translate(id, block);
        let (Some(first), Some(last)) = (block.instructions.first(), block.instructions.last())
        else {
            return;
        };
        let place = id.0 as usize;
        let outline = Outline {
            first: first.pc,
            last: last.pc.wrapping_add(u64::from(last.len).max(1) - 1).max(first.pc),
            count: block.instructions.len() as u16,
            end: self.program.instructions.len() as u32 - 1,
        };
        if self.outlines.len() <= place {
            self.outlines.resize(place + 1, Outline { first: 0, last: 0, count: 0, end: 0 });
        }
        self.outlines[place] = outline;
    }

    #[inline]
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(&outline) = self.outlines.get(id.0 as usize) else { return };
        if ran == 0 || outline.count == 0 {
            return;
        }
        self.settle(outline.first);
        // A jump within 4 KiB at most: blocks end at pages, and strays must not run on for ever.
        self.fetch(outline.first, outline.last.min(outline.first.saturating_add(4096)));
        let base = outline.end + 1 - u32::from(outline.count);
        let mut left = accesses;
        while let Some(access) = left.first() {
            let place = access.instruction;
            let mut mine = Accesses::of(&mut left, place);
            let pc = self.program.instructions.get((base + u32::from(place)) as usize);
            let pc = pc.map_or(outline.first, |instruction| instruction.pc);
            while let Some(piece) = mine.next(false) {
                if !self.memory.plain_load::<false>(pc, piece.address, piece.size, 0) {
                    self.memory.data::<false>(pc, piece.address, piece.size, false, 0);
                }
            }
            while let Some(piece) = mine.next(true) {
                self.memory.data::<false>(pc, piece.address, piece.size, true, 0);
            }
        }
        let ran = ran.min(outline.count);
        self.instructions += u64::from(ran);
        let ends = self.program.instructions.get(outline.end as usize);
        if ran == outline.count && ends.is_some_and(|last| last.flow.is_branch()) {
            self.open = Some(outline.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Settings;
    use crate::event::Event;
    use crate::fast::FastCore;
    use crate::testing::*;

    fn sweep(core: &mut impl CoreListener, lines: u64) {
        for k in 0..lines {
            core.executed(BlockId(0), 2, &[load(0, k * 64)]);
        }
    }

    #[test]
    fn a_core_started_from_warm_units_misses_nothing_that_fits() {
        let zen4 = machine("zen4", &[]);
        let blocks = [block(0x1000, &[LOAD, &[0xeb, 0xfb]])];
        let mut warmer = Warmer::new(&zen4);
        translate(&mut warmer, &blocks);
        sweep(&mut warmer, 400);
        assert_eq!(warmer.instructions(), 800);
        let (memory, predictor) = warmer.into_units();
        let mut warm = FastCore::new(&zen4, Settings::default()).with_units(memory, predictor);
        let mut cold = FastCore::new(&zen4, Settings::default());
        for core in [&mut warm, &mut cold] {
            translate(core, &blocks);
            sweep(core, 400);
            core.finish();
        }
        let misses =
            [Event::L1iMisses, Event::DtlbLoadMisses, Event::L1dLoadMisses, Event::Resteers];
        for event in misses {
            assert_eq!(warm.counts()[event], 0, "{}", event.name());
            assert!(cold.counts()[event] > 0, "{}", event.name());
        }
    }

    #[test]
    fn strays_do_no_harm() {
        let mut warmer = Warmer::new(&machine("zen4", &[]));
        warmer.executed(BlockId(3), 1, &[]);
        translate(&mut warmer, &[block(u64::MAX - 5, &[LOAD, NOP])]);
        warmer.executed(BlockId(0), 9, &[load(0, u64::MAX), load(500, 1), store(2, 7)]);
        assert_eq!(warmer.instructions(), 2);
    }
}
