//! Places where lines are missing as in no window before.
//!
//! What a miss takes is learnt from windows. Where far more lines come from memory than in any of
//! them, misses may overlap or queue as they do nowhere else, and a stratum's window may fall before
//! such a place or behind it. A run that hears of what it skips notices, and has windows there at once:
//!
//! ```text
//! lines from memory   ________________________.-'''''''''''''''''''''''''|_______
//! strata              |.....M......|...M......|.....M.|..M|.M.|...M......M....|
//!                                   it began ^   ^ noticed
//! ```
//!
//! What lies before has its window, or joins the stratum before it. What ran from where it began is part
//! of the first of the short strata, which is like it: as the end of the one before it stood for less
//! than there was of it.

use super::features::{Features, USUAL};
use super::novelty::Novelty;
use super::observed::Observed;
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
/// What ran since it was last looked is new code if so much of it is.
const MOSTLY: f64 = 0.5;
/// Strata that are short after that, as long as nothing else is noticed.
const SHORT_STRATA: u32 = 4;

/// What is needed to notice.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Surprise {
    /// What was counted when it was last looked, and when nothing was more than usual yet.
    looked: Features,
    since: Features,
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

    /// A block is timed for a window, for about so many cycles.
    #[inline]
    pub(super) fn time(&mut self, met: &mut u32, windows: u64, cycles: f64) {
        self.novelty.time(met, windows, cycles);
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
        (self.looked, self.since, self.more) = (now, now, [0.0; LOOKED_AT.len()]);
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
        let new = self.surprise.novelty.more(self.usual_cycles);
        let lines = self.surprise.more(self.features());
        let misses = if self.reaching.is_on() { lines * self.prior.memory_cycles } else { 0.0 };
        let more = new.max(misses);
        if more <= 0.0 {
            self.surprise.since = self.surprise.looked;
        }
        if more > worth {
            self.begin_where_it_began();
        }
    }

    /// The stratum ended where there began to be more than usual of something, and short ones follow.
    fn begin_where_it_began(&mut self) {
        self.look_closely();
        self.refresh_lines();
        let since = self.surprise.since;
        let came = self.stretch(&since, &self.features());
        let before = self.stretch(&self.stratum_from, &since);
        if self.window.is_some() {
            self.end_stratum_with(before);
        } else {
            self.join_before(before);
        }
        self.begin_stratum();
        self.came_before = Some(came);
    }

    /// The strata that follow are short. How long they may be after that is to be seen from those.
    fn look_closely(&mut self) {
        self.surprise.short = SHORT_STRATA;
        self.fit_at = self.fit_at.min(self.strata.len() + SHORT_STRATA as usize);
    }

    /// What ran of a stratum without a window is the end of the one before.
    fn join_before(&mut self, part: Observed) {
        let part = self.with_what_came(part);
        if !self.stratum.is_long {
            self.warmth.stood_for(part.stands_for as u64);
        }
        match self.strata.last_mut() {
            Some(before) => before.join(&part),
            None => self.strata.push(part),
        }
    }

    /// A stratum with what is part of it though it ran before the stratum was laid out.
    pub(super) fn with_what_came(&mut self, mut part: Observed) -> Observed {
        if let Some(came) = self.came_before.take() {
            part.join(&came);
        }
        part
    }

    /// A window is over. If what it timed is code that none of late had met, it speaks for that alone:
    /// what ran of its stratum before is the end of the one before, and the stratum ends here.
    ///
    /// ```text
    /// code          aaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbb
    /// strata        ...M..........|.........|.M|.M|.M|.M
    ///                              'joined-'
    /// ```
    pub(super) fn part_from_new_code(&mut self) {
        let is_of_new = self.surprise.novelty.is_of_new();
        if !is_of_new || !self.stratum.is_skipped {
            return;
        }
        // Where it began is known only as well as it was looked.
        let since = self.surprise.since;
        let more = self.surprise.novelty.more(self.usual_cycles);
        let is_new_since = more > MOSTLY * (self.window_from[USUAL] - since[USUAL]);
        let began = if is_new_since { since } else { self.window_from };
        self.look_closely();
        if began[0] > self.stratum_from[0] {
            self.join_before(self.stretch(&self.stratum_from, &began));
            self.in_stratum = (self.instructions as f64 - began[0]) as u64;
            self.stratum_from = began;
        }
        self.stratum.length = self.in_stratum;
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
