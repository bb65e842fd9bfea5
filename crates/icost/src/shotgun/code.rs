//! The program's code, looked up by address.

use std::collections::HashMap;

use model::core::Ideal;
use model::machine::Machine;
use model::program::{Op, Program, StaticInstruction};
use model::stream::{BlockId, StaticBlock};
use model::uop::Flow;

/// Every instruction that is known, decoded once.
#[derive(Clone, Debug)]
pub struct CodeBook {
    program: Program,
    places: HashMap<u64, u32>,
    blocks: Vec<StaticBlock>,
    /// Where stretches of code begin, and what stands behind calls.
    entries: Vec<u64>,
    behind_calls: Vec<u64>,
    /// Bytes of a line of code, as a shift.
    line_shift: u32,
}

/// An instruction as the code tells it.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Its place among all that are known.
    pub place: u32,
    /// Its address, length and flow.
    pub instruction: &'a StaticInstruction,
    /// Its micro-ops.
    pub ops: &'a [Op],
}

impl CodeBook {
    /// An empty one, for a machine.
    pub fn new(machine: &Machine) -> CodeBook {
        CodeBook {
            program: Program::new(machine, Ideal::NONE),
            places: HashMap::new(),
            blocks: Vec::new(),
            entries: Vec::new(),
            behind_calls: Vec::new(),
            line_shift: machine.caches.l1i.line_bytes.trailing_zeros(),
        }
    }

    /// Adds the instructions of a block. Those known already stay as they are.
    pub fn add(&mut self, block: &StaticBlock) {
        if block.instructions.iter().all(|code| self.places.contains_key(&code.pc)) {
            return;
        }
        let first = self.program.instructions.len() as u32;
        self.program.translate(BlockId(self.blocks.len() as u32), block);
        self.blocks.push(block.clone());
        if let Some(start) = block.instructions.first() {
            self.entries.push(start.pc);
        }
        for (k, code) in block.instructions.iter().enumerate() {
            if self.places.contains_key(&code.pc) {
                continue;
            }
            let place = first + k as u32;
            self.places.insert(code.pc, place);
            let instruction = self.program.instructions.get(place as usize);
            let calls = |flow: Flow| matches!(flow, Flow::Call | Flow::IndirectCall);
            self.behind_calls
                .extend(instruction.filter(|i| calls(i.flow)).map(StaticInstruction::next));
        }
    }

    /// The instruction at an address.
    pub fn find(&self, pc: u64) -> Option<Known<'_>> {
        self.at(*self.places.get(&pc)?)
    }

    /// The instruction at a place.
    pub fn at(&self, place: u32) -> Option<Known<'_>> {
        let instruction = self.program.instructions.get(place as usize)?;
        Some(Known { place, instruction, ops: self.program.ops_of(instruction) })
    }

    /// Whether an instruction follows another within the line of code that this one ends in: then
    /// its fetch cannot have missed.
    pub(super) fn is_in_line(&self, before: &Known<'_>, known: &Known<'_>) -> bool {
        let line = |known: &Known<'_>| known.instruction.next().wrapping_sub(1) >> self.line_shift;
        known.instruction.pc == before.instruction.next() && line(before) == line(known)
    }

    /// Where blocks begin.
    pub fn entries(&self) -> &[u64] {
        &self.entries
    }

    /// The addresses behind calls, which returns go to.
    pub fn behind_calls(&self) -> &[u64] {
        &self.behind_calls
    }

    /// The blocks that were added and brought something new, in order.
    pub fn blocks(&self) -> &[StaticBlock] {
        &self.blocks
    }

    /// How many addresses are known.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}
