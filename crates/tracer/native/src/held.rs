//! Registers that the engine keeps for itself from a block's start until its last record, rather than for
//! each record anew.
//!
//! What is put aside and brought back is late by a store and a load, and being put aside again waits for
//! that: a copying loop of five instructions spent most of its time on three such turns of one register.
//!
//! ```text
//! put rcx and rbx aside; rcx = slots
//!         lea rbx, [rsi+rax*8]; mov [rcx-16], rbx     a record
//!         the program's instruction
//!         lea rbx, [rdi+rax*8]; mov [rcx-8], rbx      the last record
//! bring rcx and rbx back
//!         the rest of the program's instructions
//! ```

use crate::context::{Mode, at};
use crate::emit::{Gpr, RCX, RSP};
use crate::plan::{Plan, Record, Value};
use crate::translate::{Displaced, Writer};

/// The registers, until a record or the program needs one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Where slots are: behind the block's last one.
    pub(crate) slots: Gpr,
    /// Where addresses are worked out, if any are.
    pub(crate) address: Option<Gpr>,
    /// The first instruction that uses one of them.
    pub(crate) until: usize,
}

impl Held {
    /// Both, as bits.
    pub(crate) fn bits(&self) -> u16 {
        1 << self.slots.0 | self.address.map_or(0, |address| 1 << address.0)
    }
}

/// The end of what is held still.
const HELD: u16 = u16::MAX;

impl Writer {
    /// What to hold in a block: registers that the program uses last, as far as records go; of those one
    /// that needs not be brought back. If the first one that the engine uses must be RCX, that one.
    pub(crate) fn to_hold(&self, plan: &Plan, must_be_rcx: bool) -> Option<Held> {
        let is_told = self.mode == Mode::Told;
        let (first, last) = plan.records.first().zip(plan.records.last()).filter(|_| is_told)?;
        let rests = |register: Gpr| plan.live.rests_for(0, register);
        let mut all: Vec<Gpr> = (0..16).filter(|one| *one != RSP.0).map(Gpr).collect();
        all.sort_by_key(|register| {
            let enough = rests(*register).min(place(last) + 1);
            let is_other = must_be_rcx && *register != RCX;
            (usize::MAX - enough, is_other, !self.is_dead(0, *register), register.0)
        });
        let slots = *all.first().filter(|register| rests(**register) > place(first))?;
        let is_free = |register: &&Gpr| **register != slots && !(must_be_rcx && **register == RCX);
        let has_address = plan.records.iter().any(|record| matches!(record.value, Value::Address));
        let address = all.iter().find(is_free).copied().filter(|_| has_address);
        let address = address.filter(|register| rests(*register) > place(first));
        let until = rests(slots).min(address.map_or(usize::MAX, rests));
        Some(Held { slots, address, until })
    }

    /// Holds registers from here on. Where slots are, one of the engine's tells; whether the program's
    /// value in that must be brought back.
    pub(crate) fn hold(&mut self, held: Held, work: Gpr, is_live: bool, plan: &Plan) {
        let take = |writer: &mut Writer, register: Gpr, is_live: bool| {
            if is_live {
                writer.displaced.push(Displaced { register, from: 0, until: HELD });
            }
        };
        if held.slots == work {
            take(self, work, is_live);
        } else {
            let is_live_too = self.put_aside(0, held.slots, &plan.live);
            take(self, held.slots, is_live_too);
            self.emitter.copy(held.slots, work);
            if is_live {
                self.emitter.load(work, at::spill(work));
            }
        }
        if let Some(address) = held.address {
            let is_live = self.put_aside(0, address, &plan.live);
            take(self, address, is_live);
        }
        self.held = Some(held);
    }

    /// Brings what is held back, before an instruction.
    pub(crate) fn release(&mut self, index: usize) {
        self.held = None;
        for one in self.displaced.iter_mut().filter(|one| one.until == HELD) {
            one.until = index as u16;
            self.emitter.load(one.register, at::spill(one.register));
        }
    }

    /// The same if somebody else needs one of the registers.
    pub(crate) fn release_for(&mut self, index: usize, registers: u16) {
        if self.held.is_some_and(|held| held.bits() & registers != 0) {
            self.release(index);
        }
    }
}

/// The instruction before which something is recorded.
fn place(record: &Record) -> usize {
    usize::from(record.instruction) + usize::from(record.is_after)
}
