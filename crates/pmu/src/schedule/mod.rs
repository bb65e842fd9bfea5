//! Whose turn it is: the slice scheduler.
//!
//! It reads no clock and no counter. It is told how far the counted quantity has come (cycles,
//! instructions, or occurrences of any event that every group counts) and answers which group to
//! program and how far that goes. So it runs unchanged inside the plugin and over perf events.
//!
//! ```text
//! shares 1 2 1      round 0: 1 0 1 2      round 1: 2 1 1 0      every round a new order
//! opening 5k:       slices of 5k          10k                   20k ... up to the slice asked for
//! ```
//!
//! Programs begin unlike they go on. The opening's short rounds see that beginning with every
//! group, at the price of a few dozen switches.

mod shares;

use crate::random::Random;
use crate::{Grouping, Reading};
use shares::Spread;

/// The order of groups within a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Always the same. A program whose period equals the round is then seen in one phase only.
    Fixed,
    /// Permuted anew each round.
    Permuted {
        /// Where the permutations come from.
        seed: u64,
    },
}

/// How turns are given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// How much of the counted quantity a slice takes.
    pub slice: u64,
    /// The first round's slices; they double each round until they reach `slice`. `None` begins
    /// with whole slices.
    pub opening: Option<u64>,
    /// Slices per round, for each group. A group of rare events earns more.
    pub shares: Vec<u32>,
    /// The order within a round.
    pub order: Order,
    /// Whether the shares follow the spread that is observed.
    pub adapts: bool,
}

/// The default slice, in cycles.
pub const SLICE_CYCLES: u64 = 200_000;
/// The opening's default slice, in cycles.
pub const OPENING_CYCLES: u64 = 5_000;

impl Plan {
    /// One slice a round for each group, in an order that `seed` permutes.
    pub fn even(groups: usize, slice: u64, seed: u64) -> Plan {
        Plan {
            slice: slice.max(1),
            opening: Some(OPENING_CYCLES.min(slice.max(1))),
            shares: vec![1; groups],
            order: Order::Permuted { seed },
            adapts: false,
        }
    }

    /// The slice length of a round.
    pub fn slice_of(&self, round: u64) -> u64 {
        let slice = self.slice.max(1);
        match self.opening {
            Some(first) if round < 63 => {
                let doubled = u128::from(first.max(1)) << round;
                u64::try_from(doubled).unwrap_or(u64::MAX).min(slice)
            }
            _ => slice,
        }
    }
}

/// A group's turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The group to program.
    pub group: usize,
    /// The round that it belongs to.
    pub round: u64,
    /// The reading of the counted quantity at which it is over.
    pub until: u64,
}

/// The scheduler of one thread, process or CPU.
#[derive(Clone, Debug)]
pub struct Scheduler {
    plan: Plan,
    random: Random,
    order: Vec<usize>,
    next: usize,
    round: u64,
    turn: Option<Turn>,
    /// What was left of the turn when counting stopped.
    left: Option<(Turn, u64)>,
    spread: Spread,
}

impl Scheduler {
    /// A scheduler that has not started.
    pub fn new(plan: Plan) -> Scheduler {
        let seed = match plan.order {
            Order::Fixed => 0,
            Order::Permuted { seed } => seed,
        };
        let spread = Spread::new(plan.shares.len());
        Scheduler {
            random: Random::new(seed),
            order: Vec::new(),
            next: 0,
            round: 0,
            turn: None,
            left: None,
            spread,
            plan,
        }
    }

    /// The plan, with the shares as they are now.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The turn under way.
    pub fn turn(&self) -> Option<Turn> {
        self.turn
    }

    /// Begins at a reading, or goes on with the turn that a stop cut short.
    pub fn start(&mut self, now: u64) -> Turn {
        if let Some(turn) = self.turn {
            return turn;
        }
        let turn = match self.left.take() {
            Some((turn, left)) => Turn { until: now.saturating_add(left), ..turn },
            None => self.draw(now),
        };
        self.turn = Some(turn);
        turn
    }

    /// The turn is over at a reading; the next one begins there. A boundary that was passed late
    /// delays the ones after it, so that no slice is short.
    pub fn advance(&mut self, now: u64) -> Turn {
        let turn = self.draw(now);
        self.turn = Some(turn);
        turn
    }

    /// Counting stops at a reading. What is left of the turn is remembered, so that even a program
    /// that starts and stops within a slice sees every group in time.
    pub fn stop(&mut self, now: u64) {
        if let Some(turn) = self.turn.take()
            && turn.until > now
        {
            self.left = Some((turn, turn.until - now));
        }
    }

    /// Takes note of a finished slice, for shares that follow the spread.
    pub fn observe(&mut self, grouping: &Grouping, reading: &Reading) {
        if self.plan.adapts {
            self.spread.observe(grouping.anchors, reading);
        }
    }

    fn draw(&mut self, now: u64) -> Turn {
        if self.next >= self.order.len() {
            if !self.order.is_empty() {
                self.round += 1;
            }
            self.begin_round();
        }
        let group = self.order.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        let until = now.saturating_add(self.plan.slice_of(self.round));
        Turn { group, round: self.round, until }
    }

    fn begin_round(&mut self) {
        if self.plan.adapts {
            self.spread.update(&mut self.plan.shares);
        }
        self.next = 0;
        self.order.clear();
        for (group, &share) in self.plan.shares.iter().enumerate() {
            self.order.extend(std::iter::repeat_n(group, share.max(1) as usize));
        }
        if self.order.is_empty() {
            self.order.push(0);
        }
        if let Order::Permuted { .. } = self.plan.order {
            self.random.shuffle(&mut self.order);
        }
    }
}

#[cfg(test)]
mod tests;
