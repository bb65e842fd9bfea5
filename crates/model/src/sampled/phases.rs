//! From stratum to stratum, and from phase to phase within one.

use metrology::{Coverage, Estimate};

use super::features::{Features, Known, features, rates};
use super::observed::{Observed, STRATA_MAX, halve, rates_of};
use super::plan::{JUDGED_FROM, Stratum, longest};
use super::recalled::Recalled;
use super::{Phase, SampledCore};
use crate::event::{Counts, Event};
use crate::warm::Units;

/// A window that was measured.
#[derive(Clone, Debug)]
pub struct Window {
    /// Instructions that had run before it.
    pub from: u64,
    /// And by its end.
    pub to: u64,
    /// Whether what ran before was skipped, and not all of it warmed.
    pub is_skipped: bool,
    /// What was counted in it.
    pub counts: Counts,
}

impl SampledCore {
    /// All that was counted of what cycles follow from, as long as nothing is skipped.
    pub(super) fn features(&self) -> Features {
        let memory = match self.phase {
            Phase::Certain | Phase::Prime | Phase::Measure => self.core.memory(),
            _ => self.warmer.memory(),
        };
        let timed = &self.core.account().totals;
        let warmed = self.warmer.branches();
        features(self.instructions, memory, warmed, timed, self.usual_cycles)
    }

    pub(super) fn begin_stratum(&mut self) {
        self.plan.prime_instructions = self.settling.prime_instructions();
        self.plan.warm_instructions = self.warm_at_first * self.warmth.try_less(self.instructions);
        let mut dice = self.dice;
        let (length, long_every) = (self.next_length(), self.warmth.long_every());
        self.stratum = Stratum::new(&self.plan, length, long_every, || roll(&mut dice));
        self.begin_steering();
        if self.strata.len() >= self.learn_at {
            self.learn_usual();
        }
        self.dice = dice;
        self.in_stratum = 0;
        self.window = None;
        self.recalled = None;
        self.warmer.skip();
        if self.stratum.is_skipped {
            self.phase = Phase::Skip;
            self.turns_at = self.stratum.steer;
        } else {
            self.begin_warming();
        }
        self.stratum_from = self.features();
        self.surprise.begin(self.stratum_from);
    }

    fn begin_warming(&mut self) {
        self.warmer.come_near();
        self.begin_comparing();
        self.phase = Phase::Warm;
        self.turns_at = match self.recalled.is_some() {
            true => self.stratum.prime.saturating_sub(self.plan.warm_instructions / 2),
            false => self.stratum.prime,
        };
    }

    /// Moves to the phase that the next block belongs to; `pc` is where it starts.
    #[cold]
    #[inline(never)]
    pub(super) fn turn(&mut self, pc: u64) {
        self.refresh_lines();
        match self.phase {
            Phase::Forked => {
                self.warmer.come_near();
                self.enter_core(pc);
                self.certain_from = self.core.counts();
                self.phase = Phase::Certain;
                self.turns_at = self.plan.certain_instructions;
            }
            Phase::Certain => {
                self.core.settle(Some(pc));
                self.certain = Some(self.timed_whole());
                self.exchange();
                self.begin_stratum();
            }
            Phase::Skip => {
                self.warmer.skip();
                self.phase = Phase::Steer;
                self.turns_at = self.stratum.reach;
            }
            Phase::Steer => {
                self.warmer.skip();
                self.warmer.come_near();
                self.phase = Phase::Reach;
                let is_kept = self.stratum.is_long && !self.reaching.is_on();
                self.before = is_kept.then(|| Box::new(self.warmer.units()));
                self.turns_at = self.stratum.warm;
            }
            Phase::Reach => {
                if self.stratum.is_long {
                    self.recalled = Some(Recalled::new(self.units_of_most()));
                }
                self.warmer.skip();
                self.begin_warming();
            }
            Phase::Warm if self.turns_at < self.stratum.prime => {
                self.note_middle();
                self.turns_at = self.stratum.prime;
            }
            Phase::Warm => {
                self.compare();
                self.enter_core(pc);
                self.note_turn(pc);
                self.phase = Phase::Prime;
                self.turns_at = self.stratum.measure;
            }
            Phase::Prime => {
                self.counts_from = self.core.counts();
                self.note_turn(pc);
                self.window_from = self.features();
                self.phase = Phase::Measure;
                self.turns_at = self.stratum.end;
            }
            Phase::Measure => {
                self.core.settle(Some(pc));
                self.measured();
                self.exchange();
                self.look_again(pc);
                self.warmer.skip();
                self.phase = Phase::After;
                self.turns_at = self.stratum.length;
                self.surprise.begin(self.features());
            }
            Phase::After => {
                if !self.stratum.is_skipped {
                    self.warmer.settle(pc);
                }
                self.end_stratum();
                self.begin_stratum();
            }
        }
    }

    /// The units as they would be by now, were this stratum warmed for no longer than most. Where all
    /// that is skipped reaches the last level, all strata have reached by now what this one has, and the
    /// predictor of all has learnt: that is no part of what longer warming adds.
    fn units_of_most(&mut self) -> Box<Units> {
        let (memory, predictor) = self.warmer.units();
        let kept = self.before.take().map(|kept| kept.0);
        Box::new((kept.unwrap_or(memory), predictor))
    }

    /// What was counted in the stretch that is timed whole.
    pub(super) fn timed_whole(&self) -> Counts {
        match self.phase {
            Phase::Forked => Counts::default(),
            _ => self.core.counts().since(&self.certain_from),
        }
    }

    /// Warming is over: the core goes on from here.
    pub(super) fn enter_core(&mut self, pc: u64) {
        self.warmer.settle(pc);
        self.exchange();
        let core = &mut self.core;
        self.warmer.tell_passed(|lines| core.pass(lines));
    }

    /// Hands the units from the warmer to the core, or back.
    pub(super) fn exchange(&mut self) {
        let (memory, predictor) = self.warmer.units_mut();
        let (core_memory, core_predictor) = self.core.units_mut();
        std::mem::swap(memory, core_memory);
        std::mem::swap(predictor, core_predictor);
    }

    /// The window is over: what it showed.
    fn measured(&mut self) {
        let now = self.features();
        let counts = self.core.counts().since(&self.counts_from);
        self.window = Some(Observed {
            window: rates(&now, &self.window_from),
            rates: rates_of(&counts),
            timed: now[0] - self.window_from[0],
            ..self.so_far()
        });
        self.windows += 1;
        self.latest = Some(Window {
            from: self.window_from[0] as u64,
            to: self.instructions,
            is_skipped: self.stratum.is_skipped,
            counts,
        });
        if let Some(window) = &self.window {
            self.surprise.saw(&window.window, self.windows);
            let prices = self.prior.lacking();
            self.overlap.note(&window.window, &prices, |event| window.rate(event));
        }
        self.part_from_new_code();
    }

    /// The stratum as far as it came, without its window.
    pub(super) fn so_far(&self) -> Observed {
        Observed {
            stands_for: self.in_stratum.max(1) as f64,
            ..self.stretch(&self.stratum_from, &self.features())
        }
    }

    /// What ran from here to there.
    pub(super) fn stretch(&self, from: &Features, to: &Features) -> Observed {
        let stretch = rates(to, from);
        Observed {
            stands_for: (to[0] - from[0]).max(1.0),
            timed: 0.0,
            known: match (self.stratum.is_skipped, self.reaching.is_on()) {
                (false, _) => Known::All,
                (true, true) => Known::Outer,
                (true, false) => Known::Code,
            },
            window: stretch,
            stretch,
            rates: [].into(),
        }
    }

    pub(super) fn end_stratum(&mut self) {
        self.end_stratum_with(self.so_far());
    }

    /// The stratum is over, and this is what ran of it.
    pub(super) fn end_stratum_with(&mut self, part: Observed) {
        let Some(window) = self.window.take() else { return };
        let mut observed = window.within(self.with_what_came(part));
        if self.stratum.is_skipped && !self.stratum.is_long {
            self.warmth.stood_for(observed.stands_for as u64);
        }
        let (events, latency) = (self.prior.from_memory, self.prior.memory_cycles);
        let waits = events.waits(latency, |event| observed.rate(event));
        self.reaching.note(waits, observed.rate(Event::Cycles));
        self.settling.note(observed.rate(Event::Cycles), observed.rate(Event::MemoryReads));
        self.judge_steering(&mut observed);
        self.strata.push(observed);
        if self.strata.len() >= STRATA_MAX {
            halve(&mut self.strata);
            (self.fit_at, self.fit_all_at) = (2, 2);
        }
        if self.strata.len() >= self.fit_at {
            self.fit_on();
            self.adapt();
        }
    }

    /// Makes strata as long as the error asked for allows, however much longer the run goes on. Called
    /// when the fit is new, since an old one says nothing of what was changed since.
    ///
    /// Let a window miss its stratum by σ, and strata of lengths w be cut from N instructions: the
    /// spread's square is Σw²σ² / N². One more of length L adds L²σ² above and 2NL below, so that a
    /// spread of a stays where it is for L = 2 a² N / σ²: as the run grows strata may too. The σ is that
    /// of late. What was met before cannot be met better by now: one wild window in a stratum that
    /// stood for much would else have all that follows cut small, wild or not.
    fn adapt(&mut self) {
        if self.strata.len() < JUDGED_FROM {
            return;
        }
        let Some((spread, bias)) = self.error_parts() else { return };
        let Some(cycles) = self.fitted.as_ref().and_then(|f| f.rates.get(Event::Cycles as usize))
        else {
            return;
        };
        let asked = self.plan.error;
        let allowed = MARGIN * (asked * asked - bias * bias).max(asked * asked / 9.0).sqrt();
        // The spread itself says whether σ was judged right so far.
        let judged = (allowed / spread.max(allowed / 10.0)).powi(2).clamp(1.0 / JUDGED, JUDGED);
        let deviations = Estimate::known(0.0, 1.0).interval(Coverage::P95).half_width();
        let variance = (allowed / deviations * cycles.rate).powi(2) * judged;
        let missed = cycles.lately.max(cycles.throughout / CALM).max(variance / 1e3);
        let may_be = 2.0 * variance / missed * self.instructions as f64;
        let used = spread / allowed;
        let most = longest(self.instructions, used).min(self.plan.stratum_max_instructions);
        let least = self.plan.stratum_instructions;
        let about = (may_be as u64).min(most).max(least);
        self.warmth.strata_change(self.about, about, self.instructions);
        self.about = about;
    }
}

/// The part of what is allowed that strata are laid out for: what is estimated from windows may be
/// too low.
const MARGIN: f64 = 0.85;
/// Strata are at most so many times longer or shorter because the spread so far is not what it may be.
const JUDGED: f64 = 3.0;
/// What windows missed throughout counts as so much less than what they missed of late.
const CALM: f64 = 1.5;

fn roll(dice: &mut u64) -> u64 {
    *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *dice >> 33
}
