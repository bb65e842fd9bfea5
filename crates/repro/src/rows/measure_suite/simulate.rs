//! Seeded experiments with a known truth: how often intervals hold it, how often tests cry wolf.

use metrology::{
    Coverage, Draws, Interval, Look, RESAMPLES, Stopping, bca, compatible, mean, ratio_of_means,
    share, summarise, two_level, warm_up,
};

/// The numbers of runs at which everything is tried.
pub(super) const RUNS: [usize; 4] = [3, 5, 10, 30];
/// Executions in an environment, where there are two levels.
const EXECUTIONS: usize = 2;
/// The relative spread of a run, for planted changes.
const SPREAD: f64 = 0.01;
/// The rate at which groups of the same runs are taken for different: what the command uses.
const FALSE_ALARMS: f64 = 0.01;

/// One share over many experiments.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// What was tried.
    pub(super) part: &'static str,
    /// On what.
    pub(super) case: String,
    /// Runs in an experiment.
    pub(super) runs: usize,
    /// How often it came true, with its interval.
    pub(super) share: f64,
    pub(super) interval: Option<Interval>,
    /// Runs spent over the optimum, where stopping decided how many.
    pub(super) spent: Option<f64>,
}

/// Every experiment, `count` times each.
pub(super) fn all(seed: u64, count: usize) -> Vec<Line> {
    let simulation = Simulation { seed, count };
    let mut lines = simulation.fixed();
    lines.extend(simulation.sequential());
    lines.extend(simulation.compatibility());
    lines.extend(simulation.warm_up());
    lines.extend(simulation.ratios());
    lines
}

struct Simulation {
    seed: u64,
    count: usize,
}

/// A distribution: its name, its mean, a draw.
type Kind = (&'static str, f64, fn(&mut Draws) -> f64);

fn lognormal(draws: &mut Draws, sigma: f64) -> f64 {
    (sigma * draws.normal()).exp()
}

impl Simulation {
    /// One line: an experiment returns whether it came true.
    fn line(
        &self,
        part: &'static str,
        case: impl Into<String>,
        runs: usize,
        mut experiment: impl FnMut(&mut Draws) -> bool,
    ) -> Line {
        let case = case.into();
        // Lines are independent of each other and of their order.
        let name = part
            .bytes()
            .chain(case.bytes())
            .fold(runs as u64, |h, byte| (h ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let mut draws = Draws::new(self.seed ^ name);
        let held = (0..self.count).filter(|_| experiment(&mut draws)).count();
        let found = share(held as u64, self.count as u64, Coverage::P95);
        let (share, interval) = found.map_or((0.0, None), |(share, i)| (share, Some(i)));
        Line { part, case, runs, share, interval, spent: None }
    }

    fn fixed(&self) -> Vec<Line> {
        let kinds: [Kind; 4] = [
            ("normal", 100.0, |d| 100.0 + d.normal()),
            ("lognormal 0.5", 0.125_f64.exp(), |d| lognormal(d, 0.5)),
            ("lognormal 1", 0.5_f64.exp(), |d| lognormal(d, 1.0)),
            ("exponential", 1.0, |d| -d.uniform().ln()),
        ];
        let mut lines = Vec::new();
        for runs in RUNS {
            for (name, truth, draw) in kinds {
                lines.push(self.line("interval holds", name, runs, |draws| {
                    let readings: Vec<f64> = (0..runs).map(|_| draw(draws)).collect();
                    summarise(&readings, Coverage::P95, 1.0)
                        .is_ok_and(|summary| summary.interval.holds(truth))
                }));
            }
            lines.push(self.line("interval holds", "two levels", runs, |draws| {
                let environments: Vec<Vec<f64>> = (0..runs)
                    .map(|_| {
                        let own = 100.0 + draws.normal();
                        (0..EXECUTIONS).map(|_| own + draws.normal()).collect()
                    })
                    .collect();
                two_level(&environments)
                    .is_ok_and(|l| l.estimate.interval(Coverage::P95).holds(100.0))
            }));
            // What the paper claims with k = 3, 99.73 % if anything.
            lines.push(self.line("paper's k = 3 holds", "normal", runs, |draws| {
                let readings: Vec<f64> = (0..runs).map(|_| draws.normal()).collect();
                mean(&readings).is_ok_and(|m| m.value.abs() <= 3.0 * m.standard_uncertainty)
            }));
        }
        lines
    }

    /// Runs until the uncertainty is reached, at spreads for which a known spread would need 3, 5,
    /// 10 and 30 runs.
    fn sequential(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for optimum in RUNS {
            for (name, skew) in [("normal", false), ("lognormal 0.5", true)] {
                let mut spent = 0;
                let mut line = self.line("stopped interval holds", name, optimum, |draws| {
                    let (held, runs) = stopped(draws, optimum, skew);
                    spent += runs;
                    held
                });
                line.spent = Some(spent as f64 / (self.count * optimum) as f64);
                lines.push(line);
            }
        }
        lines
    }

    fn compatibility(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for runs in RUNS {
            for change in [0.0, 0.01, 0.02, 0.05] {
                let part = if change == 0.0 { "false alarm" } else { "change found" };
                let mut overlapped = 0_usize;
                let case = format!("{} % planted", 100.0 * change);
                lines.push(self.line(part, case.clone(), runs, |draws| {
                    let groups = [1.0, 1.0 + change].map(|level| {
                        let one = |_| level * (1.0 + SPREAD * draws.normal());
                        (0..runs).map(one).collect::<Vec<f64>>()
                    });
                    let found = compatible(&groups);
                    overlapped += usize::from(found.is_ok_and(|c| !c.overlap));
                    found.is_ok_and(|c| !c.holds_at(FALSE_ALARMS))
                }));
                let held = share(overlapped as u64, self.count as u64, Coverage::P95);
                lines.extend(held.map(|(share, interval)| Line {
                    part: if change == 0.0 { "paper's false alarm" } else { "paper finds it" },
                    case,
                    runs,
                    share,
                    interval: Some(interval),
                    spent: None,
                }));
            }
        }
        lines
    }

    fn warm_up(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for runs in [5, 10, 30] {
            for (case, slower) in [("none planted", 0.0), ("first run 10 % longer", 0.1)] {
                lines.push(self.line("warm-up seen", case, runs, |draws| {
                    let one = |k| {
                        let level = if k == 0 { 1.0 + slower } else { 1.0 };
                        level * (1.0 + SPREAD * draws.normal())
                    };
                    let readings: Vec<f64> = (0..runs).map(one).collect();
                    warm_up(&readings, FALSE_ALARMS) > 0
                }));
            }
        }
        lines
    }

    /// The bootstrap draws much: fewer experiments.
    fn ratios(&self) -> Vec<Line> {
        let fewer = Simulation { seed: self.seed, count: (self.count / 10).max(1) };
        let of_sums = |pairs: &[(f64, f64)]| {
            let sums = pairs.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
            sums.0 / sums.1
        };
        let pairs = |draws: &mut Draws, runs: usize, sigma: f64| -> Vec<(f64, f64)> {
            // Only one side has a tail: on both it would cancel.
            (0..runs).map(|_| (lognormal(draws, sigma), 1.0 + SPREAD * draws.normal())).collect()
        };
        let mut lines = Vec::new();
        for (case, sigma) in [("lognormal 0.5", 0.5_f64), ("lognormal 1", 1.0)] {
            let truth = (sigma * sigma / 2.0).exp();
            for runs in [5, 10, 30] {
                lines.push(self.line("ratio's interval holds", case, runs, |draws| {
                    let found = ratio_of_means(&pairs(draws, runs, sigma), Coverage::P95);
                    found.ok().flatten().is_some_and(|(_, interval)| interval.holds(truth))
                }));
                lines.push(fewer.line("ratio's bootstrap holds", case, runs, |draws| {
                    let pairs = pairs(draws, runs, sigma);
                    let mut own = Draws::new(draws.bits());
                    bca(&pairs, of_sums, Coverage::P95, RESAMPLES / 4, &mut own)
                        .is_some_and(|interval| interval.holds(truth))
                }));
            }
        }
        lines
    }
}

/// One experiment that looks after every run; whether its interval holds, and its runs.
fn stopped(draws: &mut Draws, optimum: usize, skew: bool) -> (bool, usize) {
    let rule = Stopping { asked: 0.01, coverage: Coverage::P95 };
    // A lognormal's spread is fixed, so what is asked for follows from it instead.
    let relative = (0.25_f64.exp() - 1.0).sqrt();
    let rule = match skew {
        true => Stopping { asked: relative / (optimum as f64).sqrt(), ..rule },
        false => rule,
    };
    let spread = rule.asked * (optimum as f64).sqrt();
    let truth = if skew { 0.125_f64.exp() } else { 1.0 };
    let mut readings: Vec<f64> = Vec::new();
    loop {
        readings.push(if skew { lognormal(draws, 0.5) } else { 1.0 + spread * draws.normal() });
        let Ok(plain) = mean(&readings) else { continue };
        if rule.look(plain) == Look::Stop {
            let held = summarise(&readings, Coverage::P95, rule.factor())
                .is_ok_and(|summary| summary.interval.holds(truth));
            return (held, readings.len());
        }
    }
}

/// The lines of a part and case.
pub(super) fn of<'a>(
    lines: &'a [Line],
    part: &'a str,
    cases: &'a [&'a str],
) -> impl Iterator<Item = &'a Line> {
    lines.iter().filter(move |line| line.part == part && cases.contains(&line.case.as_str()))
}

/// A share as an estimate of a percentage.
pub(super) fn percent(line: &Line) -> (f64, Option<Interval>) {
    (100.0 * line.share, line.interval.map(|interval| interval.scaled(100.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_line_whatever_is_tried_beside_it() {
        let simulation = Simulation { seed: 1, count: 50 };
        let shares = |lines: &[Line]| lines.iter().map(|l| l.share).collect::<Vec<_>>();
        assert_eq!(shares(&simulation.warm_up()), shares(&simulation.warm_up()));
        let other = Simulation { seed: 2, count: 50 };
        assert_ne!(shares(&simulation.fixed()), shares(&other.fixed()));
    }
}
