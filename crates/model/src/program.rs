//! A program as a core keeps it: every static instruction once, with the machine's numbers in it.
//!
//! ```text
//! blocks        instructions             ops
//! [0] ------->  [0] pc len flow ------>  [0] sources targets latency ports
//! [1] --\       [1]             ------>  [1]
//!        \--->  [2]             --\      [2]
//! ```

use crate::core::{Ideal, ideal_latency};
use crate::decode;
use crate::event::{self, Event};
use crate::machine::{Class, Machine};
use crate::stream::{BlockId, StaticBlock};
use crate::uop::{DecodedBlock, Flow, Habits, Instruction, Uop};

/// What the window does with a micro-op besides executing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// Reads memory.
    Load,
    /// Computes where a store goes.
    StoreAddress,
    /// Brings what it writes.
    StoreData,
    /// Decides where to go on.
    Branch,
}

/// A micro-op with the machine's numbers.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Registers read, as places in a table of 64.
    pub sources: [u8; 4],
    /// Registers written.
    pub targets: [u8; 4],
    /// The ports that can execute it; 0 when it needs none.
    pub ports: u32,
    /// Cycles from issue to result; for loads on top of the cache's.
    pub latency: u16,
    /// Cycles for which its port is taken.
    pub busy: u16,
    /// Its class.
    pub class: Class,
    /// What else the window does with it.
    pub kind: Kind,
    /// The lane of its scheduler; 8 when it waits in none.
    pub scheduler: u8,
    /// Slots of the window that it takes, 0 or 1.
    pub slots: u8,
}

/// A static instruction.
#[derive(Clone, Copy, Debug)]
pub struct StaticInstruction {
    /// Its address.
    pub pc: u64,
    /// Where a direct branch goes; 0 otherwise.
    pub target: u64,
    /// The place of its first op.
    pub ops: u32,
    /// How many ops it has.
    pub op_count: u8,
    /// Its length in bytes.
    pub len: u8,
    /// Slots of the window that its ops take together.
    pub slots: u8,
    /// How many of the ops are loads.
    pub loads: u8,
    /// Whether any op reads or writes memory.
    pub has_memory: bool,
    /// How it may leave the straight line.
    pub flow: Flow,
    /// The line of code that holds its first byte.
    pub line: u64,
    /// Whether its last byte is in another line.
    pub crosses: bool,
    /// Whether it is a single micro-op that meets no memory and waits for none.
    pub is_simple: bool,
    /// Whether it is a single load.
    pub is_load: bool,
}

impl StaticInstruction {
    /// The address after it.
    pub fn next(&self) -> u64 {
        self.pc.wrapping_add(u64::from(self.len))
    }
}

/// A block: a stretch of the instructions, and what one run of it counts.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The place of its first instruction.
    pub first: u32,
    /// How many it has.
    pub count: u32,
    /// What one full run counts, by the events that depend on the code alone.
    pub counts: [u32; event::STATIC],
}

/// Everything translated so far.
#[derive(Clone, Debug)]
pub struct Program {
    /// By block id.
    pub blocks: Vec<Block>,
    /// All static instructions, block after block.
    pub instructions: Vec<StaticInstruction>,
    /// What one run of each instruction counts.
    pub counts: Vec<[u8; event::STATIC]>,
    /// All ops, instruction after instruction.
    pub ops: Vec<Op>,
    habits: Habits,
    classes: Vec<ClassNumbers>,
    line_shift: u32,
}

/// The lane of micro-ops that need no port.
const NO_SCHEDULER: usize = 8;

#[derive(Clone, Copy, Debug, Default)]
struct ClassNumbers {
    ports: u32,
    latency: u16,
    busy: u16,
    scheduler: u8,
}

impl Program {
    /// An empty program for a machine.
    pub fn new(machine: &Machine, ideal: Ideal) -> Program {
        Program {
            blocks: Vec::new(),
            instructions: Vec::new(),
            counts: Vec::new(),
            ops: Vec::new(),
            habits: Habits::of(machine),
            line_shift: machine.caches.l1i.line_bytes.trailing_zeros(),
            classes: Class::ALL.iter().map(|&class| numbers(machine, class, ideal)).collect(),
        }
    }

    /// Adds a block. Ids are dense; one that was skipped stays empty.
    pub fn translate(&mut self, id: BlockId, block: &StaticBlock) {
        let decoded = decode::decode(block, self.habits);
        self.add(id, &decoded);
    }

    /// Adds a block that is decoded already.
    pub fn add(&mut self, id: BlockId, decoded: &DecodedBlock) {
        let first = self.instructions.len() as u32;
        let mut counts = [0_u32; event::STATIC];
        for instruction in &decoded.instructions {
            let of_one = self.add_instruction(instruction);
            for (sum, one) in counts.iter_mut().zip(of_one) {
                *sum += u32::from(one);
            }
        }
        let empty = Block { first, count: 0, counts: [0; event::STATIC] };
        let place = id.0 as usize;
        if self.blocks.len() <= place {
            self.blocks.resize(place + 1, empty);
        }
        let count = decoded.instructions.len() as u32;
        self.blocks[place] = Block { first, count, counts };
    }

    /// Moves so many instructions from the first on to an address, and lets the last of them lead
    /// elsewhere.
    pub(crate) fn move_first(&mut self, count: usize, to: u64, target: u64) {
        let Some(moved) = self.instructions.get_mut(..count) else { return };
        let mut pc = to;
        for instruction in moved.iter_mut() {
            instruction.pc = pc;
            instruction.line = pc >> self.line_shift;
            pc = instruction.next();
            instruction.crosses = pc.wrapping_sub(1) >> self.line_shift != instruction.line;
        }
        if let Some(last) = moved.last_mut() {
            last.target = target;
        }
    }

    /// Forgets all that was translated but so many blocks, which lie one behind the other.
    pub(crate) fn keep_first(&mut self, blocks: usize) {
        self.blocks.truncate(blocks);
        let kept = self.blocks.last().map_or(0, |last| (last.first + last.count) as usize);
        let ops = self.instructions.get(kept).map(|behind| behind.ops as usize);
        self.ops.truncate(ops.unwrap_or(self.ops.len()));
        self.instructions.truncate(kept);
        self.counts.truncate(kept);
    }

    /// Forgets all that was translated.
    pub fn forget(&mut self) {
        self.blocks.clear();
        self.instructions.clear();
        self.counts.clear();
        self.ops.clear();
    }

    fn add_instruction(&mut self, instruction: &Instruction) -> [u8; event::STATIC] {
        let first = self.ops.len();
        let ops: Vec<Op> = instruction.uops.iter().map(|uop| self.op(uop)).collect();
        let has = |kind: Kind| ops.iter().filter(|op| op.kind == kind).count() as u8;
        let mut counts = event::static_counts(instruction);
        for op in ops.iter().filter(|op| op.ports != 0) {
            counts[Event::Issues as usize] += 1;
            counts[event::port_use(op.class) as usize] += 1;
        }
        let line = instruction.pc >> self.line_shift;
        let last_byte = instruction.pc.wrapping_add(u64::from(instruction.len)).wrapping_sub(1);
        self.instructions.push(StaticInstruction {
            pc: instruction.pc,
            target: instruction.target,
            ops: first as u32,
            op_count: ops.len() as u8,
            len: instruction.len,
            slots: ops.iter().map(|op| op.slots).sum(),
            loads: has(Kind::Load),
            has_memory: has(Kind::Load) + has(Kind::StoreAddress) > 0,
            flow: instruction.flow,
            line,
            crosses: last_byte >> self.line_shift != line,
            is_simple: match ops[..] {
                [op] => matches!(op.kind, Kind::Plain | Kind::Branch) && op.class != Class::Fence,
                _ => false,
            },
            is_load: ops.len() == 1 && has(Kind::Load) == 1,
        });
        self.counts.push(counts);
        self.ops.extend(ops);
        counts
    }

    fn op(&self, uop: &Uop) -> Op {
        let numbers = self.classes.get(uop.class as usize).copied().unwrap_or_default();
        let kind = match uop.class {
            class if class.is_load() => Kind::Load,
            class if class.is_store_data() => Kind::StoreData,
            Class::StoreAddress => Kind::StoreAddress,
            Class::Branch | Class::FusedBranch => Kind::Branch,
            _ => Kind::Plain,
        };
        Op {
            sources: uop.sources.map(|reg| reg.0 & 63),
            targets: uop.targets.map(|reg| reg.0 & 63),
            ports: numbers.ports,
            latency: numbers.latency,
            busy: numbers.busy,
            class: uop.class,
            kind,
            scheduler: numbers.scheduler,
            slots: uop.slots,
        }
    }

    /// The ops of an instruction.
    #[inline]
    pub fn ops_of(&self, instruction: &StaticInstruction) -> &[Op] {
        let first = instruction.ops as usize;
        &self.ops[first..first + usize::from(instruction.op_count)]
    }

    /// What one run of an instruction counts for an event that depends on the code alone.
    pub fn static_count(&self, instruction: usize, event: Event) -> u64 {
        let counts = self.counts.get(instruction);
        counts.and_then(|counts| counts.get(event as usize)).map_or(0, |&count| u64::from(count))
    }
}

fn numbers(machine: &Machine, class: Class, ideal: Ideal) -> ClassNumbers {
    let Some(execution) = machine.execution(class) else { return ClassNumbers::default() };
    let ports = machine.ports().enumerate();
    let mask = ports
        .filter(|(_, port)| execution.ports.iter().any(|held| held == port))
        .fold(0, |mask, (place, _)| mask | 1 << place);
    let home = execution.ports.first().and_then(|port| {
        machine.schedulers.iter().position(|scheduler| scheduler.ports.contains(port))
    });
    ClassNumbers {
        ports: if ideal.has(Ideal::BANDWIDTH) { 0 } else { mask },
        latency: ideal_latency(ideal, class, execution.latency as u16),
        busy: execution.busy as u16,
        scheduler: home.unwrap_or(NO_SCHEDULER) as u8,
    }
}
