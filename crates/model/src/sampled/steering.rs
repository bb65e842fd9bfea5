//! How much the branch predictor hears of what is skipped.
//!
//! What it knows of branches that are met rarely, or in an order that takes long to come round, it
//! gathers over millions of instructions. So it hears of a little of everything. Of many programs that
//! will do; of others it is wrong too often then. To know, it hears of all for some strata while a second
//! one hears of no more than usual, and both are asked about the same branches:
//!
//! ```text
//! |-s--s--s--ssrrwwpM-s--s-|s--s--s--s--ssrrwwpMs|      what the second hears
//! |sssssssssssssrrwwpMsssss|sssssssssssssrrwwpMss|      what the first does
//!                ^^                      ^^            where they are compared
//! ```
//!
//! What the second loses can be taken off what windows show, as well as it is known by then: where that
//! is well enough for the error asked for, the first hears no more either. Otherwise it goes on hearing
//! of all, alone. When the run is so much longer that strata are too, they are compared anew.

use metrology::{Coverage, Estimate};

use super::observed::Observed;
use super::{Phase, SampledCore};
use crate::event::Event;
use crate::stream::BlockId;

/// Of what is skipped the predictor hears one part in so many, so many instructions at a time.
const PART: u64 = 16;
const TOGETHER: u64 = 1 << 15;

/// What is taken off may be off by this part of the error asked for.
const ALLOWED_PART: f64 = 0.5;
/// Strata after it begins to hear of everything before the two are compared.
const SETTLING: u32 = 1;
/// Strata in which they must have been.
const LEAST: f64 = 4.0;
/// How many times the uncertainty of what one branch takes counts.
const SURE: f64 = 2.0;
/// They are compared again when the run is so many times as long. What was seen counts for so much
/// then: strata were shorter, and it may have had less to lose.
const AGAIN: f64 = 2.0;
const REMEMBERED: f64 = 0.5;
/// How well it is known what a branch that goes another way takes.
const COST_UNSURE: f64 = 0.3;

/// Which of both it is, and what was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Steering {
    is_on: bool,
    is_comparing: bool,
    settled: u32,
    /// Instructions until they are compared again.
    again_at: f64,
    /// Strata compared; how much more often an instruction the second was wrong, the squares of that;
    /// and their cycles an instruction.
    count: f64,
    more: f64,
    more_squares: f64,
    cycles: f64,
    /// How often both were wrong when warming began.
    from: (u64, u64),
    /// Cycles taken off so far, and how many times being wrong that may be off by.
    taken_off: f64,
    unsure: f64,
    /// Whether both heard of the block that was skipped last.
    is_heard: bool,
    is_usual_heard: bool,
}

impl Steering {
    /// Whether it hears of everything.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Cycles that were taken off what windows show.
    pub(super) fn taken_off(&self) -> f64 {
        self.taken_off
    }

    /// Begins to hear of everything and to be compared, if it is time to; whether that is so.
    fn begins(&mut self, instructions: u64) -> bool {
        let begins = !self.is_comparing && instructions as f64 >= self.again_at;
        if begins {
            (self.is_on, self.is_comparing, self.settled) = (true, true, 0);
            for sum in [&mut self.count, &mut self.more, &mut self.more_squares, &mut self.cycles] {
                *sum *= REMEMBERED;
            }
        }
        begins
    }

    /// How much more often an instruction one that hears no more than usual is wrong; none from fewer
    /// than two strata.
    fn more(&self) -> Option<Estimate> {
        if self.count < 2.0 {
            return None;
        }
        let mean = self.more / self.count;
        let squares = (self.more_squares - self.count * mean * mean).max(0.0);
        Some(Estimate {
            value: mean,
            standard_uncertainty: (squares / (self.count - 1.0) / self.count).sqrt(),
            degrees_of_freedom: self.count - 1.0,
        })
    }

    /// In a stratum of so many cycles an instruction, the second was wrong so much more often.
    fn note(&mut self, more: f64, cycles: f64) {
        self.settled += 1;
        if self.settled <= SETTLING {
            return;
        }
        self.count += 1.0;
        self.more += more;
        self.more_squares += more * more;
        self.cycles += cycles;
    }

    /// Decides whether hearing no more than usual does, to the error asked for, when being wrong takes so
    /// many cycles; whether that is decided. It does if what is to be taken off then is known well
    /// enough. As long as that may still come it hears of all, and comparing costs little besides. The
    /// next try is when the run is much longer than these instructions.
    fn ends(&mut self, error: f64, wrong_cycles: f64, instructions: u64) -> bool {
        let Some(more) = self.more().filter(|_| self.count >= LEAST) else { return false };
        let allowed = ALLOWED_PART * error * self.cycles / self.count / wrong_cycles;
        let by_chance = more.interval(Coverage::P95).half_width();
        let is_known = by_chance.hypot(SURE * COST_UNSURE * more.value) <= allowed;
        let never_will_be = SURE * COST_UNSURE * (more.value.abs() - by_chance) > allowed;
        let ends = is_known || never_will_be;
        if ends {
            self.is_on = !is_known;
            self.is_comparing = false;
            self.again_at = AGAIN * instructions as f64;
        }
        ends
    }
}

impl SampledCore {
    /// Whether the predictor learns from what is skipped, here.
    pub(super) fn is_steering(&self) -> bool {
        let is_near = matches!(self.phase, Phase::Steer | Phase::Reach);
        is_near || self.is_skipping() && (self.steering.is_on() || self.is_told_part())
    }

    fn is_told_part(&self) -> bool {
        (self.instructions / TOGETHER).is_multiple_of(PART)
    }

    /// Instructions until that may change within a phase.
    pub(super) fn steers_alike_for(&self) -> u64 {
        let (at, every) = (self.instructions % (TOGETHER * PART), TOGETHER * PART);
        if at < TOGETHER { TOGETHER - at } else { every - at }
    }

    /// Both predictors hear of a block that is skipped, if they are to.
    #[inline]
    pub(super) fn steer(&mut self, id: BlockId, ran: u16) {
        let is_usual = matches!(self.phase, Phase::Steer | Phase::Reach) || self.is_told_part();
        let is_first = is_usual || self.steering.is_on();
        if is_first && !self.steering.is_heard {
            self.warmer.lose_open();
        }
        if is_usual && !self.steering.is_usual_heard {
            self.warmer.lose_second_open();
        }
        (self.steering.is_heard, self.steering.is_usual_heard) = (is_first, is_usual);
        if is_first {
            self.warmer.steer(id, ran);
        }
        if is_usual {
            self.warmer.steer_second(id, ran);
        }
    }

    /// Blocks ran whose order was not told, if no predictor was to hear of it.
    pub(super) fn note_unheard(&mut self) {
        if !self.is_steering() {
            (self.steering.is_heard, self.steering.is_usual_heard) = (false, false);
        }
    }

    /// A stratum begins: perhaps the predictor hears of everything from here on.
    pub(super) fn begin_steering(&mut self) {
        if self.stratum.is_skipped && self.steering.begins(self.instructions) {
            self.warmer.set_second(true);
        }
    }

    /// Warming begins, and with it the comparison.
    pub(super) fn begin_comparing(&mut self) {
        self.steering.from = self.warmer.mispredicted();
    }

    /// Warming is over: how often the second was wrong where the first was not, an instruction.
    pub(super) fn compare(&mut self) {
        let ((first, second), from) = (self.warmer.mispredicted(), self.steering.from);
        let warmed = self.stratum.prime.saturating_sub(self.stratum.warm).max(1) as f64;
        self.more_mispredicted = ((second - from.1) as f64 - (first - from.0) as f64) / warmed;
    }

    /// A stratum that was skipped is over. Learns from it what a predictor that hears no more than usual
    /// loses, or takes that off what its window shows.
    pub(super) fn judge_steering(&mut self, observed: &mut Observed) {
        if !self.stratum.is_skipped {
            return;
        }
        if !self.steering.is_on() {
            let Some(more) = self.steering.more() else { return };
            observed.take_off(more.value, self.prior.mispredict_cycles);
            // Whatever is wrong with it is wrong in all strata alike.
            let unsure = more.standard_uncertainty.hypot(COST_UNSURE * more.value);
            let cycles = self.prior.mispredict_cycles * more.value;
            self.steering.taken_off += cycles * observed.stands_for;
            self.steering.unsure += unsure * observed.stands_for;
            return;
        }
        if !self.steering.is_comparing {
            return;
        }
        self.steering.note(self.more_mispredicted, observed.rate(Event::Cycles));
        if self.steering.ends(self.plan.error, self.prior.mispredict_cycles, self.instructions) {
            self.warmer.set_second(false);
        }
    }

    /// What is not known of what was taken off.
    pub(super) fn unsure_steering(&self, event: Event) -> Estimate {
        let cost = match event {
            Event::Cycles | Event::StallCycles | Event::StallMispredict => {
                self.prior.mispredict_cycles
            }
            Event::BranchMisses | Event::DirectionMisses => 1.0,
            _ => 0.0,
        };
        Estimate::known(0.0, cost * self.steering.unsure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strata until it is decided, when the second loses such parts of the cycles in turn.
    fn ends_after(steering: &mut Steering, lost: &[f64], instructions: u64) -> Option<usize> {
        (1..1000).zip(lost.iter().cycle()).find_map(|(strata, lost)| {
            steering.note(lost / 20.0, 1.0);
            steering.ends(0.03, 20.0, instructions).then_some(strata)
        })
    }

    #[test]
    fn a_predictor_hears_less_once_a_second_does_as_well_and_all_again_in_a_longer_run() {
        let mut steering = Steering::default();
        assert!(steering.begins(1000) && steering.is_on());
        assert!(!steering.begins(1000), "it does already");
        let least = SETTLING as usize + LEAST as usize;
        assert_eq!(ends_after(&mut steering, &[0.001, -0.001], 1000), Some(least));
        assert!(!steering.is_on());
        assert!(!steering.begins(1999));
        assert!(steering.begins(2000) && steering.is_on(), "twice as long");
        let half = SETTLING as usize + LEAST as usize / 2;
        assert_eq!(ends_after(&mut steering, &[0.001, -0.001], 2000), Some(half), "half is known");
    }

    #[test]
    fn it_goes_on_where_what_the_second_loses_is_too_much_to_be_taken_off() {
        let mut steering = Steering::default();
        assert!(steering.begins(0));
        let least = SETTLING as usize + LEAST as usize;
        // Known to 30 %, 2 % may be taken off, and 3 % not.
        assert_eq!(ends_after(&mut steering, &[0.031, 0.029], 1000), Some(least));
        assert!(steering.is_on() && !steering.begins(1999));
        assert!(steering.begins(2000), "they are compared again");
        let again = ends_after(&mut steering, &[0.0], 2000);
        assert!(!steering.is_on() && again > Some(least), "what was seen still counts: {again:?}");
        let mut steering = Steering::default();
        assert!(steering.begins(0));
        assert_eq!(ends_after(&mut steering, &[0.021, 0.019], 1000), Some(least));
        assert!(!steering.is_on());
    }

    #[test]
    fn wild_strata_are_compared_until_their_mean_is_known() {
        let mut steering = Steering::default();
        assert!(steering.begins(0));
        let wild = [0.05, -0.05];
        let strata = ends_after(&mut steering, &wild, 1000).unwrap();
        assert!(!steering.is_on());
        // The mean of 47 has an uncertainty of 5 % over the root of 46, of which 2.01 are half of 3 %.
        assert_eq!(strata, SETTLING as usize + 47);
        let more = steering.more().unwrap();
        assert!(more.value.abs() < 0.05 / 20.0 / 40.0 && more.standard_uncertainty > 0.0);
    }
}
