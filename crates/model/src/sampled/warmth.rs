//! How long warming is, and what is known of whether that will do.

use metrology::Estimate;

/// A program's bias may be so large a part of the error asked for before warming is made longer.
const BIAS_PART: f64 = 1.0 / 6.0;
/// Looks that must be had before it is.
const LOOKS_MIN: f64 = 6.0;
/// Looks that are taken soon; later ones are rarer, since each takes as long as several windows.
const LOOKS_SOON: f64 = 12.0;
const SOON_EVERY: u64 = 3;
const LATER_EVERY: u64 = 16;
/// Warming is never made longer than so many times what it began with.
const TIMES_MAX: u64 = 16;

/// Windows that were looked at twice while warming was so long, as sums of cycles an instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    count: f64,
    short: f64,
    more: f64,
    more_squares: f64,
    /// Instructions of the strata that were warmed for no longer.
    stood_for: u64,
}

impl Looks {
    /// How much more cycles longer warming shows, as a share; none from fewer than two.
    fn longer(&self) -> Option<Estimate> {
        if self.count < 2.0 || self.short <= 0.0 {
            return None;
        }
        let mean = self.more / self.count;
        let squares = (self.more_squares - self.count * mean * mean).max(0.0);
        let variance = squares / (self.count - 1.0) / self.count;
        let each = self.short / self.count;
        Some(Estimate {
            value: mean / each,
            standard_uncertainty: variance.sqrt() / each,
            degrees_of_freedom: self.count - 1.0,
        })
    }
}

/// Every length that warming had, the present one last.
#[derive(Clone, Debug)]
pub(super) struct Warmth {
    looks: Vec<Looks>,
    /// How many times longer it is than in the beginning.
    times: u64,
}

impl Warmth {
    pub(super) fn new() -> Warmth {
        Warmth { looks: vec![Looks::default()], times: 1 }
    }

    /// Forgets what was seen, not how long warming must be.
    pub(super) fn begin_anew(&mut self) {
        self.looks = vec![Looks::default()];
    }

    /// One stratum in so many is to be warmed for longer and looked at twice.
    pub(super) fn long_every(&self) -> u64 {
        let count = self.looks.last().map_or(0.0, |looks| looks.count);
        if count < LOOKS_SOON { SOON_EVERY } else { LATER_EVERY }
    }

    /// A stratum of so many instructions was warmed for no longer than usual.
    pub(super) fn stood_for(&mut self, instructions: u64) {
        if let Some(looks) = self.looks.last_mut() {
            looks.stood_for += instructions;
        }
    }

    /// A window took so many cycles an instruction after longer warming, and so many after the usual.
    /// Says how many times as long warming must be from now on for the error asked for.
    pub(super) fn note(&mut self, long: f64, short: f64, error: f64) -> u64 {
        let Some(looks) = self.looks.last_mut() else { return 1 };
        looks.count += 1.0;
        looks.short += short;
        looks.more += long - short;
        looks.more_squares += (long - short).powi(2);
        let Some(longer) = looks.longer().filter(|_| looks.count >= LOOKS_MIN) else { return 1 };
        let (bias, u) = (longer.value.abs(), longer.standard_uncertainty);
        if bias < BIAS_PART * error || bias < 2.0 * u || self.times >= TIMES_MAX {
            return 1;
        }
        let more = if bias > error / 2.0 { 4 } else { 2 };
        let more = more.min(TIMES_MAX / self.times);
        self.times *= more;
        self.looks.push(Looks::default());
        more
    }

    /// How much more cycles a run of so many instructions would have shown, as a share, had all its
    /// windows been warmed for longer; none where that was not looked at.
    pub(super) fn longer(&self, instructions: u64) -> Option<Estimate> {
        let (mut sum, mut known): (Option<Estimate>, Option<Estimate>) = (None, None);
        for looks in &self.looks {
            // A length that was not looked at is no worse than the shorter one before it.
            known = looks.longer().or(known);
            let share = looks.stood_for as f64 / instructions.max(1) as f64;
            let part = known.map(|longer| longer.scaled(share));
            sum = match (sum, part) {
                (Some(sum), Some(part)) => Some(sum.plus(part)),
                (sum, part) => part.or(sum),
            };
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warming_is_made_longer_until_longer_warming_shows_nothing() {
        let mut warmth = Warmth::new();
        let looks = |warmth: &mut Warmth, bias: f64| -> u64 {
            let spread = [0.99, 1.01, 1.0, 0.98, 1.02, 1.0];
            spread.iter().map(|cpi| warmth.note(cpi * (1.0 + bias), *cpi, 0.03)).product()
        };
        assert_eq!(looks(&mut warmth, -0.02), 4, "more than half of the error");
        assert_eq!(looks(&mut warmth, -0.008), 2);
        assert_eq!(looks(&mut warmth, -0.002), 1, "little enough");
    }

    #[test]
    fn chance_does_not_make_it_longer_and_there_is_an_end() {
        let mut warmth = Warmth::new();
        let noisy = [1.1, 0.9, 1.2, 0.9, 1.1, 0.95, 0.9, 1.1];
        assert!(noisy.iter().all(|long| warmth.note(*long, 1.0, 0.03) == 1));
        let all: u64 = (0..100).map(|_| warmth.note(0.8, 1.0, 0.03)).product();
        assert_eq!(all, TIMES_MAX);
    }

    #[test]
    fn what_longer_warming_shows_is_weighted_by_what_was_warmed_for_less() {
        let mut warmth = Warmth::new();
        (0..6).for_each(|_| assert!(warmth.note(0.96, 1.0, 1.0) == 1));
        assert_eq!(warmth.longer(100).unwrap().value, 0.0, "nothing was warmed for less");
        warmth.stood_for(25);
        let longer = warmth.longer(100).unwrap();
        assert!((longer.value + 0.01).abs() < 1e-9, "{}", longer.value);
        assert!(longer.standard_uncertainty < 1e-6);
        warmth.begin_anew();
        assert_eq!(warmth.longer(100), None);
    }
}
