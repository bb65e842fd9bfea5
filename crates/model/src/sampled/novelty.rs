//! Code that windows did not meet of late.
//!
//! Strata are as long as what windows showed of late allows. A program that begins to do something else
//! is met by one window in a hundredth of all that ran, however wild it has become, and what follows
//! may be over by then: an interpreter that looped for long and takes down what it built is done within
//! three such strata, at three times the cycles. Which blocks run is known of all that is skipped; when
//! far more of them than is usual were not timed of late, windows come at once:
//!
//! ```text
//! blocks        aabaabaabaabaabaabaabaabaabcdecdedcdeccdeefefgefg
//! not met       .....|..............|.....'''''
//! strata        ..M..|........M.....|.....|M.|.M|M.|..M|..M..|.M...
//!                                 noticed ^     what runs now is met
//! ```
//!
//! A program most of whose code is rare has much that was not met at any time, which is no news. A
//! window may come before so much of it ran that it was noticed, and would then stand for all that ran
//! before: it is told that most of what it timed was such code.

/// Windows that are late.
const LATELY: u64 = 32;
/// So many times the usual share is far more.
const FAR_MORE: f64 = 2.0;
/// A window is of such code if that is more than so much of it, and far more than usual besides.
const MOST: f64 = 0.5;
/// Marks a block that the window under way was the first of late to meet; no window has such a number.
const NEW: u32 = 1 << 31;

/// How much of such code there is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Novelty {
    /// Blocks that were timed before so many windows were not met of late.
    met_from: u32,
    /// Cycles that such blocks usually take, of all that ran untimed.
    new: f64,
    /// What that was, and what all that ran usually takes, when it was last looked; and over all that was
    /// looked at.
    looked: (f64, f64),
    all: (f64, f64),
    /// How much more than usual of it there was, in a row.
    more: f64,
    /// The same of the window under way, and what all that it timed usually takes.
    timed: (f64, f64),
}

impl Novelty {
    /// A block ran untimed, for about so many cycles, that was last timed as so many windows were there.
    #[inline]
    pub(super) fn count(&mut self, met: u32, cycles: f64) {
        if met & !NEW < self.met_from {
            self.new += cycles;
        }
    }

    /// A block is timed, for about so many cycles, while so many windows were measured.
    #[inline]
    pub(super) fn time(&mut self, met: &mut u32, windows: u64, cycles: f64) {
        let here = (windows as u32).wrapping_add(1) & !NEW;
        if *met & !NEW != here {
            *met = here | if *met & !NEW < self.met_from { NEW } else { 0 };
        }
        self.timed.0 += if *met & NEW != 0 { cycles } else { 0.0 };
        self.timed.1 += cycles;
    }

    /// A window is over: whether most of what it timed was code that none of late had met.
    pub(super) fn is_of_new(&mut self) -> bool {
        let (new, ran) = std::mem::take(&mut self.timed);
        new > (MOST + FAR_MORE * self.usual_share()) * ran
    }

    fn usual_share(&self) -> f64 {
        self.all.0 / self.all.1.max(f64::MIN_POSITIVE)
    }

    /// So many windows are there now. A block that none has met is never met of late.
    pub(super) fn measured(&mut self, windows: u64) {
        self.met_from =
            windows.saturating_sub(LATELY).saturating_add(1).min(u64::from(!NEW)) as u32;
    }

    /// What is looked at begins here, where all that ran usually takes so many cycles.
    pub(super) fn begin(&mut self, usual_cycles: f64) {
        (self.looked, self.more) = ((self.new, usual_cycles), 0.0);
    }

    /// Cycles of such code in a row that are more than the usual share, by now.
    pub(super) fn more(&mut self, usual_cycles: f64) -> f64 {
        let (came, ran) = (self.new - self.looked.0, usual_cycles - self.looked.1);
        self.more = (self.more + came - FAR_MORE * self.usual_share() * ran).max(0.0);
        self.looked = (self.new, usual_cycles);
        self.all = (self.all.0 + came, self.all.1 + ran);
        self.more
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_new_that_no_window_met_or_none_of_the_last_ones() {
        let new = |windows: u64, met: u32| {
            let mut novelty = Novelty::default();
            novelty.measured(windows);
            novelty.count(met, 5.0);
            novelty.new
        };
        assert_eq!([new(1, 0), new(1, 1), new(LATELY, 1)], [5.0, 0.0, 0.0]);
        assert_eq!([new(LATELY + 1, 1), new(LATELY + 1, 2), new(LATELY + 1, 0)], [5.0, 0.0, 5.0]);
        assert_eq!(new(u64::MAX, u32::MAX), 0.0, "more windows than can be counted");
    }

    #[test]
    fn a_window_is_of_new_code_if_that_is_most_of_it() {
        let is_of_new = |mets: &mut [u32], usual: f64| {
            let mut novelty = Novelty { all: (usual, 1.0), ..Novelty::default() };
            novelty.measured(100);
            mets.iter_mut().for_each(|met| novelty.time(met, 100, 1.0));
            novelty.is_of_new()
        };
        assert!(is_of_new(&mut [0, 1, 68], 0.0));
        assert!(!is_of_new(&mut [0, 69, 100], 0.0));
        assert!(!is_of_new(&mut [0, 0, 0], 0.25), "as usual");
        // Met by this very window it is new to the window's end, and known to those that follow.
        let mut novelty = Novelty::default();
        let mut met = 0;
        novelty.measured(100);
        (0..10).for_each(|_| novelty.time(&mut met, 100, 1.0));
        assert_eq!(novelty.timed, (10.0, 10.0));
        assert!(novelty.is_of_new() && !novelty.is_of_new(), "told once");
        novelty.measured(101);
        novelty.count(met, 1.0);
        novelty.time(&mut met, 101, 1.0);
        assert_eq!((novelty.new, novelty.timed), (0.0, (0.0, 1.0)));
    }

    #[test]
    fn new_code_adds_up_as_long_as_there_is_far_more_than_usual() {
        let mut novelty = Novelty::default();
        novelty.measured(1);
        let mut ran = 0.0;
        let mut more = |novelty: &mut Novelty, new: f64| {
            novelty.count(0, new);
            ran += 1000.0;
            novelty.more(ran)
        };
        assert_eq!(more(&mut novelty, 100.0), 100.0, "nothing is usual yet");
        assert_eq!(more(&mut novelty, 100.0), 0.0, "a tenth is");
        assert_eq!(more(&mut novelty, 200.0), 0.0);
        // Of 3,000 cycles 400 were new, and twice that share of 1,000 is no news.
        let news = 900.0 - 2.0 * 1000.0 * 400.0 / 3000.0;
        assert!((more(&mut novelty, 900.0) - news).abs() < 1e-9);
        novelty.begin(ran);
        assert_eq!(novelty.more(ran), 0.0, "begun anew");
    }
}
