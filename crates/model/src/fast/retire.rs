//! Retirement in order, and who owns each cycle.

use crate::cause::Cause;
use crate::core::{Account, Shape, TICKS};
use crate::event::Event;

/// What is known of a micro-op that is about to retire, should it have kept others waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Why {
    pub(super) instruction: u32,
    /// When it entered the window.
    pub(super) dispatched: u64,
    /// What held the front up last, and whose fault that was.
    pub(super) front: Cause,
    pub(super) blame: u32,
    /// What it was busy with itself.
    pub(super) work: Cause,
}

/// The state of retirement.
#[derive(Clone, Debug)]
pub(super) struct Retire {
    cycle: u64,
    slots: u64,
    /// Whether anything has retired in this cycle.
    is_open: bool,
    /// Instructions that finish in this cycle.
    members: Vec<u32>,
    /// Cycles of pipeline that an empty window costs however fast the first micro-op is.
    refill: u64,
}

impl Retire {
    pub(super) fn new(shape: &Shape) -> Retire {
        Retire {
            cycle: 0,
            slots: 0,
            is_open: false,
            members: Vec::with_capacity(64),
            refill: shape.to_issue + shape.to_retire + 1,
        }
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
        let before = self.cycle - gap - 1;
        let empty = why.dispatched.saturating_sub(before).min(gap);
        // The first micro-op into an empty window pays for the pipeline, not for its own work.
        let rest = gap - empty;
        let empty = if empty > 0 && rest <= self.refill { gap } else { empty };
        account.stalled(gap, empty, why.front, why.work);
        let owner = if why.front == Cause::Mispredict { why.blame } else { why.instruction };
        account.took(owner as usize, empty * TICKS);
        account.took(why.instruction as usize, (gap - empty) * TICKS);
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
