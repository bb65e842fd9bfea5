//! Retirement in order, and who owns each cycle.

use crate::core::{Account, Shape, Stalled, TICKS, Why, refill};
use crate::event::Event;

/// The state of retirement.
#[derive(Clone, Debug)]
pub(super) struct Retire {
    cycle: u64,
    slots: u64,
    /// Whether anything has retired in this cycle.
    is_open: bool,
    /// Instructions that finish in this cycle.
    members: Vec<u32>,
    refill: u64,
}

impl Retire {
    pub(super) fn new(shape: &Shape) -> Retire {
        Retire {
            cycle: 0,
            slots: 0,
            is_open: false,
            members: Vec::with_capacity(64),
            refill: refill(shape),
        }
    }

    /// Becomes another of the same shape.
    pub(super) fn restore(&mut self, other: &Retire) {
        (self.cycle, self.slots, self.is_open) = (other.cycle, other.slots, other.is_open);
        self.members.clone_from(&other.members);
    }

    /// Retires a micro-op that may leave from `done` on. Returns the cycles of stall before it, of
    /// which `stall` must be told.
    #[inline]
    pub(super) fn op(
        &mut self,
        shape: &Shape,
        account: &mut Account,
        done: u64,
        slots: u8,
        instruction: u32,
    ) -> u64 {
        let slots = u64::from(slots);
        let mut gap = 0;
        if done > self.cycle {
            gap = self.turn(account, done, instruction);
        } else if self.slots + slots > shape.retire_width {
            self.turn(account, self.cycle + 1, instruction);
        }
        self.slots += slots;
        gap
    }

    /// Retires a whole group, one a cycle.
    pub(super) fn group(&mut self, account: &mut Account, done: u64, why: &Why) -> u64 {
        let gap = self.turn(account, done.max(self.cycle + 1), why.instruction);
        if gap > 0 {
            self.stall(account, gap, why);
        }
        self.cycle
    }

    /// An instruction is complete in the current cycle.
    #[inline]
    pub(super) fn finish(&mut self, instruction: u32) {
        self.members.push(instruction);
    }

    /// Ends the current cycle and moves to a later one. Returns the cycles between.
    #[inline]
    fn turn(&mut self, account: &mut Account, to: u64, oldest: u32) -> u64 {
        let gap = to - self.cycle - 1;
        self.close(account, oldest);
        self.cycle = to;
        self.slots = 0;
        self.is_open = true;
        gap
    }

    /// The cycle that ends belongs to those who finished in it, or to the one at work.
    #[inline]
    fn close(&mut self, account: &mut Account, oldest: u32) {
        if std::mem::take(&mut self.is_open) {
            account.totals[Event::RetireCycles] += 1;
            if self.members.is_empty() {
                account.took(oldest as usize, TICKS);
            }
        }
        account.share(&self.members);
        self.members.clear();
    }

    /// Charges the stall before the cycle that has just begun.
    #[inline(never)]
    pub(super) fn stall(&mut self, account: &mut Account, gap: u64, why: &Why) {
        why.charge(account, self.refill, self.cycle - gap - 1, gap);
    }

    /// What those who listen are told of the stall before the cycle that has just begun.
    pub(super) fn told(&self, gap: u64, why: &Why) -> Stalled {
        why.told(self.refill, self.cycle - gap - 1, gap)
    }

    /// Ends the last cycle.
    pub(super) fn end(&mut self, account: &mut Account) {
        let last = self.members.last().copied().unwrap_or(0);
        self.close(account, last);
    }

    /// The cycle in which retirement stands.
    #[inline]
    pub(super) fn cycle(&self) -> u64 {
        self.cycle
    }
}
