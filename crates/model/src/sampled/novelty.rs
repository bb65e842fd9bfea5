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
//! A program most of whose code is rare has much that was not met at any time, which is no news.

/// Windows that are late.
const LATELY: u64 = 32;
/// So many times the usual share is far more.
const FAR_MORE: f64 = 2.0;

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
}

impl Novelty {
    /// A block ran untimed, for about so many cycles, that was last timed as so many windows were there.
    #[inline]
    pub(super) fn count(&mut self, met: u32, cycles: f64) {
        if met < self.met_from {
            self.new += cycles;
        }
    }

    /// So many windows are there now. A block that none has met is never met of late.
    pub(super) fn measured(&mut self, windows: u64) {
        self.met_from =
            windows.saturating_sub(LATELY).saturating_add(1).min(u64::from(u32::MAX)) as u32;
    }

    /// What is looked at begins here, where all that ran usually takes so many cycles.
    pub(super) fn begin(&mut self, usual_cycles: f64) {
        (self.looked, self.more) = ((self.new, usual_cycles), 0.0);
    }

    /// Cycles of such code in a row that are more than the usual share, by now.
    pub(super) fn more(&mut self, usual_cycles: f64) -> f64 {
        let (came, ran) = (self.new - self.looked.0, usual_cycles - self.looked.1);
        let share = self.all.0 / self.all.1.max(f64::MIN_POSITIVE);
        self.more = (self.more + came - FAR_MORE * share * ran).max(0.0);
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
