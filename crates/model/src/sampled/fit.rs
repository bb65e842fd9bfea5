//! Fits what windows showed, and says how well that is known.

use metrology::Estimate;

use super::features::{FEATURES, Features, Known, product};
use super::observed::Observed;
use super::regression::{Prior, Regression};
use crate::event::{Counts, Event};

/// What windows are off by, as a share, beside what warming for longer shows: they begin with nothing
/// in flight, and predictors and outer caches have seen only a part of what ran. The root mean square
/// of what seventeen programs were off by on average over twelve seeds, less what chance makes of
/// that: 0.42 % on standard inputs, 0.46 on short ones with four seeds. These cannot judge it.
const WINDOW_BIAS: f64 = 0.0045;

/// A stratum that has so many times as much of a feature as any window is unlike them all.
const BEYOND: f64 = 2.0;

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
        let bases = bases(strata, prior)?;
        let one = |&event: &Event| of_event(strata, &bases, prior, event);
        Some(Fitted { rates: Event::ALL.iter().map(one).collect() })
    }

    /// An event over the whole run: what was counted for certain, and its rate over the rest.
    pub(super) fn total(&self, certain: &Counts, event: Event, rest: u64, unseen: f64) -> Estimate {
        let (rate, rest) = (self.rates[event as usize], rest as f64);
        rate.spread(rest, certain[event] as f64, unseen).plus(rate.bias(rest))
    }

    /// Fits one event anew.
    pub(super) fn renew(&mut self, event: Event, strata: &[Observed], prior: &Prior) {
        let rate = self.rates.get_mut(event as usize);
        if let (Some(rate), Some(bases)) = (rate, bases(strata, prior)) {
            *rate = of_event(strata, &bases, prior, event);
        }
    }
}

fn timed(strata: &[Observed]) -> impl Iterator<Item = &Observed> {
    strata.iter().filter(|s| s.has_window())
}

/// What all events are fitted on, for strata of which so much is known.
struct Basis {
    known: Known,
    regression: Regression,
}

/// A basis for each kind of strata that there is. Of windows everything is known, so that all of them
/// serve each.
fn bases(strata: &[Observed], prior: &Prior) -> Option<Vec<Basis>> {
    if timed(strata).count() < 2 {
        return None;
    }
    let is_there = |known: &Known| strata.iter().any(|s| s.known == *known);
    let basis = |known: Known| {
        let cycles = known.of(&prior.cycles);
        let noise = noise(strata, |s| s.rate(Event::Cycles) - product(&s.window, &cycles));
        let weighted = timed(strata).map(|s| (s.stands_for, known.of(&s.window)));
        Basis { known, regression: Regression::new(weighted, noise, &prior.scale) }
    };
    Some(Known::KINDS.into_iter().filter(is_there).map(basis).collect())
}

/// The variance of something over the windows, times their mean weight.
fn noise(strata: &[Observed], of: impl Fn(&Observed) -> f64) -> f64 {
    let all: f64 = timed(strata).map(|s| s.stands_for).sum();
    let mean = timed(strata).map(|s| s.stands_for * of(s)).sum::<f64>() / all;
    let squares: f64 = timed(strata).map(|s| s.stands_for * (of(s) - mean).powi(2)).sum();
    squares / timed(strata).count().max(1) as f64
}

/// What one event is told from in one kind of strata.
struct Line<'a> {
    basis: &'a Basis,
    event: Event,
    coefficients: Features,
    /// What windows have on average that the coefficients do not tell.
    mean_left: f64,
    /// As many windows as coefficients leave nothing over: what is left is larger than it looks by
    /// this factor.
    spent: f64,
}

impl Line<'_> {
    fn new<'a>(strata: &[Observed], basis: &'a Basis, prior: &Prior, event: Event) -> Line<'a> {
        let nothing = [0.0; FEATURES];
        let begin = basis.known.of(if event == Event::Cycles { &prior.cycles } else { &nothing });
        let mut products = [0.0; FEATURES];
        for s in timed(strata) {
            let weighted = s.stands_for * (s.rate(event) - product(&s.window, &begin));
            let window = basis.known.of(&s.window);
            products.iter_mut().zip(window).for_each(|(sum, x)| *sum += weighted * x);
        }
        let mut coefficients = basis.regression.coefficients(&products);
        coefficients.iter_mut().zip(begin).for_each(|(b, begin)| *b += begin);
        let n = timed(strata).count() as f64;
        let spent = n / (n - basis.known.count()).max(n / 4.0);
        let mut line = Line { basis, event, coefficients, mean_left: 0.0, spent };
        let all: f64 = timed(strata).map(|s| s.stands_for).sum();
        line.mean_left = timed(strata).map(|s| s.stands_for * line.left(s)).sum::<f64>() / all;
        line
    }

    fn told(&self, s: &Observed) -> f64 {
        product(&s.stretch, &self.coefficients)
    }

    /// What the coefficients make of that part of a stratum's features which no window came near. How
    /// long one miss takes was seen where misses are rare; where they come in crowds a core waits for
    /// many at once, so that it may be anything from nothing to this. Of what is counted, and not timed,
    /// there is no such part.
    fn beyond_all(&self, s: &Observed, most: &Features) -> f64 {
        if !(Event::Cycles..=Event::L1dPending).contains(&self.event) {
            return 0.0;
        }
        let beyond = std::array::from_fn(|k| (s.stretch[k] - BEYOND * most[k]).max(0.0));
        product(&self.basis.known.of(&beyond), &self.coefficients)
    }

    fn left(&self, s: &Observed) -> f64 {
        s.rate(self.event) - product(&s.window, &self.coefficients)
    }

    /// What strata of this kind have more of than their windows rests on the coefficients.
    fn variance(&self, strata: &[Observed]) -> f64 {
        let known = self.basis.known;
        let mut beyond = [0.0; FEATURES];
        for s in strata.iter().filter(|s| s.known == known) {
            let more = known.of(&s.stretch).into_iter().zip(known.of(&s.window));
            let sums = beyond.iter_mut().zip(more);
            sums.for_each(|(sum, (all, window))| *sum += s.stands_for * (all - window));
        }
        self.basis.regression.variance(noise(strata, |s| self.left(s)), &beyond)
    }
}

/// The most of each feature that a window showed.
fn most_in_windows(strata: &[Observed]) -> Features {
    timed(strata).fold([0.0; FEATURES], |most, s| std::array::from_fn(|k| most[k].max(s.window[k])))
}

fn of_event(strata: &[Observed], bases: &[Basis], prior: &Prior, event: Event) -> Rate {
    let lines: Vec<Line> =
        bases.iter().map(|basis| Line::new(strata, basis, prior, event)).collect();
    let (mut sum, mut variance, mut squares) = (0.0, 0.0, 0.0);
    let (mut lately, mut throughout) = (0.0, 0.0);
    let most = most_in_windows(strata);
    // The first has none before it: the one after it serves as well.
    let mut before = timed(strata).nth(1);
    for (place, s) in strata.iter().enumerate() {
        let Some(line) = lines.iter().find(|line| line.basis.known == s.known) else { continue };
        let beyond = line.beyond_all(s, &most);
        let told = line.told(s) - beyond / 2.0;
        let (more, unknown) = match s.has_window() {
            // Each stratum has its window, so that only what differs within strata is left to
            // chance. Two neighbours differ by that twice, and by a little of how strata differ.
            true => {
                let left = line.left(s);
                let step = left - before.map_or(line.mean_left, |before| line.left(before));
                before = Some(s);
                let untimed = 1.0 - (s.timed / s.stands_for).min(1.0);
                (left, step.powi(2) / 2.0 * untimed)
            }
            // Programs end unlike they run: as much as it seems, give or take all of it.
            false => (line.mean_left, (told + line.mean_left).powi(2) / 3.0),
        };
        sum += s.stands_for * (told + more);
        let own = unknown * line.spent;
        throughout += own / strata.len() as f64;
        if place + LATELY >= strata.len() {
            lately += own / LATELY.min(strata.len()) as f64;
        }
        let own = own * s.stands_for.powi(2);
        // Anything from nothing to all of it is as likely, which no number of windows told.
        variance += own + (beyond * s.stands_for).powi(2) / 12.0;
        squares += own * own;
    }
    variance += lines.iter().map(|line| line.variance(strata)).sum::<f64>();
    // Satterthwaite: fewer than there are where a few heavy or wild windows make most of it.
    let most = (timed(strata).count() as f64 - FEATURES as f64).max(1.0);
    let dof = if squares > 0.0 { 2.0 * variance * variance / squares } else { most };
    let all: f64 = strata.iter().map(|s| s.stands_for).sum();
    Rate {
        rate: sum / all,
        standard_uncertainty: variance.sqrt() / all,
        degrees_of_freedom: dof.clamp(1.0, most),
        lately,
        throughout,
    }
}

#[cfg(test)]
mod tests;
