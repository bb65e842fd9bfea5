//! The windows, and what they say of the whole.
//!
//! In each stratum one window was timed, and of the whole some features are known: of one that was
//! warmed all, of one that was skipped which blocks ran and perhaps what outer caches missed. A
//! regression of the windows' rates on those features (`fit`) tells what the stretch as a whole would
//! have shown; what the window had more or less than the regression says is added:
//!
//! ```text
//! rate of stratum i  =  b · features of its stretch  +  (rate of its window - b · features of it)
//! ```
//!
//! Whatever the coefficients are, that is right on average over where the windows fall; good ones
//! make it vary little. A burst of misses between the windows is in the stretch's features.

use super::features::{Features, Known, USUAL};
use crate::event::{Counts, Event};

/// One stratum.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// Instructions that it stands for.
    pub(super) stands_for: f64,
    /// Instructions of it that were timed.
    pub(super) timed: f64,
    pub(super) known: Known,
    /// Features an instruction: in the window, and in all of it; there only those known mean anything.
    pub(super) window: Features,
    pub(super) stretch: Features,
    /// Events an instruction in the window; empty where the program ended before its window.
    pub(super) rates: Box<[f32]>,
}

impl Observed {
    pub(super) fn has_window(&self) -> bool {
        !self.rates.is_empty()
    }

    /// This window in a stratum.
    pub(super) fn within(self, stratum: Observed) -> Observed {
        Observed { window: self.window, rates: self.rates, timed: self.timed, ..stratum }
    }

    /// What follows is part of it: its window speaks for both. What blocks usually take may have been
    /// learnt anew in between, so that it cannot be compared.
    pub(super) fn join(&mut self, part: &Observed) {
        let all = (self.stands_for + part.stands_for).max(1.0);
        for (k, (own, more)) in self.stretch.iter_mut().zip(&part.stretch).enumerate() {
            if k != USUAL {
                *own = (*own * self.stands_for + more * part.stands_for) / all;
            }
        }
        self.known = self.known.min(part.known);
        self.stands_for = all;
    }

    /// Its window met so many branches an instruction less, that each take so many cycles, than it shows
    /// to go another way than thought.
    pub(super) fn take_off(&mut self, mispredicted: f64, cycles: f64) {
        let lost = mispredicted * cycles;
        let parts = [
            (Event::BranchMisses, mispredicted),
            (Event::DirectionMisses, mispredicted),
            (Event::Cycles, lost),
            (Event::StallCycles, lost),
            (Event::StallMispredict, lost),
        ];
        for (event, part) in parts {
            if let Some(rate) = self.rates.get_mut(event as usize) {
                *rate -= part as f32;
            }
        }
    }

    pub(super) fn rate(&self, event: Event) -> f64 {
        self.rates.get(event as usize).map_or(0.0, |&rate| f64::from(rate))
    }
}

/// Strata after which two neighbours become one, so that memory stays bounded: far more than a run
/// of any length makes at the usual growth of strata.
pub(super) const STRATA_MAX: usize = 1 << 14;

/// Makes one of every two strata that follow each other.
pub(super) fn halve(strata: &mut Vec<Observed>) {
    let both = |a: f64, b: f64, (u, v): (f64, f64)| (a * u + b * v) / (u + v).max(1.0);
    let halves: Vec<Observed> = strata
        .chunks(2)
        .filter_map(|pair| match pair {
            [a, b] => {
                let w = (a.stands_for, b.stands_for);
                let features =
                    |x: &Features, y: &Features| std::array::from_fn(|k| both(x[k], y[k], w));
                let rates = a.rates.iter().zip(&b.rates);
                Some(Observed {
                    stands_for: w.0 + w.1,
                    timed: a.timed + b.timed,
                    known: a.known.min(b.known),
                    window: features(&a.window, &b.window),
                    stretch: features(&a.stretch, &b.stretch),
                    rates: rates
                        .map(|(&a, &b)| both(f64::from(a), f64::from(b), w) as f32)
                        .collect(),
                })
            }
            [a] => Some(a.clone()),
            _ => None,
        })
        .collect();
    *strata = halves;
}

/// The rates of a window.
pub(super) fn rates_of(counts: &Counts) -> Box<[f32]> {
    let instructions = counts[Event::Instructions].max(1) as f32;
    counts.0.iter().map(|&count| count as f32 / instructions).collect()
}

#[cfg(test)]
mod tests {
    use super::super::features::FEATURES;
    use super::*;

    fn features(misses: f64) -> Features {
        let mut all = [0.0; FEATURES];
        (all[0], all[6]) = (1.0, misses);
        all
    }

    #[test]
    fn branches_that_would_have_been_known_are_taken_off_with_what_they_took() {
        let mut counts = Counts::default();
        counts[Event::Instructions] = 1000;
        counts[Event::Cycles] = 2000;
        counts[Event::BranchMisses] = 30;
        counts[Event::StallMispredict] = 500;
        let mut window = Observed {
            stands_for: 1.0,
            timed: 1.0,
            known: Known::Code,
            window: features(0.0),
            stretch: features(0.0),
            rates: rates_of(&counts),
        };
        window.take_off(0.01, 20.0);
        let is_near = |event: Event, rate: f64| (window.rate(event) - rate).abs() < 1e-6;
        assert!(is_near(Event::Cycles, 1.8) && is_near(Event::BranchMisses, 0.02));
        assert!(is_near(Event::StallMispredict, 0.3) && is_near(Event::Instructions, 1.0));
    }

    #[test]
    fn what_joins_a_stratum_is_in_its_features_and_not_in_its_window() {
        let of = |stands_for: f64, misses: f64, known: Known| Observed {
            stands_for,
            timed: 10.0,
            known,
            window: features(0.5),
            stretch: features(misses),
            rates: [2.0].into(),
        };
        let mut first = of(100.0, 0.1, Known::All);
        first.join(&of(300.0, 0.5, Known::Outer));
        assert_eq!((first.stands_for, first.timed, first.known), (400.0, 10.0, Known::Outer));
        assert!((first.stretch[6] - 0.4).abs() < 1e-12 && (first.stretch[0] - 1.0).abs() < 1e-12);
        assert_eq!(first.window, features(0.5));
    }
}
