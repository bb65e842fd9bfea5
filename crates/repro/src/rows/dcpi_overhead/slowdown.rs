//! How much slower programs are while somebody watches.

use metrology::{Coverage, mean};
use show::{Cell, Row, Tone, Unit};

use super::watcher::{Watcher, Who};
use super::{Bench, FAST, RATES, line};
use crate::context::Context;
use crate::make::Rng;
use crate::result::{Figure, RowResult};
use crate::run::{self, Task, Wrap};

/// The name of this part.
pub(super) const PART: &str = "slowdown";
/// Rounds of one cell that may fail before it is given up.
const FAILURES: usize = 3;

/// A task, and how often it is run for one reading.
pub(super) struct Timed {
    pub(super) task: Task,
    times: usize,
}

impl Timed {
    /// Often enough that a reading takes so many seconds.
    pub(super) fn of_at_least(
        context: &Context,
        task: Task,
        seconds: f64,
    ) -> Result<Timed, String> {
        let once = Timed { task, times: 1 };
        // The first run fills caches.
        once.run(context)?;
        let taken = once.run(context)?;
        Ok(Timed { times: (seconds / taken).ceil().clamp(1.0, 100.0) as usize, ..once })
    }

    fn name(&self) -> &str {
        &self.task.name
    }

    /// Wall seconds of the programs alone.
    pub(super) fn run(&self, context: &Context) -> Result<f64, String> {
        let mut seconds = 0.0;
        for _ in 0..self.times {
            let streams = context.work.streams()?;
            seconds += run::run(&self.task, &Wrap::default(), &streams)?.spent.wall_seconds;
        }
        Ok(seconds)
    }

    /// The least of several under a watcher that has begun. What else the machine does only ever
    /// adds to a run, and more than what is asked about; a watcher's own work is in all of them.
    fn under(&self, bench: &Bench<'_>, who: Who, hertz: u64) -> Result<f64, String> {
        let watcher = Watcher::start(who, hertz, &bench.whither)?;
        watcher.settle();
        let mut least = f64::INFINITY;
        for _ in 0..bench.sizes.least_of {
            least = least.min(self.run(bench.context)?);
        }
        watcher.stop()?;
        Ok(least)
    }
}

/// Seconds bare, under our daemon and under perf.
type Round = [f64; 3];

pub(super) fn slowdowns(bench: &Bench<'_>, result: &mut RowResult) {
    let mut worst: Option<f64> = None;
    for (cell, hertz) in (0..).zip(RATES) {
        for (place, task) in (0..).zip(&bench.tasks) {
            let seed = bench.context.seed + 100 * cell + place;
            let rounds = rounds(bench, task, hertz, seed, result);
            let share = |who: usize| -> Vec<f64> {
                rounds.iter().map(|seconds| seconds[who] / seconds[0] - 1.0).collect()
            };
            let (ours, perf) = (share(1), share(2));
            for (who, slowdowns) in [(Who::Ours("default"), &ours), (Who::Perf, &perf)] {
                slowdown_row(task, hertz, who, slowdowns, result);
            }
            let apart: Vec<f64> = ours.iter().zip(&perf).map(|(a, b)| 100.0 * (a - b)).collect();
            if let Ok(apart) = mean(&apart) {
                let bound = apart.value + apart.half_width(Coverage::P95);
                // Twice as much is allowed where the interrupt itself takes a third of the machine.
                let bound = bound - if hertz >= FAST { 1.0 } else { 0.0 };
                worst = Some(worst.map_or(bound, |held| held.max(bound)));
                result.notes.push(format!(
                    "{} at {hertz} Hz: ours slows by {:+.1} ± {:.1} points more than perf's, {} \
                     rounds",
                    task.name(),
                    apart.value,
                    apart.half_width(Coverage::P95),
                    rounds.len()
                ));
            }
        }
    }
    let figure = worst.map(|worst| Figure::exact("slowdown_minus_perf_points", worst));
    result.ours.extend(figure);
}

/// The rounds of one cell, kept from an earlier run or taken now.
fn rounds(
    bench: &Bench<'_>,
    task: &Timed,
    hertz: u64,
    seed: u64,
    result: &mut RowResult,
) -> Vec<Round> {
    let context = bench.context;
    let key = bench.key(PART, &[task], hertz);
    if let Some(rounds) = context.kept.find::<Vec<Round>>(&key) {
        (0..bench.sizes.rounds).for_each(|_| context.progress.step(task.name()));
        return rounds;
    }
    let mut rng = Rng::new(seed);
    let (mut rounds, mut failed) = (Vec::new(), 0);
    while failed < FAILURES && rounds.len() < bench.sizes.rounds {
        match one_round(bench, task, hertz, &mut rng) {
            Ok(round) => rounds.push(round),
            Err(why) => {
                failed += 1;
                result.wrong.push(format!("a round of {} at {hertz} Hz: {why}", task.name()));
            }
        }
        context.progress.step(task.name());
    }
    if failed == 0
        && let Err(why) = context.kept.put(&key, &rounds)
    {
        result.wrong.push(why);
    }
    rounds
}

fn one_round(bench: &Bench<'_>, task: &Timed, hertz: u64, rng: &mut Rng) -> Result<Round, String> {
    let mut seconds = [0.0; 3];
    let whos = [Who::Bare, Who::Ours("default"), Who::Perf];
    for place in shuffled(rng, whos.len()) {
        seconds[place] = task.under(bench, whos[place], hertz)?;
    }
    Ok(seconds)
}

/// The paper's three configurations, at the lowest rate.
pub(super) fn configurations(bench: &Bench<'_>, result: &mut RowResult) {
    let rounds = bench.sizes.rounds.min(5);
    for task in &bench.tasks {
        for config in ["cycles", "mux"] {
            let under = |who| task.under(bench, who, RATES[0]);
            let one = |_| {
                let bare = under(Who::Bare)?;
                Ok(under(Who::Ours(config))? / bare - 1.0)
            };
            let slowdowns: Result<Vec<f64>, String> = (0..rounds).map(one).collect();
            match slowdowns {
                Ok(all) => slowdown_row(task, RATES[0], Who::Ours(config), &all, result),
                Err(why) => {
                    result.wrong.push(format!("{} under {config}: {why}", task.name()));
                }
            }
        }
    }
}

fn slowdown_row(task: &Timed, hertz: u64, who: Who, slowdowns: &[f64], result: &mut RowResult) {
    let mut cells = line("slowdown", task.name(), Some(hertz), who.name());
    cells[4] = match mean(slowdowns) {
        Ok(slowdown) => {
            Cell::Estimate(slowdown.value, slowdown.interval(Coverage::P95), Unit::Share)
        }
        Err(too_few) => Cell::NotCounted(too_few.to_string()),
    };
    result.detail.rows.push(Row::Cells(Tone::Plain, cells));
}

fn shuffled(rng: &mut Rng, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}
