//! How long warming is, and what is known of whether that will do.

use metrology::Estimate;

use super::recalled::Look;

/// A program's bias may be so large a part of the error asked for before warming is made longer.
const BIAS_PART: f64 = 1.0 / 6.0;
/// Looks that must be had before it is, and how many times its uncertainty a bias must be: it is looked
/// at after every window, so that chance has many tries, and longer warming costs much.
const LOOKS_MIN: f64 = 6.0;
const SURE: f64 = 3.0;
/// The same of what was lacked: that hardly ever is less after less warming, whatever chance does.
const SURE_OF_LACKED: f64 = 2.0;
/// Looks that are taken soon, and those that are still taken often; later ones are rarer, since each
/// takes as long as several windows.
const LOOKS_SOON: f64 = 12.0;
const LOOKS_OFTEN: f64 = 24.0;
const SOON_EVERY: u64 = 3;
const OFTEN_EVERY: u64 = 16;
const LATER_EVERY: u64 = 48;
/// Warming is never made longer than so many times what it began with, and never shorter than that:
/// looks do not see what a predictor learns over millions of instructions.
const TIMES_MAX: u64 = 16;
/// Half of it is tried whenever the run is so many times as long as when that was last judged: what was seen
/// then was of a part that is half of what there is by now, and its strata were shorter.
const AGAIN: u64 = 2;
/// Strata that become so many times shorter at once show that the program does something else now.
const CUT: u64 = 4;
/// That is believed again when the run is longer by one part in so many.
const ELSE_PART: u64 = 8;

/// Windows that were looked at after long warming and after shorter, as sums of cycles an
/// instruction.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: f64,
    short: f64,
    more: f64,
    more_squares: f64,
}

impl Sums {
    fn note(&mut self, long: f64, short: f64) {
        self.count += 1.0;
        self.short += short;
        self.more += long - short;
        self.more_squares += (long - short).powi(2);
    }

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

/// The same windows by their cycles, and where what was lacked stands for what differs.
#[derive(Clone, Copy, Debug, Default)]
struct Both {
    cycles: Sums,
    lacked: Sums,
}

impl Both {
    fn note(&mut self, long: Look, short: Look) {
        self.cycles.note(long.cycles, short.cycles);
        self.lacked.note(short.cycles + long.lacked - short.lacked, short.cycles);
    }

    /// How much more cycles longer warming shows, by both, once there are enough looks; and how many
    /// times its uncertainty that must be.
    fn longer(&self, least: f64) -> impl Iterator<Item = (Estimate, f64)> {
        let is_enough = self.cycles.count >= least;
        let both = [(self.cycles, SURE), (self.lacked, SURE_OF_LACKED)].into_iter();
        both.filter(move |_| is_enough).filter_map(|(sums, sure)| Some((sums.longer()?, sure)))
    }
}

/// What was seen while warming had one length.
#[derive(Clone, Copy, Debug, Default)]
struct Looks {
    /// After that length, and after half of it.
    usual: Both,
    half: Both,
    /// Instructions of the strata that were warmed for no longer.
    stood_for: u64,
}

/// Every length that warming had, the present one last.
#[derive(Clone, Debug)]
pub(super) struct Warmth {
    looks: Vec<Looks>,
    /// How many times longer it is than in the beginning.
    times: u64,
    /// Instructions that had run when that was last judged.
    judged_at: u64,
    /// And when the program last began to do something else.
    else_at: u64,
}

impl Warmth {
    pub(super) fn new() -> Warmth {
        Warmth { looks: vec![Looks::default()], times: 1, judged_at: 0, else_at: 0 }
    }

    /// Forgets what was seen, not how long warming must be.
    pub(super) fn begin_anew(&mut self) {
        self.looks = vec![Looks::default()];
        (self.judged_at, self.else_at) = (0, 0);
    }

    /// After so many instructions strata have another length. If they are far shorter, what windows show
    /// has changed, and how long warming must be is not known any more: it was found where the program did
    /// something else. Long warming would be dear just there, since short strata are warmed whole then.
    pub(super) fn strata_change(&mut self, before: u64, now: u64, instructions: u64) {
        let is_else = now.saturating_mul(CUT) <= before;
        if is_else && self.times > 1 && instructions >= self.else_at + self.else_at / ELSE_PART {
            self.times = 1;
            self.looks.push(Looks::default());
            (self.judged_at, self.else_at) = (0, instructions);
        }
    }

    /// A stratum begins after so many instructions: how many times what it began with warming must be for
    /// it. If half of what it was does not do, looks say so before long, since the first are taken soon.
    ///
    /// ```text
    /// times  1 ....4444444422222222 2222 44444444444444442222
    ///              ^       ^             ^
    ///              off     twice as long |   off again: judged anew from here
    /// ```
    pub(super) fn try_less(&mut self, instructions: u64) -> u64 {
        let is_due = instructions >= AGAIN.saturating_mul(self.judged_at);
        if self.times > 1 && is_due {
            if self.judged_at > 0 {
                self.times /= 2;
                self.looks.push(Looks::default());
            }
            self.judged_at = instructions;
        }
        self.times
    }

    /// One stratum in so many is to be warmed for longer and looked at again.
    pub(super) fn long_every(&self) -> u64 {
        match self.looks.last().map_or(0.0, |looks| looks.usual.cycles.count) {
            ..LOOKS_SOON => SOON_EVERY,
            ..LOOKS_OFTEN => OFTEN_EVERY,
            _ => LATER_EVERY,
        }
    }

    /// Whether half the warming is worth a look: it may do, and that is not known yet.
    pub(super) fn asks_for_half(&self) -> bool {
        let looked = self.looks.last().map_or(0.0, |looks| looks.half.cycles.count);
        self.times > 1 && looked < LOOKS_OFTEN
    }

    /// A stratum of so many instructions was warmed for no longer than usual.
    pub(super) fn stood_for(&mut self, instructions: u64) {
        if let Some(looks) = self.looks.last_mut() {
            looks.stood_for += instructions;
        }
    }

    /// What a window looked like after longer warming, after the usual, and perhaps after half of that.
    /// Says how many times what it began with warming must be from now on for the error asked for.
    pub(super) fn note(&mut self, long: Look, short: Look, half: Option<Look>, error: f64) -> u64 {
        let allowed = BIAS_PART * error;
        let Some(looks) = self.looks.last_mut() else { return self.times };
        looks.usual.note(long, short);
        if let Some(half) = half {
            looks.half.note(long, half);
        }
        let is_off = looks.usual.longer(LOOKS_MIN).any(|(longer, sure)| {
            let bias = longer.value.abs();
            bias >= allowed && bias >= sure * longer.standard_uncertainty
        });
        let half_will_do = self.times > 1
            && looks.half.cycles.count >= LOOKS_SOON
            && looks.half.longer(LOOKS_SOON).all(|(longer, _)| {
                longer.value.abs() + 2.0 * longer.standard_uncertainty < allowed
            });
        let next = if is_off && self.times < TIMES_MAX {
            let is_far_off =
                looks.usual.longer(LOOKS_MIN).any(|(l, _)| l.value.abs() > error / 2.0);
            self.times = (self.times * if is_far_off { 4 } else { 2 }).min(TIMES_MAX);
            Looks::default()
        } else if half_will_do {
            self.times /= 2;
            Looks { usual: looks.half, ..Looks::default() }
        } else {
            return self.times;
        };
        self.looks.push(next);
        // From the next stratum on.
        self.judged_at = 0;
        self.times
    }

    /// How much more cycles a run of so many instructions would have shown, as a share, had all its
    /// windows been warmed for longer; none where that was not looked at.
    pub(super) fn longer(&self, instructions: u64) -> Option<Estimate> {
        let (mut sum, mut known): (Option<Estimate>, Option<Estimate>) = (None, None);
        for looks in &self.looks {
            // A length that was not looked at is longer than the one before it, and no worse.
            known = looks.usual.cycles.longer().or(known);
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

    fn look(cycles: f64) -> Look {
        Look { cycles, lacked: 0.0 }
    }

    /// Looks at one window.
    fn note(warmth: &mut Warmth, long: f64, short: f64, half: Option<f64>) -> u64 {
        warmth.note(look(long), look(short), half.map(look), 0.03)
    }

    #[test]
    fn warming_is_made_longer_until_longer_warming_shows_nothing() {
        let mut warmth = Warmth::new();
        let looks = |warmth: &mut Warmth, bias: f64| -> u64 {
            let spread = [0.99, 1.01, 1.0, 0.98, 1.02, 1.0];
            let looked = spread.iter().map(|cpi| note(warmth, cpi * (1.0 + bias), *cpi, None));
            looked.last().unwrap()
        };
        assert_eq!(looks(&mut warmth, -0.02), 4, "more than half of the error");
        assert_eq!(looks(&mut warmth, -0.008), 8);
        assert_eq!(looks(&mut warmth, -0.002), 8, "little enough");
    }

    #[test]
    fn warming_is_made_shorter_once_half_is_proved_to_do() {
        let mut warmth = Warmth::new();
        assert!(!warmth.asks_for_half(), "never less than in the beginning");
        let longer = (0..6).map(|_| note(&mut warmth, 1.0, 1.01, None)).last();
        assert_eq!(longer, Some(2));
        assert!(warmth.asks_for_half());
        for k in 1..=11 {
            assert_eq!(note(&mut warmth, 1.0, 1.001, Some(1.002)), 2, "{k} looks are too few");
        }
        warmth.stood_for(100);
        assert_eq!(note(&mut warmth, 1.0, 1.001, Some(1.002)), 1);
        assert!(!warmth.asks_for_half());
        assert_eq!(warmth.long_every(), OFTEN_EVERY, "what was seen of it still counts");
        warmth.stood_for(100);
        let longer = warmth.longer(200).unwrap().value;
        let (usual, half) = (1.0 / 1.001 - 1.0, 1.0 / 1.002 - 1.0);
        assert!((longer - (usual + half) / 2.0).abs() < 1e-9, "{longer}");
        // If it does no longer do, it is made longer again.
        let times = (0..30).map(|_| note(&mut warmth, 1.0, 1.02, None)).max();
        assert!(times > Some(1));
    }

    #[test]
    fn half_is_tried_whenever_a_run_is_twice_as_long_and_not_kept_where_it_is_off() {
        let mut warmth = Warmth::new();
        assert_eq!(warmth.try_less(1000), 1, "never less than in the beginning");
        let off = |warmth: &mut Warmth| (0..6).map(|_| note(warmth, 1.0, 1.02, None)).last();
        assert_eq!(off(&mut warmth), Some(4));
        assert_eq!([1001, 1500, 2001, 2002, 4003].map(|at| warmth.try_less(at)), [4, 4, 4, 2, 2]);
        assert_eq!(off(&mut warmth), Some(8));
        assert_eq!([5000, 9999, 10_000].map(|at| warmth.try_less(at)), [8, 8, 4]);
        warmth.begin_anew();
        assert_eq!([10, 19, 20, 40, 80].map(|at| warmth.try_less(at)), [4, 4, 2, 1, 1]);
    }

    #[test]
    fn warming_is_as_in_the_beginning_where_a_program_does_something_else() {
        let mut warmth = Warmth { times: 16, ..Warmth::new() };
        warmth.strata_change(4000, 1001, 500_000);
        assert_eq!(warmth.times, 16, "a little shorter");
        warmth.strata_change(4000, 1000, 800_000);
        assert_eq!(warmth.times, 1);
        assert_eq!(warmth.long_every(), SOON_EVERY, "nothing is known of it");
        warmth.times = 4;
        warmth.strata_change(4000, 40, 899_999);
        assert_eq!(warmth.times, 4, "not again and again");
        warmth.strata_change(4000, 40, 900_000);
        assert_eq!(warmth.times, 1);
    }

    #[test]
    fn half_the_warming_does_not_do_where_chance_is_all_that_is_known_of_it() {
        let mut warmth = Warmth { times: 2, ..Warmth::new() };
        let noisy = [1.01, 0.99, 1.02, 0.99, 1.01, 0.98];
        for half in noisy.iter().cycle().take(24) {
            assert_eq!(note(&mut warmth, 1.0, 1.0, Some(*half)), 2);
        }
        assert!(!warmth.asks_for_half(), "after so many looks it is left alone");
    }

    #[test]
    fn chance_does_not_make_it_longer_and_there_is_an_end() {
        let mut warmth = Warmth::new();
        let noisy = [1.1, 0.9, 1.2, 0.9, 1.1, 0.95, 0.9, 1.1];
        assert!(noisy.iter().all(|long| note(&mut warmth, *long, 1.0, None) == 1));
        let longest = (0..100).map(|_| note(&mut warmth, 0.8, 1.0, None)).max();
        assert_eq!(longest, Some(TIMES_MAX));
    }

    #[test]
    fn what_longer_warming_shows_is_weighted_by_what_was_warmed_for_less() {
        let mut warmth = Warmth::new();
        (0..6).for_each(|_| assert!(warmth.note(look(0.96), look(1.0), None, 1.0) == 1));
        assert_eq!(warmth.longer(100).unwrap().value, 0.0, "nothing was warmed for less");
        warmth.stood_for(25);
        let longer = warmth.longer(100).unwrap();
        assert!((longer.value + 0.01).abs() < 1e-9, "{}", longer.value);
        assert!(longer.standard_uncertainty < 1e-6);
        warmth.begin_anew();
        assert_eq!(warmth.longer(100), None);
    }

    #[test]
    fn what_was_lacked_tells_a_bias_that_few_windows_show() {
        let mut warmth = Warmth::new();
        let wild = [1.1, 0.9, 1.2, 0.9, 1.05, 0.88];
        let short = Look { cycles: 1.0, lacked: 0.5 };
        let times =
            wild.map(|cycles| warmth.note(Look { cycles, lacked: 0.49 }, short, None, 0.03));
        assert_eq!(times, [1, 1, 1, 1, 1, 2]);
    }
}
