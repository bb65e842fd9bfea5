//! Warming: the program runs past the units without being timed.
//!
//! Caches, translation and predictors see every access and branch, so that a core started from
//! them finds them as if it had been timed all along. Besides, the lines of code that ran last are
//! kept, for a core that remembers some of them decoded.

mod far;
mod follower;

pub use follower::BranchCounts;

use crate::core::{Accesses, Ideal};
use crate::machine::Machine;
use crate::program::{Program, StaticInstruction};
use crate::stream::{Access, BlockId, CoreListener, FORGET_EVERY, Reached, StaticBlock};
use crate::units::branch::Predictor;
use crate::units::memory::Memory;
use far::Far;
use follower::{Follower, NOTHING, Outline};

/// Lines of code that are kept, more than caches of decoded code hold; a power of two.
const PASSED: usize = 4096;

/// Caches with what lies behind them, and predictors.
pub(crate) type Units = (Memory, Predictor);

/// Where the code is, and was.
#[derive(Clone, Debug)]
struct Passed {
    /// The line at hand.
    line: u64,
    /// The lines entered last, as a ring, and how many were entered since they were told.
    ring: Box<[u64; PASSED]>,
    passes: usize,
}

/// The units of one thread, and what they need of the program.
#[derive(Clone, Debug)]
pub struct Warmer {
    program: Program,
    outlines: Vec<Outline>,
    /// Of each instruction, its distance from the start of its block.
    offsets: Vec<u16>,
    memory: Memory,
    main: Follower,
    /// One that may have heard less, for comparison.
    second: Option<Box<Follower>>,
    code: Passed,
    instructions: u64,
    /// Lines of data, and of code, that were reached a short while before.
    reached: Reached,
    reached_code: Reached,
    /// Instructions until the lines reached are forgotten.
    until_forgotten: u64,
    /// Lines reached far from anything timed.
    far: Far,
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
        let far = Far::new(memory.far_lines());
        Warmer {
            program: Program::new(machine, Ideal::NONE),
            outlines: Vec::new(),
            offsets: Vec::new(),
            memory,
            main: Follower::new(predictor),
            second: None,
            code: Passed { line: u64::MAX, ring: Box::new([0; PASSED]), passes: 0 },
            instructions: 0,
            reached: Reached::default(),
            reached_code: Reached::default(),
            until_forgotten: FORGET_EVERY,
            far,
        }
    }

    /// The warmed units.
    pub fn into_units(self) -> (Memory, Predictor) {
        (self.memory, self.main.predictor)
    }

    /// Instructions that have run past.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// How the predictor did while warming.
    pub fn branches(&self) -> BranchCounts {
        self.main.branches
    }

    /// The caches and what lies behind them.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The program ran on unseen: no branch is open and no line of code is at hand.
    pub(crate) fn skip(&mut self) {
        self.lose_open();
        self.lose_second_open();
        self.code.line = u64::MAX;
        self.forget_reached();
    }

    /// The predictor did not see the last branch.
    pub(crate) fn lose_open(&mut self) {
        self.main.lose_open();
    }

    /// The second one did not.
    pub(crate) fn lose_second_open(&mut self) {
        self.second.iter_mut().for_each(|second| second.lose_open());
    }

    fn forget_reached(&mut self) {
        self.reached.forget();
        self.reached_code.forget();
        self.until_forgotten = FORGET_EVERY;
    }

    /// Tells the addresses of the lines of code that were entered since the last time, the newest
    /// last; of very many only those.
    pub(crate) fn tell_passed(&mut self, tell: impl FnOnce(&mut dyn Iterator<Item = u64>)) {
        let (shift, passes) = (self.memory.line_shift(), std::mem::take(&mut self.code.passes));
        let latest = passes.saturating_sub(PASSED)..passes;
        tell(&mut latest.map(|k| self.code.ring[k % PASSED] << shift));
    }

    /// Lines that ran past unseen reach the outer caches.
    pub(crate) fn refresh(&mut self, addresses: &[u64]) {
        self.memory.refresh_all(addresses);
    }

    /// The same of lines that ran past long before anything is timed. So many instructions ran so far.
    pub(crate) fn refresh_far(&mut self, addresses: &[u64], instructions: u64) {
        self.far.tell(&mut self.memory, addresses, instructions);
    }

    /// What comes from here on is near: the second level hears what of all that it would remember.
    pub(crate) fn come_near(&mut self) {
        self.far.come_near(&mut self.memory);
    }

    /// Adds the lines that so many instructions of a block, and what they touched, lie in and that were
    /// not reached a short while before. It is near what is timed, or far from it.
    #[inline]
    pub(crate) fn reach(
        &mut self,
        id: BlockId,
        ran: u16,
        accesses: &[Access],
        is_near: bool,
        lines: &mut Vec<u64>,
    ) {
        self.until_forgotten = self.until_forgotten.saturating_sub(u64::from(ran));
        if self.until_forgotten == 0 {
            self.forget_reached();
        }
        self.reach_code(id, lines);
        for access in accesses {
            if self.reached.is_new(access.address) {
                self.page_of(access.address, is_near);
                lines.push(access.address);
            }
        }
    }

    /// Adds the lines of a block's code that were not reached a short while before.
    #[inline]
    fn reach_code(&mut self, id: BlockId, lines: &mut Vec<u64>) {
        for address in self.code_of(id) {
            if self.reached_code.is_new(address) {
                self.memory.refresh_code_page(address);
                lines.push(address);
            }
        }
    }

    /// The predictor alone sees where a block comes from.
    #[inline]
    pub(crate) fn steer(&mut self, id: BlockId, ran: u16) {
        let Some(outline) = self.outlines.get(id.0 as usize) else { return };
        self.main.pass(outline, ran);
    }

    /// The second predictor does, if there is one.
    #[inline]
    pub(crate) fn steer_second(&mut self, id: BlockId, ran: u16) {
        let Some(second) = &mut self.second else { return };
        if let Some(outline) = self.outlines.get(id.0 as usize) {
            second.pass(outline, ran);
        }
    }

    /// A second predictor begins as the first is now, or there is none from here on.
    pub(crate) fn set_second(&mut self, is_there: bool) {
        self.second = is_there.then(|| Box::new(self.main.clone()));
    }

    /// How often both predictors were wrong so far.
    pub(crate) fn mispredicted(&self) -> (u64, u64) {
        let of = |follower: &Follower| follower.branches.mispredicted;
        (of(&self.main), self.second.as_deref().map_or(0, of))
    }

    /// The lines of the code of blocks that ran unseen.
    pub(crate) fn lines_of(&mut self, runs: &[(BlockId, u32)], lines: &mut Vec<u64>) {
        self.forget_reached();
        runs.iter().for_each(|&(id, _)| self.reach_code(id, lines));
    }

    /// Data that was touched unseen: translation hears of its pages.
    pub(crate) fn pages_of(&mut self, addresses: &[u64], is_near: bool) {
        addresses.iter().for_each(|&address| self.page_of(address, is_near));
    }

    #[inline]
    fn page_of(&mut self, address: u64, is_near: bool) {
        match is_near {
            true => self.memory.refresh_data_page(address),
            false => self.far.tell_page(&mut self.memory, address),
        }
    }

    /// An address in each line of a block's code.
    #[inline]
    fn code_of(&self, id: BlockId) -> impl Iterator<Item = u64> + use<> {
        let outline = self.outlines.get(id.0 as usize).copied().unwrap_or(NOTHING);
        let (shift, count) = (self.memory.line_shift(), u64::from(outline.count.min(1)));
        let lines = count * (u64::from(outline.more_lines) + 1);
        (0..lines).map(move |k| outline.first.wrapping_add(k << shift))
    }

    /// The units as they are now.
    pub(crate) fn units(&self) -> Units {
        (self.memory.clone(), self.main.predictor.clone())
    }

    /// Exchanges the units for others.
    pub(crate) fn swap_units(&mut self, units: &mut Units) {
        std::mem::swap(&mut self.memory, &mut units.0);
        std::mem::swap(&mut self.main.predictor, &mut units.1);
    }

    /// The units, to be exchanged with a core's.
    pub(crate) fn units_mut(&mut self) -> (&mut Memory, &mut Predictor) {
        (&mut self.memory, &mut self.main.predictor)
    }

    /// Learns a block from a program that has it already.
    pub(crate) fn learn(&mut self, id: BlockId, instructions: &[StaticInstruction]) {
        let (Some(first), Some(last)) = (instructions.first(), instructions.last()) else { return };
        let shift = self.memory.line_shift();
        let last_byte = last.pc.wrapping_add(u64::from(last.len).max(1) - 1);
        let lines = (last_byte >> shift).saturating_sub(first.pc >> shift);
        let offset = |pc: u64| pc.wrapping_sub(first.pc) as u16;
        let outline = Outline {
            first: first.pc,
            target: last.target,
            offsets: self.offsets.len() as u32,
            count: instructions.len() as u16,
            last: offset(last.pc),
            next: offset(last.next()),
            // Blocks end at pages; strays must not run on for ever.
            more_lines: lines.min(64) as u8,
            flow: last.flow,
        };
        self.offsets.extend(instructions.iter().map(|instruction| offset(instruction.pc)));
        let place = id.0 as usize;
        if self.outlines.len() <= place {
            self.outlines.resize(place + 1, NOTHING);
        }
        self.outlines[place] = outline;
    }

    /// Learns where the open branch went.
    #[inline]
    pub(crate) fn settle(&mut self, next: u64) {
        self.main.settle(next);
    }

    #[inline]
    fn warm<const USUAL: bool>(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(outline) = self.outlines.get(id.0 as usize) else { return };
        if ran == 0 || outline.count == 0 {
            return;
        }
        self.main.follow(outline.first);
        self.code.fetch::<USUAL>(&mut self.memory, outline.first, outline.more_lines);
        let start = outline.offsets as usize;
        let offsets = self.offsets.get(start..start + usize::from(outline.count));
        let place = Code { first: outline.first, offsets: offsets.unwrap_or_default() };
        touch_all::<USUAL>(&mut self.memory, place, accesses);
        self.instructions += u64::from(ran.min(outline.count));
        self.main.open(outline, ran);
    }
}

impl Passed {
    #[inline]
    fn fetch<const USUAL: bool>(&mut self, memory: &mut Memory, first: u64, more_lines: u8) {
        let line = first >> memory.line_shift_if::<USUAL>();
        if line != self.line {
            self.enter::<USUAL>(memory, line);
        }
        if more_lines != 0 {
            self.fetch_more::<USUAL>(memory, line, more_lines);
        }
    }

    fn fetch_more<const USUAL: bool>(&mut self, memory: &mut Memory, line: u64, more_lines: u8) {
        for more in 1..=u64::from(more_lines) {
            self.enter::<USUAL>(memory, line.saturating_add(more));
        }
    }

    #[inline]
    fn enter<const USUAL: bool>(&mut self, memory: &mut Memory, line: u64) {
        self.line = line;
        self.ring[self.passes % PASSED] = line;
        self.passes += 1;
        memory.warm_code::<USUAL>(line);
    }
}

/// Where a block's instructions lie.
#[derive(Clone, Copy)]
struct Code<'a> {
    first: u64,
    offsets: &'a [u16],
}

impl Code<'_> {
    #[inline]
    fn pc(self, place: u16) -> u64 {
        let offset = self.offsets.get(usize::from(place)).copied().unwrap_or(0);
        self.first.wrapping_add(u64::from(offset))
    }
}

#[inline]
fn touch_all<const USUAL: bool>(memory: &mut Memory, code: Code<'_>, accesses: &[Access]) {
    let mut left = accesses;
    while let [access, after @ ..] = left {
        let place = access.instruction;
        if after.first().is_some_and(|next| next.instruction == place) {
            let mine = Accesses::of(&mut left, place);
            touch_often(memory, code.pc(place), mine);
        } else {
            left = after;
            let Access { address, size, is_store, .. } = *access;
            memory.warm_data::<USUAL>(code.pc(place), address, u64::from(size), is_store);
        }
    }
}

/// An instruction that touched memory more than once: pieces are joined as a core joins them,
/// reads go first.
#[inline(never)]
fn touch_often(memory: &mut Memory, pc: u64, mut mine: Accesses<'_>) {
    while let Some(piece) = mine.next(false) {
        memory.warm_data::<false>(pc, piece.address, piece.size, false);
    }
    while let Some(piece) = mine.next(true) {
        memory.warm_data::<false>(pc, piece.address, piece.size, true);
    }
}

impl CoreListener for Warmer {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        // Decoded for a moment: of the program only outlines are kept.
        self.program.translate(BlockId(0), block);
        let instructions = std::mem::take(&mut self.program.instructions);
        self.learn(id, &instructions);
        self.program.forget();
    }

    #[inline]
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        match self.memory.is_usual() {
            true => self.warm::<true>(id, ran, accesses),
            false => self.warm::<false>(id, ran, accesses),
        }
    }

    fn far_looks(&self) -> u64 {
        self.memory.counts.l3
    }

    fn approach(&self, addresses: &[u64]) {
        self.memory.approach(addresses);
    }

    fn interrupted(&mut self) {
        // The handler follows from no branch.
        self.lose_open();
        self.lose_second_open();
    }
}

#[cfg(test)]
mod tests;
