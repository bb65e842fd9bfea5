//! What a block takes when nothing goes wrong: its static schedule.
//!
//! The block runs on the one-pass core itself, with every access a hit and every branch foreseen,
//! so that schedule and core can never disagree about the machine. What is read off is how long
//! each instruction is the oldest that has not retired: the time in which a sample finds it.
//!
//! ```text
//! filler, jmp ─► before ─► block                 once, entered by a branch or from a known block
//! filler, jmp ─► block ─► block ─► … ─► block    a loop: the mean over the later rounds
//! ```

use crate::core::{Ideal, Life, Mode, NOBODY, Settings, Watcher};
use crate::fast::FastCore;
use crate::machine::Machine;
use crate::stream::{BlockId, Code, CoreListener, StaticBlock};

/// Why an instruction cannot be faster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StaticWait {
    /// It waits for nothing but its turn.
    Turn,
    /// A value that another instruction of the block makes, by its place there.
    Value(usize),
    /// A value from before the block, or from the round before.
    Earlier,
    /// A port that is taken.
    Port,
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
    let ideal = Ideal::DATA_MISSES.with(Ideal::CODE_MISSES).with(Ideal::MISPREDICTS);
    let settings = Settings { mode, ideal };
    let mut core = FastCore::watched(machine, settings, Lives::default());
    let entry = |block: &StaticBlock| block.instructions.first().map_or(0, |code| code.pc);
    let first = match context {
        Context::After(before) => entry(before),
        Context::Unknown | Context::Loop => entry(block),
    };
    let filler = filler(first);
    let (mut path, rounds) = match context {
        Context::Unknown => (vec![&filler], 1),
        Context::After(before) => (vec![&filler, before], 1),
        Context::Loop => (vec![&filler], SETTLING + AVERAGED),
    };
    path.push(block);
    for (id, block) in path.iter().enumerate() {
        core.translated(BlockId(id as u32), block);
    }
    for (id, before) in path.iter().enumerate().take(path.len() - 1) {
        core.executed(BlockId(id as u32), before.instructions.len() as u16, &[]);
    }
    let (id, length) = (BlockId(path.len() as u32 - 1), block.instructions.len());
    for _ in 0..rounds {
        core.executed(id, length as u16, &[]);
    }
    core.finish();
    let lives = &core.watcher().0;
    let averaged = if rounds > 1 { AVERAGED } else { 1 };
    read(lives, length, averaged)
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
fn read(lives: &[Life], length: usize, rounds: usize) -> Schedule {
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
            *held = stronger(*held, wait(lives, life, begin));
        }
        instruction += usize::from(life.is_last);
    }
    Schedule { head_cycles, waits }
}

fn stronger(held: StaticWait, new: StaticWait) -> StaticWait {
    if held == StaticWait::Turn { new } else { held }
}

/// What a micro-op waited for last.
fn wait(lives: &[Life], life: &Life, begin: usize) -> StaticWait {
    if life.issued > life.ready {
        return StaticWait::Port;
    }
    let known = life.producers.iter().filter(|&&producer| producer != NOBODY);
    let known = known.filter_map(|&sequence| {
        let place = lives.partition_point(|other| other.sequence < sequence);
        lives.get(place).filter(|other| other.sequence == sequence).map(|other| (place, other))
    });
    let Some((place, latest)) = known.max_by_key(|(_, other)| other.completed) else {
        return StaticWait::Turn;
    };
    // An operand that was there when the micro-op came in made nobody wait.
    if latest.completed <= life.dispatched {
        StaticWait::Turn
    } else if place < begin {
        StaticWait::Earlier
    } else {
        StaticWait::Value(lives[begin..place].iter().filter(|life| life.is_last).count())
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
        assert_eq!(found.waits[1..], [StaticWait::Value(0), StaticWait::Value(1)]);
        assert_eq!(found.waits[0], StaticWait::Earlier);
    }

    #[test]
    fn independent_work_goes_by_width() {
        let machine = machine("zen4", &[]);
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
        assert_eq!(behind.waits, [StaticWait::Earlier]);
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
