//! Two commands in turns, and the interval of their ratio.
//!
//! ```text
//! pair 1   A B      the order within a pair is drawn; both run in the same surroundings
//! pair 2   B A      ratio of the means, with the covariance of the pairs: what slows both
//! pair 3   B A      runs of a pair does not widen it
//! ```

mod view;

use std::time::Instant;

use metrology::{
    Coverage, Draws, Estimate, Interval, Look, RESAMPLES, Stopping, bca, peeking_factor,
    ratio_of_means, spent_at_look, summarise, warm_up,
};

use super::conditions::Conditions;
use super::experiment::Ended;
use super::live::Live;
use super::quantity::Choice;
use super::source::{Ending, Execution, Source};
use super::{FOUND, groups::Turns};
use crate::cli::{MeasureJob, WarmUp};
use crate::failure::{ERROR, Failure};
use crate::output::Output;

/// Pairs that were no warm-up are taken for one this often.
const WARM_UP_FALSE_ALARMS: f64 = 0.01;
/// A command that failed so often without ever succeeding will not succeed.
const FAILURES_MAX: u64 = 3;

/// Both executions of a pair, A first.
type Pair = [Execution; 2];

/// What became of the pairs.
#[derive(Debug)]
struct Pairs {
    pairs: Vec<Pair>,
    started: u64,
    warm_up: u64,
    /// Of A and of B.
    failed: [u64; 2],
    ended: Ended,
    seconds: f64,
}

impl Pairs {
    /// A quantity's values in pairs where both were measured.
    fn values(&self, quantity: usize) -> Vec<(f64, f64)> {
        let value = |e: &Execution| e.values.get(quantity).copied().flatten();
        self.pairs.iter().filter_map(|[a, b]| value(a).zip(value(b))).collect()
    }
}

/// B over A.
#[derive(Clone, Copy, Debug)]
struct Ratio {
    estimate: Estimate,
    interval: Interval,
    is_bootstrapped: bool,
}

/// What the ratio says about a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// B surely takes more than allowed.
    Slower,
    /// B surely does not.
    Within,
    /// The interval holds the limit.
    Undecided,
}

pub(super) fn compare(job: &MeasureJob, choice: &Choice, output: &Output) -> Result<u8, Failure> {
    let [a, b] = job.commands.as_slice() else {
        return Err(Failure::new(ERROR, "two commands are compared, no more and no fewer"));
    };
    let sources = [Source::new(job, a)?, Source::new(job, b)?];
    let turns = Turns::plan(choice, job)?;
    let pairs = Comparison::new(job, choice, &turns, &sources, !output.json).run()?;
    let widening = if job.runs.is_some() { 1.0 } else { peeking_factor(job.coverage) };
    let ratios: Vec<Option<Ratio>> = (0..choice.quantities.len())
        .map(|place| ratio(&pairs.values(place), job.coverage, widening, job.seed))
        .collect();
    let Some(main) = ratios.get(choice.measurand).copied().flatten() else {
        let name = choice.measurand().map_or("the measurand", |m| m.name.as_str());
        return Err(Failure::new(ERROR, format!("{name} was zero, and nothing is a part of zero"))
            .remedy("name another --measurand"));
    };
    let verdict = judge(main.interval, job.fail_above);
    output.write(&view::view(job, choice, &sources, &pairs, &ratios, main, verdict))?;
    Ok(if verdict == Some(Verdict::Slower) { FOUND } else { 0 })
}

/// None where no limit was given.
fn judge(interval: Interval, limit: Option<f64>) -> Option<Verdict> {
    let limit = 1.0 + limit?;
    Some(match interval {
        i if i.low > limit => Verdict::Slower,
        i if i.high <= limit => Verdict::Within,
        _ => Verdict::Undecided,
    })
}

/// The ratio of the means; where readings of either side are skewed, its interval comes from the
/// pairs themselves. None where a mean is not positive.
fn ratio(pairs: &[(f64, f64)], coverage: Coverage, widening: f64, seed: u64) -> Option<Ratio> {
    let b_over_a: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (*b, *a)).collect();
    let (plain, _) = ratio_of_means(&b_over_a, coverage).ok()??;
    let estimate =
        Estimate { standard_uncertainty: plain.standard_uncertainty * widening, ..plain };
    let value = estimate.value;
    let half = estimate.half_width(coverage) / value;
    let by_student = Interval { low: value * (-half).exp(), high: value * half.exp(), coverage };
    let drawn = is_skewed(pairs, coverage)
        .then(|| bca(&b_over_a, ratio_of_sums, coverage, RESAMPLES, &mut Draws::new(seed)))
        .flatten();
    let widened = drawn.map(|i| Interval {
        low: value - (value - i.low) * widening,
        high: value + (i.high - value) * widening,
        coverage,
    });
    let is_bootstrapped = widened.is_some();
    Some(Ratio { estimate, interval: widened.unwrap_or(by_student), is_bootstrapped })
}

fn is_skewed(pairs: &[(f64, f64)], coverage: Coverage) -> bool {
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let skewed = |side: &[f64]| summarise(side, coverage, 1.0).is_ok_and(|s| s.is_skewed());
    skewed(&a) || skewed(&b)
}

fn ratio_of_sums(pairs: &[(f64, f64)]) -> f64 {
    let sums = pairs.iter().fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    sums.0 / sums.1
}

/// A comparison under way.
struct Comparison<'a> {
    job: &'a MeasureJob,
    choice: &'a Choice,
    turns: &'a Turns,
    sources: &'a [Source<'a>; 2],
    draws: Draws,
    live: Live,
    began: Instant,
    looks: u32,
    pairs: Pairs,
}

impl<'a> Comparison<'a> {
    fn new(
        job: &'a MeasureJob,
        choice: &'a Choice,
        turns: &'a Turns,
        sources: &'a [Source<'a>; 2],
        talks: bool,
    ) -> Comparison<'a> {
        Comparison {
            job,
            choice,
            turns,
            sources,
            draws: Draws::new(job.seed),
            live: Live::new(talks),
            began: Instant::now(),
            looks: 0,
            pairs: Pairs {
                pairs: Vec::new(),
                started: 0,
                warm_up: 0,
                failed: [0; 2],
                ended: Ended::Reached,
                seconds: 0.0,
            },
        }
    }

    fn run(mut self) -> Result<Pairs, Failure> {
        let rule = Stopping { asked: self.job.uncertainty, coverage: self.job.coverage };
        let ended = loop {
            if let Some(ended) = self.pair()? {
                break ended;
            }
            self.drop_warm_up();
            let made = self.pairs.pairs.len() as u64;
            match self.job.runs {
                Some(runs) if made >= runs => break Ended::Fixed,
                Some(_) => {}
                None => {
                    let values = self.pairs.values(self.choice.measurand);
                    let b_over_a: Vec<(f64, f64)> = values.iter().map(|(a, b)| (*b, *a)).collect();
                    let known = ratio_of_means(&b_over_a, self.job.coverage).ok().flatten();
                    let look = known.map(|(estimate, _)| rule.look(estimate));
                    if look == Some(Look::Stop) {
                        break Ended::Reached;
                    }
                    self.say(known.map(|known| known.0));
                }
            }
        };
        self.pairs.ended = ended;
        self.pairs.seconds = self.began.elapsed().as_secs_f64();
        match self.pairs.pairs.len() {
            made @ 0..2 => Err(Failure::new(
                ERROR,
                format!("only {made} pairs of runs were made, and an uncertainty needs two"),
            )
            .remedy("raise --max-time or --max-runs")),
            _ => Ok(self.pairs),
        }
    }

    /// Both commands once, in the order drawn; says if there can be no more.
    fn pair(&mut self) -> Result<Option<Ended>, Failure> {
        let conditions = Conditions::draw(self.job.varies, &mut self.draws);
        let mut order = [0, 1];
        self.draws.shuffle(&mut order);
        let mut done: [Option<Execution>; 2] = [None, None];
        for place in order {
            if self.began.elapsed() >= self.job.max_time {
                return Ok(Some(Ended::OutOfTime));
            }
            if self.pairs.started >= self.job.runs.map_or(self.job.max_runs, |r| 4 * r) {
                return Ok(Some(Ended::OutOfRuns));
            }
            let measured: Vec<usize> = self.turns.of(0).collect();
            let Some(source) = self.sources.get(place) else { continue };
            let quantities = &self.choice.quantities;
            let number = self.pairs.started;
            self.pairs.started += 1;
            let execution = source.execute(quantities, &measured, &conditions, number)?;
            match &execution.ending {
                Ending::Well => done[place] = Some(execution),
                Ending::Interrupted => return Ok(Some(Ended::Interrupted)),
                Ending::Failed(how) => self.failed(place, how)?,
            }
        }
        if let [Some(a), Some(b)] = done {
            self.pairs.pairs.push([a, b]);
        }
        Ok(None)
    }

    fn failed(&mut self, place: usize, how: &str) -> Result<(), Failure> {
        self.pairs.failed[place] += 1;
        let failed = self.pairs.failed[place];
        if failed < FAILURES_MAX || !self.pairs.pairs.is_empty() {
            return Ok(());
        }
        let command = self.sources.get(place).map(Source::shown).unwrap_or_default();
        Err(Failure::new(ERROR, format!("'{command}' failed in each of {failed} runs ({how})"))
            .remedy("see what it says with --show-output; -i takes a failure for a result"))
    }

    /// A cold first pair is left out, found by the sum of both.
    fn drop_warm_up(&mut self) {
        let made = self.pairs.pairs.len();
        let due = metrology::FIRST_LOOK << self.looks.min(20);
        match self.job.warm_up {
            WarmUp::Fixed(count) if made as u64 == count && self.pairs.warm_up == 0 => {
                self.pairs.pairs.clear();
                self.pairs.warm_up = 2 * count;
            }
            WarmUp::Detected if made >= due => {
                let alpha = spent_at_look(WARM_UP_FALSE_ALARMS, self.looks);
                self.looks += 1;
                let values = self.pairs.values(self.choice.measurand);
                let sums: Vec<f64> = values.iter().map(|(a, b)| a + b).collect();
                let first = warm_up(&sums, alpha).min(made);
                self.pairs.pairs.drain(..first);
                self.pairs.warm_up += 2 * first as u64;
            }
            _ => {}
        }
    }

    fn say(&mut self, known: Option<Estimate>) {
        let (started, asked) = (self.pairs.started, 100.0 * self.job.uncertainty);
        self.live.say(|| {
            let ratio = known.map_or(String::new(), |e| {
                let reached = 100.0 * e.standard_uncertainty / e.value;
                format!(", B takes {:.4} of A, u = {reached:.2} % (asked {asked} %)", e.value)
            });
            format!("run {started}{ratio}")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_of_b_to_a() {
        let pairs: Vec<(f64, f64)> = (0..10)
            .map(|k| (10.0 + 0.1 * f64::from(k % 3), 11.0 + 0.1 * f64::from(k % 4)))
            .collect();
        let found = ratio(&pairs, Coverage::P95, 1.0, 1).unwrap();
        assert!(found.interval.holds(found.estimate.value));
        assert!((found.estimate.value - 11.13 / 10.09).abs() < 1e-9, "{}", found.estimate.value);
        assert!(ratio(&[(0.0, 1.0), (0.0, 1.0)], Coverage::P95, 1.0, 1).is_none());
    }

    #[test]
    fn a_limit_is_broken_held_or_undecided() {
        let interval = |low, high| Interval { low, high, coverage: Coverage::P95 };
        assert_eq!(judge(interval(1.03, 1.05), Some(0.02)), Some(Verdict::Slower));
        assert_eq!(judge(interval(0.99, 1.01), Some(0.02)), Some(Verdict::Within));
        assert_eq!(judge(interval(1.01, 1.05), Some(0.02)), Some(Verdict::Undecided));
        assert_eq!(judge(interval(1.01, 1.05), None), None);
    }
}
