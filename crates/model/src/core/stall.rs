//! Who pays for a stall: one rule, which both cores follow.
//!
//! A stall is a row of cycles in which nothing retires. It ends with the retirement of the micro-op
//! that kept the others waiting, and by then everything about that one is known.
//!
//! ```text
//! before          dispatched      + refill          ends
//!   |  window empty   |  pipeline    |  its own work   |
//!   |<-------- the front's -------->|<-- the work's -->|     exact
//!   |<------------------ the front's ----------------->|     as a stall counter charges it
//!
//!   |<----------------- the work's ------------------->|     both, had the window not been empty
//! ```
//!
//! The front's cause is what last held fetch up before that micro-op: the most recent miss of code
//! or mispredict. The work's is what the micro-op was busy with: of a load, where its data came
//! from.

use super::{Account, Shape, Stalled, TICKS};
use crate::cause::Cause;

/// What is known of a micro-op that is about to retire, should it have kept others waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Why {
    pub(crate) instruction: u32,
    /// When it entered the window.
    pub(crate) dispatched: u64,
    /// What held the front up last, and whose fault that was.
    pub(crate) front: Cause,
    pub(crate) blame: u32,
    /// What it was busy with itself.
    pub(crate) work: Cause,
}

impl Why {
    /// Charges a stall of `cycles` that came after the cycle `before`.
    #[inline]
    pub(crate) fn charge(&self, account: &mut Account, refill: u64, before: u64, cycles: u64) {
        let front = self.front_cycles(refill, before, cycles);
        account.stalled(cycles, front, self.front, self.work);
        // A flush belongs to who caused it: a branch, or a load that had overtaken a store.
        let is_flush = matches!(self.front, Cause::Mispredict | Cause::Forward);
        let owner = if is_flush { self.blame } else { self.instruction };
        account.took(owner as usize, front * TICKS);
        account.took(self.instruction as usize, (cycles - front) * TICKS);
    }
}

impl Why {
    /// How much of a stall of `cycles` that came after the cycle `before` is the front's.
    #[inline]
    fn front_cycles(&self, refill: u64, before: u64, cycles: u64) -> u64 {
        let empty = self.dispatched.saturating_sub(before).min(cycles);
        // The first micro-op into an empty window pays for the pipeline, not for its own work.
        if empty > 0 { (empty + refill).min(cycles) } else { 0 }
    }

    /// The same stall for those who listen.
    pub(crate) fn told(&self, refill: u64, before: u64, cycles: u64) -> Stalled {
        Stalled {
            instruction: self.instruction,
            ended: before + cycles + 1,
            cycles,
            front_cycles: self.front_cycles(refill, before, cycles),
            front: self.front,
            blame: self.blame,
            work: self.work,
        }
    }
}

/// Cycles of pipeline that an empty window costs however fast the first micro-op is.
pub(crate) fn refill(shape: &Shape) -> u64 {
    shape.to_issue + shape.to_retire + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;

    /// The cycles of front and work that a stall of ten after cycle 100 is charged, exactly and as
    /// a counter does it.
    fn charged(dispatched: u64) -> [u64; 4] {
        let why =
            Why { instruction: 1, dispatched, front: Cause::Mispredict, blame: 0, work: Cause::L2 };
        let mut account = Account::default();
        account.grow(2);
        why.charge(&mut account, 4, 100, 10);
        assert_eq!(account.ticks(0) + account.ticks(1), 10 * TICKS);
        assert_eq!(account.ticks(0), account.totals[Event::StallMispredict] * TICKS);
        [Event::StallMispredict, Event::StallL2, Event::SsbMispredict, Event::SsbL2]
            .map(|event| account.totals[event])
    }

    #[test]
    fn an_empty_window_and_the_pipeline_behind_it_are_the_fronts() {
        assert_eq!(charged(90), [0, 10, 0, 10]);
        assert_eq!(charged(100), [0, 10, 0, 10]);
        assert_eq!(charged(103), [7, 3, 10, 0]);
        assert_eq!(charged(107), [10, 0, 10, 0]);
        assert_eq!(charged(110), [10, 0, 10, 0]);
    }
}
