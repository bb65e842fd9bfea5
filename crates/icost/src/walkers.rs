//! Page walkers, given out anew in every lane.
//!
//! Each lane knows when its walkers are free, the soonest first. Walks come in program order and
//! take the one that is free first. As in the core, a walker is free again with the spell in which
//! its walk ends.

use model::units::misses::SPELL_CYCLES;

use crate::step::Walk;

/// When a walker that walks until a time may be taken again.
#[inline(always)]
pub(crate) fn free_after(end: u32) -> u32 {
    end & !(SPELL_CYCLES as u32 - 1)
}

/// When each walker is free, by lane.
#[derive(Clone, Debug)]
pub(crate) struct Walkers<const L: usize> {
    free: Vec<[u32; L]>,
}

impl<const L: usize> Walkers<L> {
    pub(crate) fn new(walkers: u32) -> Walkers<L> {
        Walkers { free: vec![[0; L]; walkers as usize] }
    }

    /// Walks the tables for micro-ops that issued at these times, in the lanes that keep walks;
    /// returns when their translations are there.
    #[inline(always)]
    pub(crate) fn take(&mut self, walk: Walk, keep: &[u32; L], issued: &[u32; L]) -> [u32; L] {
        let Some(soonest) = self.free.first().copied() else { return *issued };
        let wait = if walk.waits { u32::MAX } else { 0 };
        let (mut end, mut next) = (*issued, [0; L]);
        for lane in 0..L {
            let start = issued[lane].max(soonest[lane] & keep[lane] & wait);
            end[lane] = start + (walk.cycles & keep[lane]);
            // Who walks nothing leaves the walker as it was.
            let until = free_after(end[lane]).max(soonest[lane]);
            next[lane] = (until & keep[lane]) | (soonest[lane] & !keep[lane]);
        }
        self.put(next);
        end
    }

    /// Puts the time at which the soonest will be free again in its place among the others.
    #[inline(always)]
    fn put(&mut self, mut next: [u32; L]) {
        let last = self.free.len() - 1;
        for place in 0..last {
            for (lane, next) in next.iter_mut().enumerate() {
                let other = self.free[place + 1][lane];
                self.free[place][lane] = other.min(*next);
                *next = other.max(*next);
            }
        }
        self.free[last] = next;
    }

    /// Takes so many cycles off the times of a lane.
    pub(crate) fn lower(&mut self, lane: usize, cycles: u32) {
        self.free.iter_mut().for_each(|free| free[lane] = free[lane].saturating_sub(cycles));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALK: Walk = Walk { cycles: 30, waits: true, holds_up: true };

    #[test]
    fn the_third_of_two_walkers_waits_for_the_first_to_end() {
        let mut walkers: Walkers<2> = Walkers::new(2);
        let keep = [u32::MAX, 0];
        assert_eq!(walkers.take(WALK, &keep, &[10, 10]), [40, 10]);
        assert_eq!(walkers.take(WALK, &keep, &[12, 12]), [42, 12]);
        // Both are free at 40; the fourth ends at 70, and its walker is free at 64.
        assert_eq!(walkers.take(WALK, &keep, &[13, 13]), [70, 13]);
        assert_eq!(walkers.take(WALK, &keep, &[100, 100]), [130, 100]);
        assert_eq!(walkers.take(WALK, &keep, &[50, 50]), [94, 50]);
    }

    #[test]
    fn one_that_was_seen_to_go_ahead_does_not_wait() {
        let mut walkers: Walkers<1> = Walkers::new(1);
        walkers.take(WALK, &[u32::MAX], &[100]);
        let early = Walk { waits: false, ..WALK };
        assert_eq!(walkers.take(early, &[u32::MAX], &[50]), [80]);
        // It leaves the walker to whom it belongs.
        assert_eq!(walkers.take(WALK, &[u32::MAX], &[90]), [158]);
    }
}
