//! The loops with our switches among them.
//!
//! At the end of every slice of turns a handler runs on the same modelled core: it reads as many
//! lines of its own as a switch was measured to throw out. What it counts itself is left out, as
//! counters are off then; what it threw out is fetched again by the loop, as far as the loop still
//! needs it, and is counted.
//!
//! ```text
//! loop ─────────► handler ─► loop ──────────► handler ─► loop
//! counted         not        counted, and the tile's lines come back
//! ```

use model::event::Counts;
use model::fast::FastCore;
use model::stream::{Access, BlockId, Code, CoreListener, StaticBlock};

use super::{EVENTS, LOG_CYCLES, Log};

/// Where the handler and its lines lie: nowhere near a program.
const HANDLER: u64 = 0x6fff_0000_0000;
const LINES_FROM: u64 = 0x6fff_1000_0000;
/// A load from `[rbx]`, and how many of them the handler's block has.
const LOAD: [u8; 3] = [0x48, 0x8b, 0x03];
const LOADS: u64 = 8;
const LINE_BYTES: u64 = 64;

/// A core that is switched every slice of turns.
#[derive(Debug)]
pub(super) struct Switched {
    core: FastCore,
    /// Lines that a switch reads.
    lines: u64,
    /// Cycles of a slice of turns.
    slice: u64,
    /// Counted so far, the handler left out.
    cycles: u64,
    /// When the next switch is due.
    until: u64,
    before: Counts,
    pub(super) log: Log,
}

impl Switched {
    pub(super) fn new(mut core: FastCore, lines: u64, slice: u64) -> Switched {
        core.translated(BlockId(0), &handler());
        let before = core.counts();
        Switched { core, lines, slice, cycles: 0, until: slice, before, log: Vec::new() }
    }

    /// Closes the last slice of the log.
    pub(super) fn finish(&mut self) {
        self.core.finish();
        self.cut();
    }

    fn cut(&mut self) {
        let now = self.core.counts();
        let slice = now.since(&self.before);
        let slice = EVENTS.map(|event| slice[event]);
        self.before = now;
        self.cycles += slice[0];
        self.log.push(slice);
        if self.cycles >= self.until {
            self.until = self.cycles + self.slice;
            self.switch();
        }
    }

    fn switch(&mut self) {
        self.core.interrupted();
        for first in (0..self.lines).step_by(LOADS as usize) {
            let access = |k: u64| Access {
                address: LINES_FROM + (first + k) % self.lines * LINE_BYTES,
                instruction: k as u16,
                size: 8,
                is_store: false,
            };
            let accesses: Vec<Access> = (0..LOADS).map(access).collect();
            self.core.executed(BlockId(0), LOADS as u16 + 1, &accesses);
        }
        self.core.interrupted();
        self.before = self.core.counts();
    }
}

/// Loads, and a jump back to the first of them.
fn handler() -> StaticBlock {
    let code = |at: u64, bytes: &[u8]| {
        let mut code = Code { pc: HANDLER + at, bytes: [0; 15], len: bytes.len() as u8 };
        code.bytes.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte);
        code
    };
    let length = LOAD.len() as u64;
    let mut instructions: Vec<Code> = (0..LOADS).map(|k| code(k * length, &LOAD)).collect();
    let back = -((LOADS * length + 2) as i8);
    instructions.push(code(LOADS * length, &[0xeb, back as u8]));
    StaticBlock { instructions: instructions.into() }
}

impl CoreListener for Switched {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        // The handler is the first.
        self.core.translated(BlockId(id.0 + 1), block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.core.executed(BlockId(id.0 + 1), ran, accesses);
        if self.core.cycles() >= self.before[EVENTS[0]] + LOG_CYCLES {
            self.cut();
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.core.continued(BlockId(id.0 + 1), accesses);
    }

    fn interrupted(&mut self) {
        self.core.interrupted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::MISSES;
    use model::core::Settings;

    /// Ten slices of the log.
    const SLICE_CYCLES: u64 = 10 * LOG_CYCLES;

    /// A loop over `lines` lines of its own for so many rounds; misses of every slice of turns.
    fn misses(lines: u64, switch_lines: u64) -> Vec<u64> {
        let machine = super::super::machine().unwrap();
        let core = FastCore::new(&machine, Settings::default());
        let mut switched = Switched::new(core, switch_lines, SLICE_CYCLES);
        let mut block = handler();
        block.instructions.iter_mut().for_each(|code| code.pc -= HANDLER / 2);
        switched.translated(BlockId(0), &block);
        let mut at = 0;
        while switched.cycles < 5 * SLICE_CYCLES / 2 {
            let access = |k: u64| Access {
                address: 0x1000_0000 + (at + k) % lines * LINE_BYTES,
                instruction: k as u16,
                size: 8,
                is_store: false,
            };
            let accesses: Vec<Access> = (0..LOADS).map(access).collect();
            switched.executed(BlockId(0), LOADS as u16 + 1, &accesses);
            at += LOADS;
        }
        switched.finish();
        let mut found = vec![0];
        let (mut cycles, mut until) = (0, SLICE_CYCLES);
        for slice in &switched.log {
            if let Some(last) = found.last_mut() {
                *last += slice[MISSES];
            }
            cycles += slice[0];
            if cycles >= until {
                until = cycles + SLICE_CYCLES;
                found.push(0);
            }
        }
        found
    }

    #[test]
    fn what_the_loop_still_needs_comes_back_and_no_more() {
        // The first slice fetches the lines, each later one what the switch threw out.
        assert_eq!(misses(192, 512), [192, 192, 192]);
        assert_eq!(misses(192, 8)[1..], [0, 0]);
    }
}
