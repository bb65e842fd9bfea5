//! Whether all that is skipped reaches the last level.
//!
//! A last level that does not hear of what is skipped lacks lines that a window then waits for. That
//! shows: windows that wait for memory for a small part of their time cannot be off by more. Where
//! they wait for longer all that is skipped is told, which takes time, until hardly any line comes from
//! memory any more; then nothing leaves the last level either, and it may be left alone again.
//!
//! ```text
//! share of waits:   .-''-.____.---.____________________.---.___
//! told              |######|  |###########|            |#####|
//!                      needed soon: longer      not for long: shorter
//! ```
//!
//! What windows are off by adds up over the run, and one burst in many windows is little of that. So
//! it takes what many windows waited for to begin, and a few calm ones to end.

use crate::event::Event;

/// Waits for memory that make a difference, and those that make none, as shares of the time.
const MUCH: f64 = 0.008;
const LITTLE: f64 = 0.006;
/// Where many lines are brought before they are asked for there may be places where they are not, and such
/// places are found only where it is told (`surprise`): any line counts for so much of what it would
/// take alone.
const HIDDEN: f64 = 1.0 / 16.0;
/// Windows that are looked back on while it is told, and while it is not: what was seen of one fades
/// with those that follow.
const FEW: f64 = 16.0;
const MANY: f64 = 64.0;
/// Windows after it was left alone before it can be told again.
const LEFT_ALONE_MIN: u64 = 4;
/// Windows for which it is told at least: twice as many when it had to be told again before it was left
/// alone for as many, which shows that it matters here, and half as many when not.
const TOLD_MIN: u64 = 32;
const TOLD_MAX: u64 = 1 << 20;

/// The events that tell lines from memory apart by what asked for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FromMemory {
    all: Event,
    loads: Event,
    stores: Event,
    code: Event,
}

impl FromMemory {
    /// On a machine with a third level, or with none.
    pub(super) fn of(has_l3: bool) -> FromMemory {
        let [all, loads, stores, code] = match has_l3 {
            true => {
                [Event::L3Misses, Event::L3LoadMisses, Event::L3StoreMisses, Event::L3CodeMisses]
            }
            false => {
                [Event::L2Misses, Event::L2LoadMisses, Event::L2StoreMisses, Event::L2CodeMisses]
            }
        };
        FromMemory { all, loads, stores, code }
    }

    /// Cycles that memory was waited for, when a line takes so many, by the rates of events; or what
    /// might have been, if that is more. Loads are waited for as such. Of other waits it is not told
    /// what for: they were no more for memory than it would have taken had each line been waited for
    /// alone.
    ///
    /// ```text
    /// stores that fill their queue    at most: lines that stores brought  x latency
    /// code that is not there                   lines of code              x latency
    /// translation                              what else was brought      x latency
    /// ```
    pub(super) fn waits(self, latency: f64, rate: impl Fn(Event) -> f64) -> f64 {
        let alone = |lines: f64| latency * lines.max(0.0);
        let [stores, code] = [rate(self.stores), rate(self.code)];
        let walks = rate(self.all) - rate(self.loads) - stores - code;
        let translation = rate(Event::StallDataTlb) + rate(Event::StallCodeTlb);
        let waited = rate(Event::StallMemory)
            + rate(Event::StallStore).min(alone(stores))
            + rate(Event::StallCode).min(alone(code))
            + translation.min(alone(walks));
        waited.max(HIDDEN * alone(rate(Event::MemoryReads)))
    }
}

/// What windows waited for, and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct Reaching {
    is_on: bool,
    /// Windows since that changed, and how long it is on at least.
    windows: u64,
    told_min: u64,
    waits: f64,
    cycles: f64,
}

impl Reaching {
    pub(super) fn new() -> Reaching {
        let told_min = TOLD_MIN / 2;
        Reaching { is_on: false, windows: 0, told_min, waits: 0.0, cycles: 0.0 }
    }

    /// Whether it is told of everything.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Of so many cycles of a window so many were waits for memory.
    pub(super) fn note(&mut self, waits: f64, cycles: f64) {
        let fading = 1.0 - 1.0 / if self.is_on { FEW } else { MANY };
        self.waits = fading * self.waits + waits;
        self.cycles = fading * self.cycles + cycles;
        self.windows += 1;
        let share = self.waits / self.cycles.max(f64::MIN_POSITIVE);
        let changes = match self.is_on {
            true => self.windows >= self.told_min && share < LITTLE,
            false => self.windows >= LEFT_ALONE_MIN && share > MUCH,
        };
        if changes {
            self.change();
        }
    }

    fn change(&mut self) {
        if self.is_on {
            // As if all that is looked back on from here had been calm: what is left is old.
            self.waits = 0.0;
            self.cycles *= MANY / FEW;
        } else {
            let told =
                if self.windows < self.told_min { 2 * self.told_min } else { self.told_min / 2 };
            self.told_min = told.clamp(TOLD_MIN, TOLD_MAX);
        }
        self.is_on = !self.is_on;
        self.windows = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows until it changes, when every window waits for that share of its time.
    fn changes_after(reaching: &mut Reaching, share: f64) -> Option<u64> {
        let was = reaching.is_on();
        (1..1000).find(|_| {
            reaching.note(share, 1.0);
            reaching.is_on() != was
        })
    }

    #[test]
    fn what_is_skipped_is_told_while_windows_wait_for_memory() {
        let mut reaching = Reaching::new();
        assert_eq!(changes_after(&mut reaching, 0.9 * MUCH), None);
        assert_eq!(changes_after(&mut reaching, 0.3), Some(1));
        assert_eq!(changes_after(&mut reaching, 1.1 * LITTLE), None, "it goes on waiting");
        assert!(reaching.is_on());
    }

    /// Windows until what was seen has faded to little, after it was told: a share of x of what is looked
    /// back on, and the rest of nothing.
    fn fades_after(before: f64) -> f64 {
        let x = LITTLE * FEW / (0.3 * before + LITTLE * (FEW - before));
        x.ln() / (1.0 - 1.0 / FEW).ln()
    }

    #[test]
    fn a_last_level_that_has_everything_is_left_alone_until_that_shows() {
        let mut reaching = Reaching::new();
        assert_eq!(changes_after(&mut reaching, 0.3), Some(LEFT_ALONE_MIN));
        let before = (0..LEFT_ALONE_MIN as i32).map(|k| (1.0 - 1.0 / MANY).powi(k)).sum();
        let first = changes_after(&mut reaching, 0.0).unwrap() as f64;
        assert!((first - fades_after(before)).abs() <= 1.0, "{first}");
        assert_eq!(changes_after(&mut reaching, 0.0), None);
        assert!(changes_after(&mut reaching, 0.3).is_some_and(|windows| windows < 4));
    }

    #[test]
    fn waits_are_no_longer_than_what_was_brought_takes_nor_than_stalls() {
        let rates = [
            (Event::L3Misses, 0.01),
            (Event::L3LoadMisses, 0.002),
            (Event::L3StoreMisses, 0.004),
            (Event::L3CodeMisses, 0.001),
            (Event::StallMemory, 0.05),
            (Event::StallStore, 0.3),
            (Event::StallCode, 0.5),
            (Event::StallDataTlb, 0.1),
            (Event::StallCodeTlb, 0.01),
            (Event::MemoryReads, 0.02),
        ];
        let rate = |event| rates.iter().find(|(known, _)| *known == event).map_or(0.0, |(_, r)| *r);
        let waits = FromMemory::of(true).waits(100.0, rate);
        // Lines of stores and of walks would take more than was waited; code waits for other things too.
        assert!((waits - (0.05 + 0.3 + 0.1 + 0.11)).abs() < 1e-12, "{waits}");
        let waits = FromMemory::of(true).waits(10.0, rate);
        assert!((waits - (0.05 + 0.04 + 0.01 + 0.03)).abs() < 1e-12, "{waits}");
        let waits = FromMemory::of(true).waits(1000.0, rate);
        assert!((waits - 20.0 * HIDDEN).abs() < 1e-12, "what came might be waited for: {waits}");
        assert_eq!(FromMemory::of(false).waits(10.0, rate), 0.05, "no second level missed");
    }

    #[test]
    fn one_burst_is_little_of_many_windows() {
        let mut reaching = Reaching::new();
        changes_after(&mut reaching, 0.3);
        changes_after(&mut reaching, 0.0).unwrap();
        (0..LEFT_ALONE_MIN).for_each(|_| reaching.note(0.0, 1.0));
        reaching.note(0.25, 1.0);
        assert!(!reaching.is_on(), "a quarter of one window is 0.4 % of 64");
        reaching.note(0.25, 1.0);
        reaching.note(0.25, 1.0);
        assert!(reaching.is_on());
    }

    #[test]
    fn it_is_told_for_longer_only_where_leaving_it_alone_soon_makes_a_difference() {
        let mut reaching = Reaching::new();
        changes_after(&mut reaching, 0.3);
        let told = |reaching: &mut Reaching| changes_after(reaching, 0.0).unwrap();
        let first = told(&mut reaching);
        let lengths: Vec<u64> = (0..4)
            .map(|_| {
                changes_after(&mut reaching, 0.3);
                told(&mut reaching)
            })
            .collect();
        assert!(lengths.is_sorted() && lengths[3] == 16 * TOLD_MIN, "{first}, {lengths:?}");
        let calm = |reaching: &mut Reaching| (0..600).for_each(|_| reaching.note(0.0, 1.0));
        for halved in [8, 4] {
            calm(&mut reaching);
            changes_after(&mut reaching, 0.3);
            assert_eq!(told(&mut reaching), halved * TOLD_MIN);
        }
    }
}
