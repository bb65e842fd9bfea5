//! Dispatch, schedulers and ports in one pass.
//!
//! Instructions come in program order but issue at any later cycle, so the near future is kept as
//! a ring of cycles: which ports are taken in each, and how many micro-ops leave each scheduler.
//! A later instruction may still take an earlier free cycle.
//!
//! ```text
//!            cycle (dispatch stands here)
//!              v
//! busy   . . . |0b0110|0b0001|0b0000| ...   ports taken
//! leave  . . . |3,0,1 |0,0,1 |2,0,0 | ...   by scheduler lane
//! ```

use super::ring::Ring;
use crate::core::{Account, Shape};
use crate::event::Event;
use crate::program::{Kind, Op};

/// Cycles kept ahead. A micro-op that issues later than this meets no other there.
const AHEAD: usize = 1 << 13;
const MASK: u64 = AHEAD as u64 - 1;

/// The state between dispatch and issue.
#[derive(Clone, Debug)]
pub(super) struct Window {
    cycle: u64,
    slots: u64,
    busy: Box<[u32; AHEAD]>,
    leave: Box<[u64; AHEAD]>,
    /// By set of ports, a cycle before which all of them are taken from here on.
    full_until: [u64; 64],
    /// Micro-ops waiting, a byte for each scheduler.
    waiting: u64,
    lanes: [Lane; 16],
    /// When the latest micro-op issued, for machines that keep order.
    last_issue: u64,
    pub(super) rob: Ring,
    pub(super) loads: Ring,
    pub(super) stores: Ring,
}

/// What is taken of a cycle ahead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ahead {
    place: usize,
    busy: u32,
    leave: u64,
}

impl Window {
    pub(super) fn new(shape: &Shape) -> Window {
        Window {
            cycle: 0,
            slots: 0,
            busy: Box::new([0; AHEAD]),
            leave: Box::new([0; AHEAD]),
            full_until: [0; 64],
            waiting: 0,
            lanes: lanes(shape),
            last_issue: 0,
            rob: Ring::new(shape.rob),
            loads: Ring::new(shape.load_queue),
            stores: Ring::new(shape.store_queue),
        }
    }

    #[inline]
    fn advance(&mut self, to: u64) {
        self.slots = 0;
        if to - self.cycle >= AHEAD as u64 {
            self.busy.fill(0);
            self.leave.fill(0);
            self.waiting = 0;
            self.cycle = to;
            return;
        }
        for cycle in self.cycle..to {
            self.busy[(cycle & MASK) as usize] = 0;
            let leaving = &mut self.leave[((cycle + 1) & MASK) as usize];
            self.waiting -= *leaving;
            *leaving = 0;
        }
        self.cycle = to;
    }

    /// The cycles in which something is taken.
    pub(super) fn ahead(&self) -> Vec<Ahead> {
        let ahead = |place| Ahead { place, busy: self.busy[place], leave: self.leave[place] };
        (0..AHEAD).map(ahead).filter(|it| it.busy != 0 || it.leave != 0).collect()
    }

    /// Becomes another of the same shape, in which so much is `ahead`. Nothing that was issued here
    /// takes a port at or after cycle `end`.
    pub(super) fn restore(&mut self, other: &Window, ahead: &[Ahead], end: u64) {
        for cycle in self.cycle..end.min(self.cycle + AHEAD as u64) {
            self.busy[(cycle & MASK) as usize] = 0;
            self.leave[(cycle & MASK) as usize] = 0;
        }
        for it in ahead {
            (self.busy[it.place], self.leave[it.place]) = (it.busy, it.leave);
        }
        (self.cycle, self.slots, self.waiting) = (other.cycle, other.slots, other.waiting);
        (self.last_issue, self.full_until) = (other.last_issue, other.full_until);
        self.rob.restore(&other.rob);
        self.loads.restore(&other.loads);
        self.stores.restore(&other.stores);
    }

    /// Starts a new cycle of dispatch, for machines that dispatch by group.
    pub(super) fn next_cycle(&mut self) {
        self.advance(self.cycle + 1);
    }

    /// Waits for a place in the reorder buffer.
    pub(super) fn wait_for_rob(&mut self, account: &mut Account) {
        let free = self.rob.oldest();
        if free > self.cycle {
            account.totals[Event::RobFull] += free - self.cycle;
            self.advance(free);
        }
    }

    /// Dispatches a micro-op not before `earliest`. Returns when, and whether the store queue was
    /// what held it up.
    #[inline(always)]
    pub(super) fn dispatch(
        &mut self,
        shape: &Shape,
        account: &mut Account,
        op: &Op,
        earliest: u64,
        in_group: bool,
    ) -> (u64, bool) {
        let mut at = self.cycle.max(earliest);
        let mut by_stores = false;
        if op.slots > 0 && !in_group {
            if at == self.cycle && self.slots >= shape.dispatch_width {
                at += 1;
            }
            let free = self.rob.oldest();
            if free > at {
                account.totals[Event::RobFull] += free - at;
                at = free;
            }
        }
        if op.kind == Kind::Load {
            let free = self.loads.oldest();
            if free > at {
                account.totals[Event::LoadQueueFull] += free - at;
                at = free;
            }
        } else if op.kind == Kind::StoreAddress {
            let free = self.stores.oldest();
            if free > at {
                account.totals[Event::StoreQueueFull] += free - at;
                at = free;
                by_stores = true;
            }
        }
        if at > self.cycle {
            self.advance(at);
        }
        self.wait_for_scheduler(account, op);
        self.slots += u64::from(op.slots);
        (self.cycle, by_stores)
    }

    /// The same for a micro-op that needs neither load nor store queue, on a machine without
    /// groups.
    #[inline(always)]
    pub(super) fn dispatch_simply(
        &mut self,
        shape: &Shape,
        account: &mut Account,
        op: &Op,
        earliest: u64,
    ) -> u64 {
        let is_full = op.slots > 0 && self.slots >= shape.dispatch_width;
        let mut at = earliest.max(self.cycle + u64::from(is_full));
        let free = if op.slots > 0 { self.rob.oldest() } else { 0 };
        if free > at {
            account.totals[Event::RobFull] += free - at;
            at = free;
        }
        if at > self.cycle {
            self.advance(at);
        }
        self.wait_for_scheduler(account, op);
        self.slots += u64::from(op.slots);
        self.cycle
    }

    /// Dispatches a micro-op once more, as the first of a cycle. Its places are its own still.
    pub(super) fn dispatch_again(&mut self, at: u64, op: &Op) -> u64 {
        if at > self.cycle {
            self.advance(at);
            self.slots = u64::from(op.slots);
        }
        self.cycle
    }

    #[inline(always)]
    fn wait_for_scheduler(&mut self, account: &mut Account, op: &Op) {
        let lane = self.lanes[usize::from(op.scheduler) & 15];
        while self.waiting & lane.mask >= lane.limit {
            account.totals[Event::SchedulerFull] += 1;
            self.advance(self.cycle + 1);
        }
    }

    /// Sends a micro-op to a port, not before it is ready.
    #[inline(always)]
    pub(super) fn issue<const PLAIN: bool>(&mut self, shape: &Shape, op: &Op, ready: u64) -> u64 {
        let in_order = !PLAIN && shape.in_order;
        let ready = if in_order { ready.max(self.last_issue) } else { ready };
        let at = if op.ports == 0 {
            ready
        } else if op.busy > 1 {
            self.take_long(op, ready)
        } else {
            self.take(op, ready)
        };
        if in_order {
            self.last_issue = at;
        }
        self.wait_until(op, at);
        at
    }

    #[inline(always)]
    fn take(&mut self, op: &Op, ready: u64) -> u64 {
        let full_until = &mut self.full_until[op.class as usize & 63];
        let starts_full = ready <= *full_until;
        let mut at = ready.max(*full_until);
        while at - self.cycle < AHEAD as u64 {
            let busy = &mut self.busy[(at & MASK) as usize];
            let free = op.ports & !*busy;
            if free != 0 {
                *busy |= free & free.wrapping_neg();
                if starts_full {
                    *full_until = at;
                }
                return at;
            }
            at += 1;
        }
        at
    }

    /// Takes a port for several cycles on end.
    #[inline(never)]
    fn take_long(&mut self, op: &Op, ready: u64) -> u64 {
        let mut at = ready;
        let end = self.cycle + AHEAD as u64;
        while at + u64::from(op.busy) < end {
            let cycles = at..at + u64::from(op.busy);
            let free =
                cycles.clone().fold(op.ports, |free, c| free & !self.busy[(c & MASK) as usize]);
            if free != 0 {
                let port = free & free.wrapping_neg();
                cycles.for_each(|c| self.busy[(c & MASK) as usize] |= port);
                return at;
            }
            at += 1;
        }
        at
    }

    /// Keeps the scheduler's entry until the micro-op issues. One that issues beyond the cycles
    /// kept is let go at once.
    #[inline(always)]
    fn wait_until(&mut self, op: &Op, at: u64) {
        let ahead = at.wrapping_sub(self.cycle);
        if ahead.wrapping_sub(1) < AHEAD as u64 - 1 {
            let one = self.lanes[usize::from(op.scheduler) & 15].one;
            self.leave[(at & MASK) as usize] += one;
            self.waiting += one;
        }
    }
}

/// One scheduler's byte among those waiting: its mask, one micro-op, and how many make it full.
#[derive(Clone, Copy, Debug)]
struct Lane {
    mask: u64,
    one: u64,
    limit: u64,
}

/// Lanes by scheduler; those without a limit count nothing.
fn lanes(shape: &Shape) -> [Lane; 16] {
    let mut lanes = [Lane { mask: 0, one: 0, limit: 1 }; 16];
    for (k, &limit) in shape.schedulers.iter().enumerate() {
        if limit < u8::MAX {
            let shift = 8 * k as u32;
            let limit = u64::from(limit) << shift;
            lanes[k] = Lane { mask: 0xff << shift, one: 1 << shift, limit };
        }
    }
    lanes
}
