//! What lacking a line or a translation costs, beside what it would cost alone.
//!
//! How much more of them windows lack after shorter warming is known far better than how many more
//! cycles they take. So that one can stand for the other it must be known what one of them takes, and
//! that is what windows show: they wait for so many cycles, and had each been waited for at its first
//! price (half its latency) it would have been so many others.
//!
//! ```text
//! at first price  |----|----|----|----|----|----|     six misses
//! waited          |====|===|                          most of it side by side, or beside other work
//! share                  1/3
//! ```

use super::features::{Features, product};
use crate::event::Event;

/// Cycles in which nothing retired, as far as what is lacked may have been waited for.
const WAITS: [Event; 7] = [
    Event::StallL2,
    Event::StallL3,
    Event::StallMemory,
    Event::StallDataTlb,
    Event::StallCode,
    Event::StallCodeTlb,
    Event::StallStore,
];

/// Sums over windows, in cycles an instruction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overlap {
    waited: f64,
    priced: f64,
}

impl Overlap {
    /// A window lacked so much an instruction, by its features; `prices` are of what may be lacked, and 0
    /// of the others.
    pub(super) fn note(
        &mut self,
        lacked: &Features,
        prices: &Features,
        rate: impl Fn(Event) -> f64,
    ) {
        self.waited += WAITS.into_iter().map(rate).sum::<f64>();
        self.priced += product(lacked, prices);
    }

    /// How much of its first price is really waited, on average. It is never more: a wait may be for
    /// something else.
    pub(super) fn share(&self) -> f64 {
        if self.priced > 0.0 { (self.waited / self.priced).min(1.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_waited_is_held_against_what_each_would_take_alone() {
        let mut overlap = Overlap::default();
        assert_eq!(overlap.share(), 1.0, "nothing is known");
        let mut lacked = Features::default();
        let mut prices = Features::default();
        (lacked[3], prices[3], lacked[6], prices[6]) = (0.1, 7.0, 0.01, 30.0);
        let waits = |event| match event {
            Event::StallL2 => 0.1,
            Event::StallStore => 0.15,
            Event::StallInteger => 5.0,
            _ => 0.0,
        };
        overlap.note(&lacked, &prices, waits);
        assert!((overlap.share() - 0.25).abs() < 1e-12);
        overlap.note(&Features::default(), &prices, |_| 0.0);
        assert!((overlap.share() - 0.25).abs() < 1e-12, "a window that lacks nothing says nothing");
        overlap.note(&lacked, &prices, |_| 1.0);
        assert_eq!(overlap.share(), 1.0);
    }
}
