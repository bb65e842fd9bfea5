//! Whose turn it is: the slice scheduler.
//!
//! It reads no clock and no counter. It is told how far the counted quantity has come (cycles,
//! instructions, or occurrences of any event that every group counts) and answers which group to
//! program and how far that goes. So it runs unchanged inside the plugin and over perf events.
//!
//! ```text
//! shares 1 2 1      round 0: 1 0 1 2      round 1: 0 1 2 1      every round a new order, the turns of
//!                                                               a group spread over it
//! early 3 1 1       other shares at first, as long as everything is new to the caches
//! opening 1k        slices of 1k, then as long as a round takes a hundredth of what has passed,
//!                   up to the slice that was asked for
//! ```
//!
//! Programs begin unlike they go on: loading and setting up may be all that some events ever see.
//! The opening's short rounds let every group see that beginning, at the price of a thousand early
//! switches. Where a switch costs time, there is none.

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
    /// The first slices; rounds then take a hundredth of what has passed, until slices reach `slice`.
    /// `None` begins with whole slices.
    pub opening: Option<u64>,
    /// Slices per round, for each group. A group of rare events earns more.
    pub shares: Vec<u32>,
    /// The order within a round.
    pub order: Order,
    /// Whether the shares follow the spread that is observed.
    pub adapts: bool,
    /// Other shares at first; `None` begins as it goes on.
    pub early: Option<Early>,
}

/// Shares for the beginning. What a program fetches for the first time it waits for: most of some
/// programs' waits for memory are over before a hundredth of their time is, and whoever is to count
/// them has to look then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Early {
    /// Until so much of the counted quantity has passed.
    pub until: u64,
    /// Slices per round, for each group.
    pub shares: Vec<u32>,
}

/// The default slice, in cycles.
pub const SLICE_CYCLES: u64 = 200_000;
/// The opening's default slice, in cycles.
pub const OPENING_CYCLES: u64 = 5_000;
/// No opening goes below this.
pub const OPENING_CYCLES_MIN: u64 = 1_000;
/// Where slices are shorter than the default, the opening's are one part in so many of them.
const OPENING_SLICES: u64 = 5;
/// During the opening a round takes one part in so many of what has passed.
const OPENING_PART: u64 = 100;

impl Plan {
    /// One slice a round for each group, in an order that `seed` permutes.
    pub fn even(groups: usize, slice: u64, seed: u64) -> Plan {
        let slice = slice.max(1);
        // A run of a few million cycles is all opening: the shorter its slices, the better every
        // group sees it.
        let shortest = (slice / OPENING_SLICES).clamp(OPENING_CYCLES_MIN, OPENING_CYCLES);
        Plan {
            slice,
            opening: Some(shortest.min(slice)),
            shares: vec![1; groups],
            order: Order::Permuted { seed },
            adapts: false,
            early: None,
        }
    }

    /// The shares of a round that begins when so much of the counted quantity has passed.
    fn shares_at(&self, passed: u64) -> &[u32] {
        let early = self.early.as_ref().filter(|early| passed < early.until);
        early.map_or(&self.shares, |early| &early.shares)
    }

    /// The slice length of a round that begins when so much of the counted quantity has passed.
    pub fn slice_at(&self, passed: u64) -> u64 {
        let slice = self.slice.max(1);
        let Some(first) = self.opening else { return slice };
        let shares = self.shares_at(passed).iter();
        let turns: u64 = shares.map(|&share| u64::from(share.max(1))).sum();
        let part = passed / OPENING_PART / turns.max(1);
        part.clamp(first.clamp(1, slice), slice)
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
    /// The slice length of this round: equal within a round, so that every order is as fair.
    slice: u64,
    turn: Option<Turn>,
    /// The reading at the first start.
    from: Option<u64>,
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
            slice: 0,
            turn: None,
            from: None,
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
            self.begin_round(now);
        }
        let group = self.order.get(self.next).copied().unwrap_or(0);
        self.next += 1;
        let until = now.saturating_add(self.slice);
        Turn { group, round: self.round, until }
    }

    fn begin_round(&mut self, now: u64) {
        if self.plan.adapts {
            self.spread.update(&mut self.plan.shares);
        }
        let from = *self.from.get_or_insert(now);
        let passed = now.saturating_sub(from);
        self.slice = self.plan.slice_at(passed);
        self.next = 0;
        self.order.clear();
        let shares = self.plan.shares_at(passed);
        for (group, &share) in shares.iter().enumerate() {
            self.order.extend(std::iter::repeat_n(group, share.max(1) as usize));
        }
        if let Order::Permuted { .. } = self.plan.order {
            self.permute(passed);
        }
        if self.order.is_empty() {
            self.order.push(0);
        }
    }

    /// A new order. A group of several turns has one in each of as many parts of the round, at a
    /// place drawn within the part: two turns side by side would see the same twice. The whole is
    /// then turned by any number of places, so that every turn is as likely at every place. Groups of
    /// one turn come in every order as likely.
    fn permute(&mut self, passed: u64) {
        let mut drawn: Vec<(u64, usize)> = Vec::with_capacity(self.order.len());
        for (group, &share) in self.plan.shares_at(passed).iter().enumerate() {
            let turns = u64::from(share.max(1));
            let part = u64::MAX / turns;
            drawn.extend((0..turns).map(|turn| (part * turn + self.random.next() / turns, group)));
        }
        drawn.sort_unstable();
        self.order.clear();
        self.order.extend(drawn.into_iter().map(|(_, group)| group));
        let places = self.random.below(self.order.len().max(1));
        self.order.rotate_left(places);
    }
}

#[cfg(test)]
mod tests;
