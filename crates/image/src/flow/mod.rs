//! The blocks of a procedure and the ways between them.
//!
//! ```text
//! bytes ─► steps (linear, then wherever a branch lands) ─► leaders ─► blocks ─► edges
//!                                                             ▲
//!                                     jump tables, read from the image's data
//! ```
//!
//! What cannot be known is said: an indirect jump whose table was not found is `unresolved`, and
//! with it the graph has *missing edges*, so that nobody deduces a frequency from a flow that may
//! not balance. Code that nothing in the procedure reaches (landing pads of exceptions, what an
//! unresolved jump leads to) becomes a further entry.

mod blocks;
mod callees;
mod step;
mod table;
#[cfg(test)]
mod tests;

pub use callees::Callees;
pub use step::Step;

use crate::disassemble::Flow;

/// A stretch of a procedure's code: most have one, a procedure whose unlikely part was moved away
/// has two.
#[derive(Clone, Copy, Debug)]
pub struct CodePart<'a> {
    /// The virtual address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub code: &'a [u8],
}

/// What the graph asks about the rest of the image.
pub trait Surroundings {
    /// The bytes at a virtual address, at least `len` of them: a jump table.
    fn data(&self, address: u64, len: usize) -> Option<&[u8]>;
    /// Whether a call to this address comes back.
    fn returns(&self, address: u64) -> bool;
}

/// Steps that always run together: entered at the first, left after the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The first of its steps.
    pub first: usize,
    /// One past the last of its steps.
    pub end: usize,
    /// How it leaves the procedure; None where it only leads to other blocks.
    pub exit: Option<Exit>,
}

/// A way out of a procedure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// To the caller.
    Return,
    /// A jump to another procedure, which returns in this one's stead.
    TailCall,
    /// A call that does not come back.
    NoReturn,
    /// An instruction that faults, or the end of the known code.
    Trap,
    /// An indirect jump that could lead anywhere.
    Unknown,
}

/// How control goes from one block to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum EdgeKind {
    /// To the next instruction.
    Fall,
    /// By a direct branch.
    Taken,
    /// Through a jump table.
    Switch,
}

/// A way between two blocks of the same procedure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// The block that is left.
    pub from: usize,
    /// The block that is entered.
    pub to: usize,
    /// How.
    pub kind: EdgeKind,
}

/// A procedure's control flow.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowGraph {
    /// All instructions, by address.
    pub steps: Vec<Step>,
    /// All blocks, by address; the entry is the one that holds the procedure's first address.
    pub blocks: Vec<Block>,
    /// Sorted, without repetition.
    pub edges: Vec<Edge>,
    /// Blocks where control comes from outside: the procedure's start first.
    pub entries: Vec<usize>,
    /// Steps that jump where we could not find out.
    pub unresolved: Vec<usize>,
    /// Branches into the middle of another instruction: the code overlaps itself.
    pub overlaps: usize,
}

impl FlowGraph {
    /// Reads the code of a procedure; the first part holds its entry.
    ///
    /// Takes time linear in the code, whatever the bytes are.
    pub fn build(parts: &[CodePart<'_>], around: &dyn Surroundings) -> FlowGraph {
        let (decoded, overlaps) = step::decode(parts);
        let tables = table::resolve_all(&decoded, parts, around);
        let start = parts.first().map_or(0, |part| part.address);
        if decoded.is_empty() {
            return FlowGraph::default();
        }
        blocks::assemble(decoded, tables, overlaps, start, around)
    }

    /// Whether control may go where no edge leads.
    pub fn has_missing_edges(&self) -> bool {
        !self.unresolved.is_empty() || self.overlaps > 0
    }

    /// The block that holds an address.
    pub fn block_at(&self, address: u64) -> Option<usize> {
        let step = self.step_at(address)?;
        let block = self.blocks.partition_point(|block| block.first <= step).checked_sub(1)?;
        (step < self.blocks.get(block)?.end).then_some(block)
    }

    /// The step that begins at an address.
    pub fn step_at(&self, address: u64) -> Option<usize> {
        self.steps.binary_search_by_key(&address, |step| step.address).ok()
    }

    /// Whether a block ends with a call that comes back.
    pub fn ends_in_call(&self, block: usize) -> bool {
        let last = self.blocks.get(block).and_then(|b| self.steps.get(b.end.checked_sub(1)?));
        last.is_some_and(|step| matches!(step.flow, Flow::Call | Flow::IndirectCall))
    }
}
