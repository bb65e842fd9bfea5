//! A procedure's code as the modelled core reads it: pieces that run straight through.
//!
//! ```text
//! block   a  b  call  c  d  jne          a call that comes back does not end a block, but what
//! pieces  [a b call]  [c d jne]          follows it finds the core as the callee left it
//! ```

use std::ops::Range;

use image::{CodePart, Flow, FlowGraph};
use model::machine::{Class, Machine};
use model::program::Kind;
use model::schedule::Scheduler;
use model::stream::{Code, StaticBlock};

/// What an instruction does, as far as stalls care.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Work {
    pub(crate) is_load: bool,
    pub(crate) is_store: bool,
    /// Fences, locked operations, microcode.
    pub(crate) is_serial: bool,
    pub(crate) is_long_integer: bool,
    pub(crate) is_float: bool,
    /// Cycles from issue to result of its slowest micro-ops, one behind the other, when every
    /// access hits.
    pub(crate) latency_cycles: u32,
    /// Cycles for which it takes its unit.
    pub(crate) busy_cycles: u32,
    /// Micro-ops.
    pub(crate) ops: u8,
}

/// Instructions between two places where control may come from elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) block: usize,
    /// Steps of the graph.
    pub(crate) steps: Range<usize>,
    pub(crate) code: StaticBlock,
}

/// A procedure, cut and decoded.
#[derive(Clone, Debug)]
pub(crate) struct Pieces {
    /// By block, in order.
    pub(crate) pieces: Vec<Piece>,
    /// The first piece of each block.
    pub(crate) first_of: Vec<usize>,
    /// By step of the graph; those of no block have none.
    pub(crate) work: Vec<Work>,
}

impl Pieces {
    /// Cuts a procedure, and lets the scheduler take its pieces, in order.
    pub(crate) fn cut(
        graph: &FlowGraph,
        parts: &[CodePart<'_>],
        machine: &Machine,
        scheduler: &mut Scheduler,
    ) -> Pieces {
        let mut pieces = Vec::new();
        let mut first_of = Vec::with_capacity(graph.blocks.len());
        for (block, held) in graph.blocks.iter().enumerate() {
            first_of.push(pieces.len());
            let mut first = held.first;
            for step in held.first..held.end {
                let is_call = matches!(graph.steps[step].flow, Flow::Call | Flow::IndirectCall);
                if is_call || step + 1 == held.end {
                    let steps = first..step + 1;
                    let code = steps.clone().map(|step| code(graph, parts, step)).collect();
                    pieces.push(Piece { block, steps, code: StaticBlock { instructions: code } });
                    first = step + 1;
                }
            }
        }
        scheduler.take(pieces.iter().map(|piece| &piece.code));
        let work = work(graph, &pieces, machine, scheduler);
        Pieces { pieces, first_of, work }
    }

    /// Which is the last piece of a block.
    pub(crate) fn last_of(&self, block: usize) -> Option<usize> {
        let behind = self.first_of.get(block + 1).copied().unwrap_or(self.pieces.len());
        let last = behind.checked_sub(1)?;
        self.pieces.get(last).filter(|piece| piece.block == block).map(|_| last)
    }

    /// The pieces of a block.
    pub(crate) fn of(&self, block: usize) -> &[Piece] {
        let first = self.first_of.get(block).copied().unwrap_or(0);
        let behind = self.first_of.get(block + 1).copied().unwrap_or(self.pieces.len());
        self.pieces.get(first..behind).unwrap_or_default()
    }
}

fn code(graph: &FlowGraph, parts: &[CodePart<'_>], step: usize) -> Code {
    let step = graph.steps[step];
    let part = parts.iter().find(|part| {
        let at = step.address.checked_sub(part.address);
        at.is_some_and(|at| at < part.code.len() as u64)
    });
    let found = part.and_then(|part| {
        let at = (step.address - part.address) as usize;
        part.code.get(at..at + usize::from(step.len_bytes))
    });
    let mut bytes = [0; 15];
    // What is not in the parts given is read as a no-op of the right length.
    let found = found.unwrap_or(&[0x90]);
    bytes.iter_mut().zip(found).for_each(|(to, from)| *to = *from);
    Code { pc: step.address, bytes, len: step.len_bytes }
}

fn work(
    graph: &FlowGraph,
    pieces: &[Piece],
    machine: &Machine,
    scheduler: &Scheduler,
) -> Vec<Work> {
    let program = scheduler.program();
    let hit = machine.caches.l1d.latency_cycles;
    let mut work = vec![Work::default(); graph.steps.len()];
    for (k, piece) in pieces.iter().enumerate() {
        for (instruction, step) in scheduler.instructions(k).iter().zip(piece.steps.clone()) {
            let mut sum = Work::default();
            for op in program.ops_of(instruction) {
                let is_load = op.kind == Kind::Load;
                sum.is_load |= is_load;
                sum.is_store |= matches!(op.kind, Kind::StoreAddress | Kind::StoreData);
                sum.is_serial |= matches!(op.class, Class::Fence | Class::Microcode);
                let is_long = matches!(op.class, Class::Mul | Class::Div32 | Class::Div64);
                sum.is_long_integer |= is_long;
                sum.is_float |= op.class >= Class::VecStoreData
                    && !matches!(op.class, Class::Fence | Class::Microcode);
                sum.latency_cycles += u32::from(op.latency) + if is_load { hit } else { 0 };
                sum.busy_cycles = sum.busy_cycles.max(u32::from(op.busy));
                sum.ops += 1;
            }
            work[step] = sum;
        }
    }
    work
}
