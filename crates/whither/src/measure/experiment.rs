//! The runs: until the measurand is known well enough, then until every event has had its turns.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use metrology::{Draws, Estimate, FIRST_LOOK, Look, Stopping, mean, spent_at_look, warm_up};

use super::conditions::{Conditions, executions};
use super::groups::Turns;
use super::live::Live;
use super::quantity::Choice;
use super::source::{Doubt, Ending, Execution, Source};
use crate::cli::{MeasureJob, WarmUp};
use crate::failure::{ERROR, Failure};

/// Runs that were no warm-up are taken for one this often, over all looks.
const WARM_UP_FALSE_ALARMS: f64 = 0.01;
/// A program that failed so often without ever succeeding will not succeed.
const FAILURES_IN_A_ROW: u64 = 3;

/// One reading: a run, or the executions that shared one draw of their surroundings.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Which group of events was counted.
    pub(super) group: usize,
    /// What each execution brought.
    pub(super) executions: Vec<Execution>,
}

impl Reading {
    /// The mean over the executions; none for what was not counted.
    pub(super) fn value(&self, quantity: usize) -> Option<f64> {
        let values: Vec<f64> = self.values(quantity).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Each execution's.
    pub(super) fn values(&self, quantity: usize) -> impl Iterator<Item = f64> {
        self.executions.iter().filter_map(move |e| e.values.get(quantity).copied().flatten())
    }

    /// What is known against the mean.
    pub(super) fn doubt(&self, quantity: usize) -> Doubt {
        let each = || self.executions.iter().filter_map(move |e| e.doubts.get(quantity));
        let count = self.executions.len().max(1) as f64;
        Doubt {
            own: each().map(|d| d.own.powi(2)).sum::<f64>().sqrt() / count,
            excess: each().map(|d| d.excess).sum::<f64>() / count,
        }
    }
}

/// Why no further run was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The measurand is known as well as asked for.
    Reached,
    /// The number of runs was fixed, and they were made.
    Fixed,
    OutOfTime,
    OutOfRuns,
    Interrupted,
}

/// Everything that was measured.
#[derive(Debug)]
pub(super) struct Runs {
    /// In order, warm-up and failures left out.
    pub(super) readings: Vec<Reading>,
    /// How many readings the measurand needed; all where it was never known well enough.
    pub(super) needed: usize,
    pub(super) ended: Ended,
    /// Executions that were started.
    pub(super) started: u64,
    /// Executions that were left out as warm-up.
    pub(super) warm_up: u64,
    /// How executions failed, and how often.
    pub(super) failures: BTreeMap<String, u64>,
    pub(super) elapsed: Duration,
}

/// A measurement under way.
#[derive(Debug)]
pub(super) struct Experiment<'a> {
    job: &'a MeasureJob,
    choice: &'a Choice,
    turns: &'a Turns,
    source: &'a Source<'a>,
    draws: Draws,
    live: Live,
    began: Instant,
    looks: u32,
    runs: Runs,
}

impl<'a> Experiment<'a> {
    pub(super) fn new(
        job: &'a MeasureJob,
        choice: &'a Choice,
        turns: &'a Turns,
        source: &'a Source<'a>,
        talks: bool,
    ) -> Experiment<'a> {
        Experiment {
            job,
            choice,
            turns,
            source,
            draws: Draws::new(job.seed),
            live: Live::new(talks),
            began: Instant::now(),
            looks: 0,
            runs: Runs {
                readings: Vec::new(),
                needed: 0,
                ended: Ended::Reached,
                started: 0,
                warm_up: 0,
                failures: BTreeMap::new(),
                elapsed: Duration::ZERO,
            },
        }
    }

    /// Makes the runs.
    pub(super) fn run(mut self) -> Result<Runs, Failure> {
        let ended = match self.fixed_warm_up()? {
            Some(ended) => Some(ended),
            None => self.until_known()?,
        };
        self.runs.needed = self.runs.readings.len();
        let ended = match (ended, self.job.runs) {
            (Some(ended), _) => ended,
            (None, Some(_)) => Ended::Fixed,
            (None, None) => {
                let in_all = self.turns.in_all(self.runs.needed);
                self.until(in_all)?.unwrap_or(Ended::Reached)
            }
        };
        self.runs.ended = ended;
        self.runs.elapsed = self.began.elapsed();
        if self.runs.readings.len() < 2 {
            return Err(self.too_few());
        }
        Ok(self.runs)
    }

    fn fixed_warm_up(&mut self) -> Result<Option<Ended>, Failure> {
        let WarmUp::Fixed(count) = self.job.warm_up else { return Ok(None) };
        for _ in 0..count {
            if let Some(ended) = self.limit() {
                return Ok(Some(ended));
            }
            let conditions = Conditions::draw(self.job.varies, &mut self.draws);
            let execution = self.execute(0, &conditions)?;
            self.runs.warm_up += 1;
            if execution.ending == Ending::Interrupted {
                return Ok(Some(Ended::Interrupted));
            }
        }
        Ok(None)
    }

    /// Until the measurand is known, or the fixed number of runs is made; none when that is so.
    fn until_known(&mut self) -> Result<Option<Ended>, Failure> {
        let rule = Stopping { asked: self.job.uncertainty, coverage: self.job.coverage };
        loop {
            if let Some(ended) = self.reading()? {
                return Ok(Some(ended));
            }
            self.drop_warm_up();
            let made = self.runs.readings.len();
            match self.job.runs {
                Some(runs) if made * executions(self.job.varies) >= runs as usize => {
                    return Ok(None);
                }
                Some(_) => {}
                None => {
                    let known = self.measurand().map(|plain| rule.look(plain));
                    if known == Some(Look::Stop) {
                        return Ok(None);
                    }
                    self.say(known);
                }
            }
        }
    }

    /// Until there are so many readings.
    fn until(&mut self, in_all: usize) -> Result<Option<Ended>, Failure> {
        while self.runs.readings.len() < in_all {
            if let Some(ended) = self.reading()? {
                return Ok(Some(ended));
            }
            self.say(Some(Look::Continue { needed: in_all as u64 }));
        }
        Ok(None)
    }

    /// Takes one more reading; says if there can be none.
    fn reading(&mut self) -> Result<Option<Ended>, Failure> {
        let group = self.next_group();
        let conditions = Conditions::draw(self.job.varies, &mut self.draws);
        let mut reading = Reading { group, executions: Vec::new() };
        for _ in 0..executions(self.job.varies) {
            if let Some(ended) = self.limit() {
                return Ok(Some(ended));
            }
            let execution = self.execute(group, &conditions)?;
            match &execution.ending {
                Ending::Well => reading.executions.push(execution),
                Ending::Interrupted => return Ok(Some(Ended::Interrupted)),
                Ending::Failed(how) => {
                    *self.runs.failures.entry(how.clone()).or_insert(0) += 1;
                    self.check_hopeless(how)?;
                }
            }
        }
        if reading.value(self.choice.measurand).is_some() {
            self.runs.readings.push(reading);
        }
        Ok(None)
    }

    fn execute(&mut self, group: usize, conditions: &Conditions) -> Result<Execution, Failure> {
        let measured: Vec<usize> = self.turns.of(group).collect();
        let number = self.runs.started;
        self.runs.started += 1;
        self.source.execute(&self.choice.quantities, &measured, conditions, number)
    }

    /// The group that has had the fewest turns; the order among equals may be drawn.
    fn next_group(&mut self) -> usize {
        let mut turns: Vec<(usize, usize)> =
            (0..self.turns.groups.len()).map(|group| (0, group)).collect();
        for reading in &self.runs.readings {
            if let Some(turn) = turns.get_mut(reading.group) {
                turn.0 += 1;
            }
        }
        if self.job.varies.order {
            self.draws.shuffle(&mut turns);
        }
        turns.iter().min_by_key(|turn| turn.0).map_or(0, |turn| turn.1)
    }

    fn limit(&self) -> Option<Ended> {
        if self.began.elapsed() >= self.job.max_time {
            return Some(Ended::OutOfTime);
        }
        let most = self.job.runs.map_or(self.job.max_runs, |runs| runs.max(self.job.max_runs));
        (self.runs.started >= most).then_some(Ended::OutOfRuns)
    }

    /// Looks for a warm-up whenever the number of readings has doubled, and leaves it out.
    fn drop_warm_up(&mut self) {
        let made = self.runs.readings.len();
        let due = FIRST_LOOK << self.looks.min(20);
        if self.job.warm_up != WarmUp::Detected || made < due {
            return;
        }
        let alpha = spent_at_look(WARM_UP_FALSE_ALARMS, self.looks);
        self.looks += 1;
        let first = warm_up(&self.values(), alpha);
        let dropped = self.runs.readings.drain(..first).map(|r| r.executions.len() as u64);
        self.runs.warm_up += dropped.sum::<u64>();
    }

    fn values(&self) -> Vec<f64> {
        let measurand = self.choice.measurand;
        self.runs.readings.iter().filter_map(|reading| reading.value(measurand)).collect()
    }

    /// The measurand so far.
    fn measurand(&self) -> Option<Estimate> {
        mean(&self.values()).ok()
    }

    fn say(&mut self, look: Option<Look>) {
        let estimate = self.measurand();
        let (started, asked) = (self.runs.started, self.job.uncertainty);
        let each = executions(self.job.varies) as u64;
        let name = self.choice.measurand().map_or("", |m| m.name.as_str());
        self.live.say(|| {
            let more = match look {
                Some(Look::Continue { needed }) if needed < u64::MAX => {
                    format!(", about {} in all", needed.saturating_mul(each))
                }
                _ => String::new(),
            };
            let known = estimate.map_or(String::new(), |e| {
                let reached = 100.0 * e.standard_uncertainty / e.value.abs();
                let asked = 100.0 * asked;
                format!(", {name} {:.4e} u = {reached:.2} % (asked {asked} %)", e.value)
            });
            format!("run {started}{more}{known}")
        });
    }

    /// Nothing but failures from the start: something is wrong with the command.
    fn check_hopeless(&self, how: &str) -> Result<(), Failure> {
        let failed: u64 = self.runs.failures.values().sum();
        if failed < FAILURES_IN_A_ROW || failed < self.runs.started {
            return Ok(());
        }
        Err(Failure::new(ERROR, format!("the program failed in each of {failed} runs ({how})"))
            .remedy("see what it says with --show-output; -i takes a failure for a result"))
    }

    fn too_few(&self) -> Failure {
        let made = self.runs.readings.len();
        let failed: u64 = self.runs.failures.values().sum();
        let what = match (self.runs.ended, failed) {
            (Ended::Interrupted, _) => {
                format!("interrupted after {made} complete runs, and an uncertainty needs two")
            }
            (_, 0) => format!(
                "only {made} runs were made within the limits, and an uncertainty needs two"
            ),
            (_, failed) => format!(
                "only {made} runs succeeded and {failed} failed, and an uncertainty needs two"
            ),
        };
        Failure::new(ERROR, what).remedy("raise --max-time or --max-runs")
    }
}
