//! The windows, and what they say of the whole.
//!
//! In each stratum one window was timed, and in a longer stretch around it the features were
//! counted. A regression of the windows' rates on their features tells what the stretch as a whole
//! would have shown; what the window had more or less than the regression says is added:
//!
//! ```text
//! rate of stratum i  =  b · features of its stretch  +  (rate of its window - b · features of it)
//! ```
//!
//! Whatever the coefficients are, that is right on average over where the windows fall; good ones
//! make it vary little. A burst of misses between the windows is in the stretch's features.

use metrology::Estimate;

use super::features::{FEATURES, Features, product};
use super::regression::{Prior, Regression};
use crate::event::{Counts, Event};

/// One stratum.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// Instructions that it stands for.
    pub(super) stands_for: f64,
    /// How much of it was timed, and how much its features are known of.
    pub(super) timed_share: f64,
    pub(super) warmed_share: f64,
    /// Features an instruction: in the window, and where they are known.
    pub(super) window: Features,
    pub(super) stretch: Features,
    /// Events an instruction in the window; empty where the program ended before its window.
    pub(super) rates: Box<[f32]>,
}

impl Observed {
    fn has_window(&self) -> bool {
        !self.rates.is_empty()
    }

    pub(super) fn rate(&self, event: Event) -> f64 {
        self.rates.get(event as usize).map_or(0.0, |&rate| f64::from(rate))
    }
}

/// Strata after which two neighbours become one, so that memory stays bounded: far more than a run
/// of any length makes at the usual growth of strata.
pub(super) const STRATA_MAX: usize = 1 << 14;

/// What windows are off by, as a share, beside what warming for longer shows: they begin with nothing
/// in flight, and predictors and outer caches have seen only a part of what ran. Of four
/// programs that were recorded and sampled, estimates of sqlite, with much code, were 0.7 % high on
/// average, those of the others at most 0.6 % off. Those four cannot judge it.
const WINDOW_BIAS: f64 = 0.008;

/// What is known of one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    /// An instruction, over all strata.
    pub(super) rate: f64,
    pub(super) standard_uncertainty: f64,
    pub(super) degrees_of_freedom: f64,
    /// By how much one window misses its stratum, squared: over the last few, and over all.
    pub(super) lately: f64,
    pub(super) throughout: f64,
}

/// Strata that count as the last few.
const LATELY: usize = 24;

impl Rate {
    /// Over so many instructions, with what was counted for certain besides. Of those, `unseen` were
    /// of code that was never timed: they have this rate on average, give or take all of it. What
    /// windows are off by comes on top (`bias`).
    pub(super) fn spread(self, instructions: f64, certain: f64, unseen: f64) -> Estimate {
        let sampled = Estimate {
            value: (certain + self.rate * instructions).max(certain),
            standard_uncertainty: self.standard_uncertainty * instructions,
            degrees_of_freedom: self.degrees_of_freedom,
        };
        // Anything from nothing to twice the rate is as likely: a rectangle of that half-width.
        sampled.plus(Estimate::known(0.0, self.rate.abs() * unseen / 3.0_f64.sqrt()))
    }

    /// What windows are off by that begin with warmed units and nothing in flight. No number of
    /// windows makes it smaller, so it is not in their spread.
    pub(super) fn bias(self, instructions: f64) -> Estimate {
        Estimate::known(0.0, WINDOW_BIAS * self.rate.abs() * instructions)
    }
}

/// The rate of every event.
#[derive(Clone, Debug)]
pub(super) struct Fitted {
    pub(super) rates: Box<[Rate]>,
}

impl Fitted {
    /// Fits every event. None with fewer windows than tell anything.
    pub(super) fn new(strata: &[Observed], prior: &Prior) -> Option<Fitted> {
        let regression = regression(strata, prior)?;
        let one = |&event: &Event| of_event(strata, &regression, prior, event);
        Some(Fitted { rates: Event::ALL.iter().map(one).collect() })
    }

    /// Fits one event anew.
    pub(super) fn renew(&mut self, event: Event, strata: &[Observed], prior: &Prior) {
        let rate = self.rates.get_mut(event as usize);
        if let (Some(rate), Some(regression)) = (rate, regression(strata, prior)) {
            *rate = of_event(strata, &regression, prior, event);
        }
    }
}

fn regression(strata: &[Observed], prior: &Prior) -> Option<Regression> {
    let timed = || strata.iter().filter(|s| s.has_window());
    if timed().count() < 2 {
        return None;
    }
    let noise = noise(strata, |s| s.rate(Event::Cycles) - product(&s.window, &prior.cycles));
    let weighted = timed().map(|s| (s.stands_for, &s.window));
    Some(Regression::new(weighted, noise, &prior.scale))
}

/// The variance of something over the windows, times their mean weight.
fn noise(strata: &[Observed], of: impl Fn(&Observed) -> f64) -> f64 {
    let timed = || strata.iter().filter(|s| s.has_window());
    let all: f64 = timed().map(|s| s.stands_for).sum();
    let mean = timed().map(|s| s.stands_for * of(s)).sum::<f64>() / all;
    let squares: f64 = timed().map(|s| s.stands_for * (of(s) - mean).powi(2)).sum();
    squares / timed().count().max(1) as f64
}

fn of_event(strata: &[Observed], regression: &Regression, prior: &Prior, event: Event) -> Rate {
    let nothing = [0.0; FEATURES];
    let begin = if event == Event::Cycles { &prior.cycles } else { &nothing };
    let timed = || strata.iter().filter(|s| s.has_window());
    let mut products = [0.0; FEATURES];
    for s in timed() {
        let weighted = s.stands_for * (s.rate(event) - product(&s.window, begin));
        products.iter_mut().zip(&s.window).for_each(|(sum, x)| *sum += weighted * x);
    }
    let mut b = regression.coefficients(&products);
    b.iter_mut().zip(begin).for_each(|(b, begin)| *b += begin);
    let n = timed().count() as f64;
    let all: f64 = strata.iter().map(|s| s.stands_for).sum();
    let in_windows: f64 = timed().map(|s| s.stands_for).sum();
    let left = |s: &Observed| s.rate(event) - product(&s.window, &b);
    let mean_left = timed().map(|s| s.stands_for * left(s)).sum::<f64>() / in_windows;
    // As many windows as coefficients leave nothing over: what is left is larger than it looks.
    let spent = n / (n - FEATURES as f64).max(n / 4.0);
    let (mut sum, mut variance, mut squares) = (0.0, 0.0, 0.0);
    let (mut lately, mut throughout) = (0.0, 0.0);
    let mut before: Option<f64> = None;
    // The first has none before it: the one after it serves as well.
    let mut left_before = timed().nth(1).map(left);
    for (place, s) in strata.iter().enumerate() {
        let told = product(&s.stretch, &b);
        let (more, unknown) = match s.has_window() {
            // Each stratum has its window, so that only what differs within strata is left to
            // chance. Two neighbours differ by that twice, and by a little of how strata differ.
            true => {
                let step = left(s) - left_before.unwrap_or(mean_left);
                left_before = Some(left(s));
                (left(s), step.powi(2) / 2.0 * (1.0 - s.timed_share))
            }
            // Programs end unlike they run: as much as it seems, give or take all of it.
            false => (mean_left, (told + mean_left).powi(2) / 3.0),
        };
        sum += s.stands_for * (told + more);
        let mut own = unknown * spent;
        if let Some(before) = before {
            // Where features are known of a part only, neighbours tell how much the rest may differ.
            own += (told - before).powi(2) / 2.0 * (1.0 - s.warmed_share);
        }
        before = Some(told);
        throughout += own / strata.len() as f64;
        if place + LATELY >= strata.len() {
            lately += own / LATELY.min(strata.len()) as f64;
        }
        let own = own * s.stands_for.powi(2);
        variance += own;
        squares += own * own;
    }
    // What the strata have more of than their windows rests on the coefficients.
    let beyond: Features = std::array::from_fn(|k| {
        let more = |s: &Observed| s.stands_for * (s.stretch[k] - s.window[k]);
        strata.iter().map(more).sum()
    });
    variance += regression.variance(noise(strata, left), &beyond);
    // Satterthwaite: fewer than there are where a few heavy or wild windows make most of it.
    let most = (n - FEATURES as f64).max(1.0);
    let dof = if squares > 0.0 { 2.0 * variance * variance / squares } else { most };
    Rate {
        rate: sum / all,
        standard_uncertainty: variance.sqrt() / all,
        degrees_of_freedom: dof.clamp(1.0, most),
        lately,
        throughout,
    }
}

/// Makes one of every two strata that follow each other.
pub(super) fn halve(strata: &mut Vec<Observed>) {
    let both = |a: f64, b: f64, (u, v): (f64, f64)| (a * u + b * v) / (u + v).max(1.0);
    let halves: Vec<Observed> = strata
        .chunks(2)
        .filter_map(|pair| match pair {
            [a, b] => {
                let w = (a.stands_for, b.stands_for);
                let features =
                    |x: &Features, y: &Features| std::array::from_fn(|k| both(x[k], y[k], w));
                let rates = a.rates.iter().zip(&b.rates);
                Some(Observed {
                    stands_for: w.0 + w.1,
                    timed_share: both(a.timed_share, b.timed_share, w),
                    warmed_share: both(a.warmed_share, b.warmed_share, w),
                    window: features(&a.window, &b.window),
                    stretch: features(&a.stretch, &b.stretch),
                    rates: rates
                        .map(|(&a, &b)| both(f64::from(a), f64::from(b), w) as f32)
                        .collect(),
                })
            }
            [a] => Some(a.clone()),
            _ => None,
        })
        .collect();
    *strata = halves;
}

/// The rates of a window.
pub(super) fn rates_of(counts: &Counts) -> Box<[f32]> {
    let instructions = counts[Event::Instructions].max(1) as f32;
    counts.0.iter().map(|&count| count as f32 / instructions).collect()
}
