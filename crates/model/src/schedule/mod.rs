//! What a block takes when nothing goes wrong: its static schedule.
//!
//! The block runs on the one-pass core itself, with every access a hit and every branch foreseen,
//! so that schedule and core can never disagree about the machine. What is read off is how long
//! each instruction is the oldest that has not retired: the time in which a sample finds it.
//!
//! ```text
//! filler, jmp ─► before ─► block                 twice, entered by a branch or from a known block
//! filler, jmp ─► block ─► block ─► … ─► block    a loop: the mean over the later rounds
//! ```
//!
//! The last round counts: by then the code is decoded and its branches are known, as they are in
//! code that runs often enough to be looked at.
//!
//! The first run of the filler is the same for every block, wherever it lies. So one core serves
//! them all, and starts each time from the moment at which the filler has run.

mod read;

use crate::core::{Ideal, Life, Mode, Settings, Watcher};
use crate::fast::{FastCore, Moment};
use crate::machine::{CacheFacts, Class, Direction, Machine};
use crate::program::{Block, Program, StaticInstruction};
use crate::stream::{BlockId, Code, CoreListener, StaticBlock};
use crate::units::branch::Predictor;
use crate::uop::Flow;
use read::read;

/// Why an instruction cannot be faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StaticWait {
    /// It waits for nothing but its turn.
    Turn,
    /// A value that another instruction of the block makes.
    Value {
        /// The place of that instruction.
        maker: usize,
        /// Which of its sources, counted from 0, the instruction waits for.
        operand: usize,
    },
    /// A value from before the block, or from the round before.
    Earlier {
        /// Which of its sources.
        operand: usize,
    },
    /// A port that is taken for this cycle.
    Port,
    /// A unit that works on one thing at a time, such as a divider.
    Unit,
}

/// A block's schedule.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Schedule {
    /// How long each instruction is the oldest, in cycles; 0 if it retires with the one before.
    pub head_cycles: Vec<f64>,
    /// What each waits for.
    pub waits: Vec<StaticWait>,
}

impl Schedule {
    /// What one run of the block takes.
    pub fn cycles(&self) -> f64 {
        self.head_cycles.iter().sum()
    }
}

/// How a block is come by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Before {
    /// By a branch from who knows where.
    Unknown,
    /// From this block.
    Block(usize),
    /// From itself, again and again.
    Itself,
}

/// Rounds of a loop that settle it, and rounds that are averaged: a multiple of every width.
const SETTLING: usize = 24;
const AVERAGED: usize = 24;
/// Enough to fill the window of any machine with nothing to wait for.
const FILLER: usize = 64;
/// The filler's no-ops, its jump, and the first of the blocks that were taken.
const NOPS: BlockId = BlockId(0);
const JUMP: BlockId = BlockId(1);
const FIRST: usize = 2;

/// Schedules many blocks of one machine.
#[derive(Clone, Debug)]
pub struct Scheduler {
    machine: Machine,
    core: FastCore<Lives>,
    /// The filler has run, and its jump leads to whatever comes.
    arrived: Moment,
    untrained: Predictor,
    /// No port is taken for longer.
    busy_cycles: u64,
    /// Where the filler is.
    filler: u64,
    /// Whether a block that was taken may go where only a table of targets knows.
    is_indirect: Vec<bool>,
}

impl Scheduler {
    /// For a machine. What only misses and wrong guesses would read is made small: it is never
    /// looked at.
    pub fn new(machine: &Machine, mode: Mode) -> Scheduler {
        let mut machine = machine.clone();
        let small = |cache: &mut CacheFacts| (cache.size_kib, cache.ways) = (16, 1);
        small(&mut machine.caches.l1i);
        small(&mut machine.caches.l1d);
        small(&mut machine.caches.l2);
        machine.caches.l3 = None;
        let branch = &mut machine.branch;
        (branch.direction, branch.base_entries) = (Direction::Bimodal, 256);
        (branch.btb_entries, branch.btb_ways) = (256, 4);
        let ideal = Ideal::DATA_MISSES.with(Ideal::CODE_MISSES).with(Ideal::MISPREDICTS);
        let settings = Settings { mode, ideal };
        let mut core = FastCore::watched(&machine, settings, Lives::default());
        core.ask_nobody();
        let busy = |&class: &Class| Some(u64::from(machine.execution(class)?.busy));
        let busy_cycles = Class::ALL.iter().filter_map(busy).max().unwrap_or(0);
        let filler = filler_before(0);
        translate_filler(&mut core, filler);
        run_filler(&mut core);
        Scheduler {
            arrived: core.moment(),
            untrained: Predictor::new(&machine.branch),
            is_indirect: Vec::new(),
            machine,
            core,
            busy_cycles,
            filler,
        }
    }

    /// Takes blocks to schedule, and forgets those before.
    pub fn take<'a>(&mut self, blocks: impl Iterator<Item = &'a StaticBlock>) {
        self.core.program_mut().keep_first(FIRST);
        self.is_indirect.clear();
        for (place, block) in blocks.enumerate() {
            self.core.translated(id(place), block);
            let is_indirect =
                |it: &StaticInstruction| matches!(it.flow, Flow::IndirectJump | Flow::IndirectCall);
            let found = self.instructions(place).iter().any(is_indirect);
            self.is_indirect.push(found);
        }
    }

    /// The code of a block that was taken, as the core reads it.
    pub fn instructions(&self, block: usize) -> &[StaticInstruction] {
        let held = self.held(block);
        held.and_then(|it| self.program().instructions.get(range(&it))).unwrap_or_default()
    }

    /// All that was taken.
    pub fn program(&self) -> &Program {
        self.core.program()
    }

    /// The schedule of a block that was taken; an empty one of any other.
    pub fn behind(&mut self, block: usize, before: Before) -> Schedule {
        let length = self.instructions(block).len();
        let (path, times, rounds): (&[usize], _, _) = match before {
            Before::Unknown => (&[block], 2, 1),
            Before::Block(before) => (&[before, block], 2, 1),
            Before::Itself => (&[block], 1, SETTLING + AVERAGED),
        };
        self.arrive(path);
        for time in 0..times {
            if time > 0 {
                run_filler(&mut self.core);
            }
            for _ in 0..rounds {
                for &place in path {
                    let count = self.instructions(place).len() as u16;
                    self.core.executed(id(place), count, &[]);
                }
            }
        }
        self.core.finish();
        let averaged = if rounds > 1 { AVERAGED } else { 1 };
        read(&self.core.watcher().lives, length, averaged, &self.machine)
    }

    /// Puts the core where the filler has run and jumps to a path.
    fn arrive(&mut self, path: &[usize]) {
        let entry = path.first().and_then(|&first| self.instructions(first).first());
        let entry = entry.map_or(0, |instruction| instruction.pc);
        self.filler = filler_before(entry);
        self.core.program_mut().move_first(FILLER + 1, self.filler, entry);
        let jump = self.filler.wrapping_add(FILLER as u64);
        self.core.restore(&self.arrived, jump, self.busy_cycles);
        self.core.watcher_mut().lives.clear();
        // Where every branch is foreseen, a table of targets matters to those who need it alone.
        if path.iter().any(|&place| self.is_indirect.get(place) == Some(&true)) {
            let (_, predictor) = self.core.units_mut();
            predictor.clone_from(&self.untrained);
        }
    }

    fn held(&self, block: usize) -> Option<Block> {
        self.program().blocks.get(FIRST + block).copied()
    }
}

fn id(place: usize) -> BlockId {
    BlockId((FIRST + place) as u32)
}

fn range(block: &Block) -> std::ops::Range<usize> {
    block.first as usize..(block.first + block.count) as usize
}

/// Keeps every life while it listens.
#[derive(Clone, Debug, Default)]
struct Lives {
    lives: Vec<Life>,
    is_deaf: bool,
}

impl Watcher for Lives {
    fn is_listening(&self) -> bool {
        !self.is_deaf
    }

    fn lived(&mut self, life: &Life) {
        self.lives.push(*life);
    }
}

/// Far enough before the code that it shares no line with it, near enough for a jump.
fn filler_before(to: u64) -> u64 {
    to.wrapping_sub(0x10_000) & !63
}

/// Does nothing for a while and jumps to an address.
fn filler(from: u64, to: u64) -> StaticBlock {
    let nop = |k: usize| {
        let mut bytes = [0; 15];
        bytes[0] = 0x90;
        Code { pc: from.wrapping_add(k as u64), bytes, len: 1 }
    };
    let mut codes: Vec<Code> = (0..FILLER).map(nop).collect();
    let pc = from.wrapping_add(FILLER as u64);
    let mut bytes = [0; 15];
    bytes[0] = 0xe9;
    let distance = to.wrapping_sub(pc.wrapping_add(5)) as u32;
    bytes[1..5].copy_from_slice(&distance.to_le_bytes());
    codes.push(Code { pc, bytes, len: 5 });
    StaticBlock { instructions: codes.into() }
}

/// Translates the filler as the first code of a core, in two parts: only the jump is listened to.
fn translate_filler(core: &mut FastCore<Lives>, from: u64) {
    core.translated(NOPS, &filler(from, from));
    let blocks = &mut core.program_mut().blocks;
    let Some(&whole) = blocks.first() else { return };
    let nops = FILLER as u32;
    blocks.clear();
    blocks.push(Block { count: nops, ..whole });
    blocks.push(Block { first: nops, count: 1, ..whole });
}

fn run_filler(core: &mut FastCore<Lives>) {
    core.watcher_mut().is_deaf = true;
    core.executed(NOPS, FILLER as u16, &[]);
    core.watcher_mut().is_deaf = false;
    core.executed(JUMP, 1, &[]);
}

#[cfg(test)]
mod tests;
