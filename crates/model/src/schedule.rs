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

use crate::core::{Ideal, Life, Mode, NOBODY, Settings, Watcher};
use crate::fast::FastCore;
use crate::machine::{CacheFacts, Direction, Machine};
use crate::stream::{BlockId, Code, CoreListener, StaticBlock};

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
#[derive(Clone, PartialEq, Debug)]
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
#[derive(Clone, Copy, Debug)]
pub enum Context<'a> {
    /// By a branch from who knows where.
    Unknown,
    /// From this block.
    After(&'a StaticBlock),
    /// From itself, again and again.
    Loop,
}

/// Rounds of a loop that settle it, and rounds that are averaged: a multiple of every width.
const SETTLING: usize = 24;
const AVERAGED: usize = 24;
/// Enough to fill the window of any machine with nothing to wait for.
const FILLER: usize = 64;

/// The schedule of a block on a machine.
pub fn schedule(
    machine: &Machine,
    mode: Mode,
    block: &StaticBlock,
    context: Context<'_>,
) -> Schedule {
    Scheduler::new(machine, mode).schedule(block, context)
}

/// Schedules many blocks of one machine.
#[derive(Clone, Debug)]
pub struct Scheduler {
    machine: Machine,
    mode: Mode,
}

impl Scheduler {
    /// For a machine. What only misses and wrong guesses would read is made small, because every
    /// schedule starts from a cold core and large tables would cost more than the block.
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
        Scheduler { machine, mode }
    }

    /// The schedule of a block.
    pub fn schedule(&self, block: &StaticBlock, context: Context<'_>) -> Schedule {
        let ideal = Ideal::DATA_MISSES.with(Ideal::CODE_MISSES).with(Ideal::MISPREDICTS);
        let settings = Settings { mode: self.mode, ideal };
        let mut core = FastCore::watched(&self.machine, settings, Lives::default());
        let entry = |block: &StaticBlock| block.instructions.first().map_or(0, |code| code.pc);
        let (path, times, rounds) = match context {
            Context::Unknown => (vec![block], 2, 1),
            Context::After(before) => (vec![before, block], 2, 1),
            Context::Loop => (vec![block], 1, SETTLING + AVERAGED),
        };
        let filler = filler(path.first().map_or(0, |first| entry(first)));
        core.translated(BlockId(0), &filler);
        for (id, block) in path.iter().enumerate() {
            core.translated(BlockId(id as u32 + 1), block);
        }
        for _ in 0..times {
            core.executed(BlockId(0), filler.instructions.len() as u16, &[]);
            for _ in 0..rounds {
                for (id, block) in path.iter().enumerate() {
                    core.executed(BlockId(id as u32 + 1), block.instructions.len() as u16, &[]);
                }
            }
        }
        core.finish();
        let lives = &core.watcher().0;
        let averaged = if rounds > 1 { AVERAGED } else { 1 };
        read(lives, block.instructions.len(), averaged, &self.machine)
    }
}

/// Keeps every life.
#[derive(Clone, Debug, Default)]
struct Lives(Vec<Life>);

impl Watcher for Lives {
    fn lived(&mut self, life: &Life) {
        self.0.push(*life);
    }
}

/// Does nothing for a while and jumps to an address.
fn filler(to: u64) -> StaticBlock {
    // Far enough before the code that it shares no line with it, near enough for a jump.
    let from = to.wrapping_sub(0x10_000) & !63;
    let nop = |k: usize| {
        let mut bytes = [0; 15];
        bytes[0] = 0x90;
        Code { pc: from + k as u64, bytes, len: 1 }
    };
    let mut codes: Vec<Code> = (0..FILLER).map(nop).collect();
    let pc = from + FILLER as u64;
    let mut bytes = [0; 15];
    bytes[0] = 0xe9;
    let distance = to.wrapping_sub(pc + 5) as u32;
    bytes[1..5].copy_from_slice(&distance.to_le_bytes());
    codes.push(Code { pc, bytes, len: 5 });
    StaticBlock { instructions: codes.into() }
}

/// Reads the last rounds of the block off the lives.
fn read(lives: &[Life], length: usize, rounds: usize, machine: &Machine) -> Schedule {
    // The last micro-op of each instruction, in order; those of the rounds are at the end.
    let retired: Vec<usize> = (0..lives.len()).filter(|&k| lives[k].is_last).collect();
    let start = retired.len().saturating_sub(length * rounds);
    let mut head_cycles = vec![0.0; length];
    for (k, &place) in retired.iter().enumerate().skip(start) {
        let before = k.checked_sub(1).map_or(0, |k| lives[retired[k]].committed);
        let head = lives[place].committed.saturating_sub(before);
        head_cycles[(k - start) % length] += head as f64 / rounds as f64;
    }
    let last = retired.len().saturating_sub(length);
    let begin = last.checked_sub(1).map_or(0, |k| retired[k] + 1);
    let mut waits = vec![StaticWait::Turn; length];
    let mut instruction = 0;
    for life in lives.iter().skip(begin) {
        if let Some(held) = waits.get_mut(instruction) {
            *held = stronger(*held, wait(lives, life, begin, machine));
        }
        instruction += usize::from(life.is_last);
    }
    Schedule { head_cycles, waits }
}

fn stronger(held: StaticWait, new: StaticWait) -> StaticWait {
    if held == StaticWait::Turn { new } else { held }
}

/// What a micro-op waited for last.
fn wait(lives: &[Life], life: &Life, begin: usize, machine: &Machine) -> StaticWait {
    if life.issued > life.ready {
        let is_unit = machine.execution(life.class).is_some_and(|execution| execution.busy > 1);
        return if is_unit { StaticWait::Unit } else { StaticWait::Port };
    }
    let known = life.producers.iter().enumerate().filter(|(_, producer)| **producer != NOBODY);
    let known = known.filter_map(|(operand, &sequence)| {
        let place = lives.partition_point(|other| other.sequence < sequence);
        let other = lives.get(place).filter(|other| other.sequence == sequence)?;
        Some((operand, place, other))
    });
    let Some((operand, place, latest)) = known.max_by_key(|(_, _, other)| other.completed) else {
        return StaticWait::Turn;
    };
    // An operand that was there when the micro-op came in made nobody wait.
    if latest.completed <= life.dispatched {
        StaticWait::Turn
    } else if place < begin {
        StaticWait::Earlier { operand }
    } else {
        let maker = lives[begin..place].iter().filter(|life| life.is_last).count();
        StaticWait::Value { maker, operand }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::*;

    #[test]
    fn a_chain_takes_its_latency_and_names_its_maker() {
        let machine = machine("zen4", &[]);
        // Three multiplications of three cycles each, one after the other, in a loop.
        let block = block(0x40_0000, &[IMUL_RAX_RAX, IMUL_RAX_RAX, IMUL_RAX_RAX]);
        let found = schedule(&machine, Mode::Native, &block, Context::Loop);
        assert_eq!(found.head_cycles, [3.0, 3.0, 3.0]);
        let value = |maker| StaticWait::Value { maker, operand: 0 };
        assert_eq!(found.waits[1..], [value(0), value(1)]);
        assert_eq!(found.waits[0], StaticWait::Earlier { operand: 0 });
    }

    #[test]
    fn independent_work_goes_by_width() {
        let machine = machine("zen4", &[("window.nop_fusion", "false")]);
        let width = f64::from(machine.window.dispatch_width);
        let body: Vec<&[u8]> = vec![NOP; 24];
        let found = schedule(&machine, Mode::Native, &block(0x40_0000, &body), Context::Loop);
        assert!((found.cycles() - 24.0 / width).abs() < 0.5, "{}", found.cycles());
    }

    #[test]
    fn what_came_before_matters() {
        let machine = machine("zen4", &[]);
        let before = block(0x40_0000, &[DIV_EBX]);
        let after = block(0x40_0002, &[ADD_RAX_RAX]);
        let alone = schedule(&machine, Mode::Native, &after, Context::Unknown);
        let behind = schedule(&machine, Mode::Native, &after, Context::After(&before));
        assert!(behind.cycles() <= alone.cycles() + 1.0, "the wait is the division's own");
        assert!(matches!(behind.waits[..], [StaticWait::Earlier { .. }]), "{:?}", behind.waits);
        assert_eq!(alone.waits, [StaticWait::Turn]);
    }

    #[test]
    fn an_in_order_core_issues_two_at_a_time() {
        let machine = machine("alpha21164", &[]);
        // Independent one-cycle work: at most two integer instructions a cycle.
        let body: Vec<&[u8]> = vec![MOV_ECX_1; 8];
        let found = schedule(&machine, Mode::Native, &block(0x40_0000, &body), Context::Loop);
        assert!((found.cycles() - 4.0).abs() < 1e-9, "{:?}", found.head_cycles);
    }
}
