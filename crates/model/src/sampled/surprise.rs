//! Places where lines are missing as in no window before.
//!
//! What a miss takes is learnt from windows. Where far more lines come from memory than in any of
//! them, misses may overlap or queue as they do nowhere else, and a stratum's window may fall before
//! such a place or behind it. A run that hears of what it skips notices, and has windows there at once:
//!
//! ```text
//! lines from memory   ____________________________.-''''''''''''''''''|_______
//! strata              |.....M......|...M..........|.M.|..M|.M.|...M......M....|
//!                                   noticed here: ^  short ones
//! ```
//!
//! What lies before has its window, or joins the stratum before it.

use super::features::{Features, USUAL};
use super::novelty::Novelty;
use super::plan::{JUDGED_FROM, shortest_skipped};
use super::{Phase, SampledCore};

/// The features that are looked at: what the last level lacks, and lines that memory brings.
const LOOKED_AT: [usize; 2] = [6, 7];
/// So many times what any window showed is far more.
const FAR_MORE: f64 = 2.0;
/// What such lines would take, were each waited for alone, is worth a window once it is so large a part
/// of the error asked for.
const WORTH: f64 = 1.0 / 16.0;
/// Instructions between two looks.
const LOOK_EVERY: f64 = 8_192.0;
/// Strata that are short after that, as long as nothing else is noticed.
const SHORT_STRATA: u32 = 4;

/// What is needed to notice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surprise {
    /// What was counted when it was last looked.
    looked: Features,
    /// The most of what is looked at that a window showed, an instruction.
    most: [f64; LOOKED_AT.len()],
    /// How many more than that there were, in a row.
    more: [f64; LOOKED_AT.len()],
    /// Strata that are still to be short.
    short: u32,
    /// Code that windows did not meet of late.
    novelty: Novelty,
}

impl Surprise {
    /// A block ran untimed, for about so many cycles, that was last timed as so many windows were there.
    #[inline]
    pub(super) fn count(&mut self, met: u32, cycles: f64) {
        self.novelty.count(met, cycles);
    }

    /// A window, the so manieth, showed this, an instruction.
    pub(super) fn saw(&mut self, window: &Features, windows: u64) {
        self.novelty.measured(windows);
        for (most, feature) in self.most.iter_mut().zip(LOOKED_AT) {
            *most = most.max(window[feature]);
        }
    }

    /// What is heard of begins here.
    pub(super) fn begin(&mut self, now: Features) {
        (self.looked, self.more) = (now, [0.0; LOOKED_AT.len()]);
        self.novelty.begin(now[USUAL]);
    }

    /// Lines in a row that were more than any window showed, by now.
    fn more(&mut self, now: Features) -> f64 {
        let instructions = now[0] - self.looked[0];
        for ((more, most), feature) in self.more.iter_mut().zip(self.most).zip(LOOKED_AT) {
            let came = now[feature] - self.looked[feature];
            *more = (*more + came - FAR_MORE * most * instructions).max(0.0);
        }
        self.looked = now;
        self.more.iter().copied().fold(0.0, f64::max)
    }

    /// How long the next stratum is, when it would be so long.
    pub(super) fn length(&mut self, about: u64, short: u64) -> u64 {
        if self.short == 0 {
            return about;
        }
        self.short -= 1;
        about.min(short)
    }
}

impl SampledCore {
    /// Looks, once enough has run that is heard of, and begins a stratum here if this is such a place.
    pub(super) fn look_for_surprise(&mut self) {
        let is_far = matches!(self.phase, Phase::Skip | Phase::Steer | Phase::After);
        let instructions = self.instructions as f64 - self.surprise.looked[0];
        if !self.stratum.is_skipped || !is_far || instructions < LOOK_EVERY {
            return;
        }
        let worth = WORTH * self.plan.error * self.usual_cycles;
        let is_new = self.surprise.novelty.more(self.usual_cycles) > worth;
        let hears = self.reaching.is_on();
        let more = self.surprise.more(self.features());
        let misses = hears && more * self.prior.memory_cycles > worth;
        if !is_new && !misses {
            return;
        }
        self.surprise.short = SHORT_STRATA;
        // How long strata may be from here on is to be seen from those.
        self.fit_at = self.fit_at.min(self.strata.len() + SHORT_STRATA as usize);
        self.refresh_lines();
        if self.window.is_some() {
            self.end_stratum();
        } else {
            self.join_stratum();
        }
        self.begin_stratum();
    }

    /// What ran of a stratum without a window is the end of the one before.
    fn join_stratum(&mut self) {
        let part = self.so_far();
        if !self.stratum.is_long {
            self.warmth.stood_for(self.in_stratum);
        }
        match self.strata.last_mut() {
            Some(before) => before.join(&part),
            None => self.strata.push(part),
        }
    }

    /// How long the next stratum is to be.
    pub(super) fn next_length(&mut self) -> u64 {
        let is_opening = self.strata.len() < JUDGED_FROM;
        let least = if is_opening { 0 } else { self.plan.stratum_instructions };
        self.surprise.length(self.about.max(least), shortest_skipped(&self.plan))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled::features::FEATURES;

    fn counted(instructions: f64, misses: f64) -> Features {
        let mut all = [0.0; FEATURES];
        (all[0], all[6], all[7]) = (instructions, misses, misses);
        all
    }

    #[test]
    fn lines_add_up_while_they_are_more_than_windows_showed() {
        let mut surprise = Surprise::default();
        surprise.saw(&counted(1.0, 0.01), 1);
        surprise.saw(&counted(1.0, 0.001), 2);
        surprise.begin(counted(1000.0, 50.0));
        assert_eq!(surprise.more(counted(2000.0, 70.0)), 0.0, "twice as many are none too many");
        assert!((surprise.more(counted(3000.0, 190.0)) - 100.0).abs() < 1e-9);
        assert!((surprise.more(counted(4000.0, 290.0)) - 180.0).abs() < 1e-9);
        assert!((surprise.more(counted(9000.0, 290.0)) - 80.0).abs() < 1e-9);
        assert_eq!(surprise.more(counted(99_000.0, 290.0)), 0.0, "fewer do not make up for later");
        assert!((surprise.more(counted(99_100.0, 390.0)) - 98.0).abs() < 1e-9);
    }

    #[test]
    fn a_few_strata_are_short_after_that() {
        let mut surprise = Surprise { short: 2, ..Surprise::default() };
        let lengths = [900, 900, 900].map(|about| surprise.length(about, 240));
        assert_eq!(lengths, [240, 240, 900]);
        let mut surprise = Surprise { short: 2, ..Surprise::default() };
        assert_eq!(surprise.length(100, 240), 100, "never longer than they would be");
    }
}
