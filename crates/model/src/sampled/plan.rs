//! How to sample.

/// How to sample.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Plan {
    /// Instructions at the start that are all timed.
    pub certain_instructions: u64,
    /// Instructions measured in a window; in long strata more.
    pub window_instructions: u64,
    /// Instructions timed before each window and not measured.
    pub prime_instructions: u64,
    /// Instructions warmed before most windows of strata that are much longer; the rest of such
    /// strata is skipped. Doubled while windows that are warmed for longer show something else, and
    /// halved again where half is proved to do.
    pub warm_instructions: u64,
    /// The smallest stratum.
    pub stratum_instructions: u64,
    /// The largest stratum.
    pub stratum_max_instructions: u64,
    /// The relative half-width, at 95 %, of the cycles that is good enough.
    pub error: f64,
    /// Where the windows fall.
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            certain_instructions: 1_000_000,
            window_instructions: 3_000,
            prime_instructions: 3_500,
            warm_instructions: 48_000,
            stratum_instructions: 40_000,
            stratum_max_instructions: 100_000_000,
            error: 0.03,
            seed: 1,
        }
    }
}

/// A stratum is hardly ever more than one part in so many of what ran before it: no window may come to
/// speak for too much, or a few heavy ones would decide everything, and how far they are off could
/// not be told from so few.
const STRATA_LEAST: u64 = 128;
/// In a short run so many times as many: any window may be its last, and one that is four times as
/// slow as the rest would alone make its interval too wide. It was four times as many before windows
/// came at once where code is new: of ten short programs none needed more than half of those.
const DENSER: f64 = 2.0;
/// In a calm one so much fewer.
const CALM: f64 = 0.5;
/// Instructions that are a short run.
const SHORT: f64 = 50e6;

/// How long a stratum may be after so many instructions, given how much of what the error asked for
/// allows the windows so far have used up. A run that has used little is calm: a window of it that is
/// four times as slow as the rest would not make its interval too wide, and windows as many as what they
/// used up, squared, would do. That is so while nothing changes, so there are never fewer than one part
/// in 64 asks for: what new code or new misses bring is met at once, a change without either is not.
///
/// ```text
/// part of what ran:  1/256 until 50 million, then as √n, 1/128 from 200 million on
/// of a calm run:     1/64 throughout
/// ```
pub(super) fn longest(instructions: u64, used: f64) -> u64 {
    let denser = DENSER * (SHORT / instructions.max(1) as f64).sqrt();
    let denser = denser.clamp(1.0, DENSER).min((DENSER * used * used).max(CALM));
    (instructions as f64 / (STRATA_LEAST as f64 * denser)) as u64
}

/// Windows from which it is judged how long strata may be.
pub(super) const JUDGED_FROM: usize = 16;
/// Until then strata are so many times shorter than the smallest later: a run may end any time now, and
/// an interval from a handful of windows is many times as wide as what they miss.
const OPENING: u64 = 3;

/// How long the first strata are.
pub(super) fn opening(plan: &Plan) -> u64 {
    plan.stratum_instructions / OPENING
}

/// Strata so many times longer than what must be warmed are skipped for the rest.
const SKIPPED_FROM: u64 = 5;
/// Some skipped strata are warmed for so many times as long.
const LONGER: u64 = 4;
/// So many times what is warmed reaches the outer caches before that: no more than what is warmed for
/// longer, or a second look would not see all of it.
const OUTER: u64 = LONGER - 1;
/// The predictor learns from all of so many times what is warmed.
const STEERED: u64 = 8;
/// In skipped strata a window is one part in so many, within so many times the usual: what is warmed
/// before it costs more than it does, and a longer one differs less from its stratum.
const WINDOW_PART: u64 = 80;
const WINDOW_TIMES_MAX: u64 = 3;

/// The shortest stratum that is not warmed as a whole.
pub(super) fn shortest_skipped(plan: &Plan) -> u64 {
    SKIPPED_FROM * plan.warm_instructions
}

/// How long before a window that is warmed for so many instructions the outer caches are reached.
pub(super) fn reaching(warm: u64) -> u64 {
    warm + OUTER * warm
}

/// Where the parts of one stratum lie, counted from its start.
///
/// ```text
/// |.....sssssrrrrrrwwwwwwwwwppMMM...........|   . skipped  s predictor learns  r outer caches too
///       steer reach warm    prime measure end         length    w warmed  p primed  M measured
/// ```
///
/// One that is warmed for longer begins to warm where the outer caches would be reached otherwise: what
/// runs from there on is kept, and the window is looked at again from no more than that.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Stratum {
    pub(super) length: u64,
    /// Where the predictor begins to learn, where lines begin to reach the outer caches, and where
    /// warming begins; the whole stratum is warmed if not skipped.
    pub(super) steer: u64,
    pub(super) reach: u64,
    pub(super) warm: u64,
    pub(super) prime: u64,
    pub(super) measure: u64,
    pub(super) end: u64,
    pub(super) is_skipped: bool,
    /// Whether it is warmed for longer than most.
    pub(super) is_long: bool,
}

impl Stratum {
    /// Lays a stratum of about `length` out at random. One in `long_every` that are skipped is warmed
    /// for longer.
    pub(super) fn new(
        plan: &Plan,
        length: u64,
        long_every: u64,
        mut roll: impl FnMut() -> u64,
    ) -> Stratum {
        let is_skipped = length >= shortest_skipped(plan);
        let usual = plan.window_instructions;
        let window = match is_skipped {
            true => (length / WINDOW_PART).clamp(usual, WINDOW_TIMES_MAX * usual),
            false => usual,
        };
        let timed = plan.prime_instructions + window;
        // No window lies so early that it could not be warmed or primed before, so where strata
        // begin must be left to chance: else some instructions could never be met.
        let length = length * 3 / 4 + roll() % (length / 2).max(1);
        let lay = |least: u64, roll: u64| {
            let prime = least + roll % length.saturating_sub(least + timed).max(1);
            let measure = prime + plan.prime_instructions;
            Stratum { length, prime, measure, end: measure + window, ..Stratum::default() }
        };
        if !is_skipped {
            return lay(0, roll());
        }
        let is_long = roll().is_multiple_of(long_every);
        let stratum = lay(LONGER * plan.warm_instructions, roll());
        let before = |warming: u64| {
            let from = |instructions| stratum.prime.saturating_sub(instructions);
            (from(reaching(warming)), from(warming))
        };
        let times = if is_long { LONGER } else { 1 };
        let (reach, warm) = before(times * plan.warm_instructions);
        let steer = stratum.prime.saturating_sub(STEERED * plan.warm_instructions).min(reach);
        Stratum { steer, reach, warm, is_long, is_skipped: true, ..stratum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strata_are_a_smaller_part_of_a_short_run() {
        let longest = |instructions| super::longest(instructions, 1.0);
        assert_eq!(longest(0), 0);
        assert_eq!(longest(51_200_000 / 2), 100_000);
        assert_eq!(longest(100_000_000), 552_427, "twice as long, √2 times less dense");
        assert_eq!(longest(200_000_000), 200_000_000 / 128);
        assert_eq!(longest(12_800_000_000), 100_000_000);
        let grows = (1..2000).map(|k| longest(k * 1_000_000)).is_sorted();
        assert!(grows, "what may be long stays so");
    }

    #[test]
    fn strata_of_a_calm_run_are_longer() {
        let part = |used| 51_200_000 / longest(51_200_000, used);
        assert_eq!([0.0, 0.25, 0.5, 0.625, 0.75, 1.0].map(part), [64, 64, 64, 100, 144, 252]);
        assert_eq!(longest(200_000_000, 0.0), 2 * longest(200_000_000, 1.0));
    }
}
