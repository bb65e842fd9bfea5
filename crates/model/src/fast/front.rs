//! Fetch: when each instruction leaves the instruction cache.

use super::ring::Ring;
use crate::cause::Cause;
use crate::core::{Account, Ideal, Shape, count_code};
use crate::event::Event;
use crate::program::StaticInstruction;
use crate::units::Level;
use crate::units::cache::Cache;
use crate::units::memory::Memory;

/// Bytes of code that a line of the micro-op cache stands for, as a power of two.
const UOP_LINE_SHIFT: u32 = 6;

/// What fetching an instruction met, for those who listen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) code_cycles: u32,
    pub(super) translation_cycles: u32,
    pub(super) missed_l1: bool,
    pub(super) missed_l2: bool,
    pub(super) missed_tlb: bool,
}

/// The state of fetch.
#[derive(Clone, Debug)]
pub(super) struct Front {
    cycle: u64,
    slots: u64,
    bytes: u64,
    taken: u64,
    line: u64,
    line_shift: u32,
    uops: Option<Cache<()>>,
    /// Whether caches and TLBs are asked for code; if not, it is always there.
    asks_memory: bool,
    /// Whether the current line comes decoded, and where it was entered.
    is_decoded: bool,
    entered: u64,
    /// When the slots in the queue were dispatched.
    pub(super) queue: Ring,
    /// What last held fetch up, since when it runs again, and whose fault it was.
    pub(super) cause: Cause,
    pub(super) since: u64,
    pub(super) blame: u32,
    /// What the latest instruction met, since someone last asked.
    pub(super) met: Met,
}

impl Front {
    pub(super) fn new(shape: &Shape, line_shift: u32) -> Front {
        let (lines, ways) = shape.uop_cache;
        Front {
            cycle: 0,
            slots: 0,
            bytes: 0,
            taken: 0,
            line: u64::MAX,
            line_shift,
            uops: (lines > 0).then(|| Cache::new(lines, ways)),
            asks_memory: true,
            is_decoded: false,
            entered: 0,
            queue: Ring::new(shape.queue),
            cause: Cause::Fetch,
            since: 0,
            blame: 0,
            met: Met::default(),
        }
    }

    /// Fetches an instruction.
    #[inline(always)]
    pub(super) fn fetch(
        &mut self,
        shape: &Shape,
        memory: &mut Memory,
        account: &mut Account,
        place: usize,
        instruction: &StaticInstruction,
    ) -> u64 {
        let is_again = !self.is_decoded && instruction.pc <= self.entered;
        if instruction.line != self.line || instruction.crosses || is_again {
            let last_byte = instruction.pc.wrapping_add(u64::from(instruction.len)).wrapping_sub(1);
            self.enter_both(shape, memory, account, place, instruction.pc, last_byte);
        }
        let slots = u64::from(instruction.slots);
        let free = self.queue.oldest();
        if free > self.cycle {
            self.go_to(free);
        }
        let is_full = if self.is_decoded {
            self.slots + slots > shape.fetch_width
        } else {
            self.slots + slots > shape.decode_width
                || self.bytes + u64::from(instruction.len) > shape.fetch_bytes
        };
        if is_full && self.slots > 0 {
            self.go_to(self.cycle + 1);
        }
        self.slots += slots;
        self.bytes += u64::from(instruction.len);
        self.cycle
    }

    /// Enters the lines of an instruction's first and last byte, as needed.
    #[inline(never)]
    fn enter_both(
        &mut self,
        shape: &Shape,
        memory: &mut Memory,
        account: &mut Account,
        place: usize,
        first: u64,
        last: u64,
    ) {
        let is_again = !self.is_decoded && first <= self.entered;
        if first >> self.line_shift != self.line || is_again {
            self.enter(shape, memory, account, place, first);
        }
        if last >> self.line_shift != self.line && last > first {
            self.enter(shape, memory, account, place, last);
        }
    }

    #[inline]
    fn go_to(&mut self, cycle: u64) {
        self.cycle = cycle;
        self.slots = 0;
        self.bytes = 0;
        self.taken = 0;
    }

    fn enter(
        &mut self,
        shape: &Shape,
        memory: &mut Memory,
        account: &mut Account,
        place: usize,
        pc: u64,
    ) {
        self.line = pc >> self.line_shift;
        self.entered = pc;
        if self.asks_memory {
            self.ask(shape, memory, account, place, pc);
        }
        let held = self.pass(pc);
        if held == Some(false) {
            account.happened(place, Event::UopCacheMisses);
        }
        self.is_decoded = held == Some(true);
    }

    /// Asks for a line of code, and waits for it.
    fn ask(
        &mut self,
        shape: &Shape,
        memory: &mut Memory,
        account: &mut Account,
        place: usize,
        pc: u64,
    ) {
        let outcome = memory.code::<true>(pc, self.cycle);
        count_code(account, place, &outcome);
        if outcome.cycles > 0 && !shape.ideal.has(Ideal::CODE_MISSES) {
            self.go_to(self.cycle + u64::from(outcome.cycles));
            let is_translation = outcome.cycles == outcome.translation.cycles;
            self.cause = if is_translation { Cause::CodeTlb } else { Cause::Code };
            self.since = self.cycle;
            self.blame = place as u32;
            self.met.code_cycles += outcome.cycles;
            self.met.translation_cycles += outcome.translation.cycles;
        }
        self.met.missed_l1 |= outcome.level > Level::L1;
        self.met.missed_l2 |= outcome.level > Level::L2;
        self.met.missed_tlb |= outcome.translation.missed_l1;
    }

    /// From now on code is always there.
    pub(super) fn ask_nobody(&mut self) {
        self.asks_memory = false;
    }

    /// Becomes another of the same shape that came by a jump at `pc`, its code being the line of
    /// it and the one before, and no other code decoded.
    pub(super) fn restore(&mut self, other: &Front, pc: u64) {
        (self.cycle, self.slots, self.bytes, self.taken) =
            (other.cycle, other.slots, other.bytes, other.taken);
        self.queue.restore(&other.queue);
        (self.cause, self.since, self.blame, self.met) =
            (other.cause, other.since, other.blame, other.met);
        if let Some(uops) = &mut self.uops {
            uops.clear();
        }
        self.pass(pc.wrapping_sub(1));
        self.pass(pc);
        (self.line, self.entered, self.is_decoded) = (pc >> self.line_shift, pc, other.is_decoded);
    }

    /// Code at an address passes by, timed or not; whether it was there decoded, if a cache for that
    /// is there.
    pub(super) fn pass(&mut self, pc: u64) -> Option<bool> {
        let uops = self.uops.as_mut()?;
        let number = pc >> UOP_LINE_SHIFT;
        let held = uops.touch(number).is_some();
        if !held {
            uops.insert(number, ());
        }
        Some(held)
    }

    /// A branch was taken as predicted, with so many cycles of fetch lost. One that leads comes with
    /// the next cycle where another was taken in this one.
    #[inline]
    pub(super) fn taken(&mut self, shape: &Shape, bubble: u64, leads: bool) {
        if leads && self.taken > 0 {
            self.go_to(self.cycle + 1);
        }
        self.taken += 1;
        if self.taken >= shape.taken_per_cycle || bubble > 0 {
            self.go_to(self.cycle + 1 + bubble);
        }
    }

    /// Fetch starts again, after a mispredicted branch or where the decoder said.
    pub(super) fn restart(&mut self, cycle: u64, cause: Cause, blame: u32) {
        if cycle > self.cycle {
            self.go_to(cycle);
            self.cause = cause;
            self.since = cycle;
            self.blame = blame;
        }
    }
}
