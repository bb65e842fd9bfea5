//! Estimates against the truth, for many seeds of turns.

use std::path::Path;

use metrology::Coverage;
use model::event::Event;
use pmu::Grouping;
use pmu::estimate::{Counted, linear_totals, totals};
use pmu::schedule::Plan;

use super::columns::Columns;
use super::replay::{Sums, events_of, grouping, replay};
use super::truth::{self, Question};
use crate::context::Context;
use crate::result::RowResult;

/// Eight general counters, and cycles and instructions on fixed ones: 80 events at ratio 10.
pub const MACHINE: &str = "goldencove";
/// How many events are counted.
pub const EVENTS: usize = 80;
/// The modelled PMU's own slice: switching costs it nothing.
pub const SLICE_CYCLES: u64 = tracer::modelled::counting::SLICE_CYCLES;

/// The default on real counters, where a switch costs time.
pub const LONG_CYCLES: u64 = pmu::schedule::SLICE_CYCLES;

/// One event under one seed.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// The event.
    pub event: Event,
    /// What really happened.
    pub truth: f64,
    /// What we say.
    pub ours: Counted,
    /// What linear scaling says.
    pub linear: Counted,
}

impl Judged {
    /// How far off an estimate is, in parts of the truth.
    pub fn error(&self, counted: &Counted) -> f64 {
        (counted.estimate.value - self.truth).abs() / self.truth
    }

    /// Whether our 95 % interval holds the truth.
    pub fn holds(&self) -> bool {
        self.ours.interval(Coverage::P95).holds(self.truth)
    }

    /// Whether ours is off by more than five of its own standard uncertainties.
    pub fn is_beyond_5u(&self) -> bool {
        let off = (self.ours.estimate.value - self.truth).abs();
        off > 5.0 * self.ours.estimate.standard_uncertainty
    }

    /// The decade of the true count.
    pub fn decade(&self) -> i32 {
        self.truth.log10().floor() as i32
    }
}

/// Every event but the anchors and those that are cycles by another name.
pub fn pool() -> Vec<Event> {
    let left_out =
        [Event::Cycles, Event::Instructions, Event::ReferenceCycles, Event::PipelineSlots];
    Event::ALL.iter().copied().filter(|event| !left_out.contains(event)).collect()
}

/// Another 80 events for every seed, so that none is chosen by us.
pub fn drawn(seed: u64) -> Vec<Event> {
    let mut events = pool();
    let mut rng = crate::make::rng::Rng::new(seed);
    for last in (1..events.len()).rev() {
        events.swap(last, rng.below(last as u64 + 1) as usize);
    }
    events.truncate(EVENTS);
    events
}

/// The groups of the 80 events of a seed.
///
/// # Errors
///
/// They cannot be counted.
pub fn groups_of(seed: u64) -> Result<Grouping, String> {
    grouping(MACHINE, &drawn(seed))
}

/// The same events, those beside each other that come in lumps, and how turns of `slice` are given.
///
/// # Errors
///
/// They cannot be counted.
pub fn lumps_of(seed: u64, slice: u64) -> Result<(Grouping, Plan), String> {
    let mut units: Vec<Vec<String>> =
        drawn(seed).iter().map(|event| vec![event.name().to_owned()]).collect();
    let modelled = pmu::modelled_events().map_err(|e| e.to_string())?;
    modelled.order(&mut units);
    let events = units.iter().flatten().filter_map(|name| Event::named(name));
    let groups = grouping(MACHINE, &events.collect::<Vec<Event>>())?;
    let even = Plan::even(groups.groups.len(), slice, seed);
    let (shares, early) = (modelled.shares(&groups), Some(modelled.early(&groups)));
    Ok((groups, Plan { shares, early, ..even }))
}

/// Every event that happened at all, estimated from turns of `slice` under a seed, as the modelled
/// PMU takes them: more for what comes in lumps.
///
/// # Errors
///
/// The events cannot be counted.
pub fn judge(sums: &Sums, slice: u64, seed: u64) -> Result<Vec<Judged>, String> {
    let (grouping, plan) = lumps_of(seed, slice)?;
    judge_plan(sums, &grouping, plan)
}

/// The same with as many turns for every group, as MPX and the kernel take them.
///
/// # Errors
///
/// The events cannot be counted.
pub fn judge_even(sums: &Sums, slice: u64, seed: u64) -> Result<Vec<Judged>, String> {
    let grouping = groups_of(seed)?;
    judge_plan(sums, &grouping, Plan::even(grouping.groups.len(), slice, seed))
}

/// The same in slices of the default on real counters, where a switch costs time and nothing is
/// shorter at first.
///
/// # Errors
///
/// The events cannot be counted.
pub fn judge_long(sums: &Sums, seed: u64) -> Result<Vec<Judged>, String> {
    let grouping = groups_of(seed)?;
    let even = Plan::even(grouping.groups.len(), LONG_CYCLES, seed);
    judge_plan(sums, &grouping, Plan { opening: None, ..even })
}

/// The same for turns by any plan.
///
/// # Errors
///
/// None; the signature is `judge`'s.
pub fn judge_plan(sums: &Sums, grouping: &Grouping, plan: Plan) -> Result<Vec<Judged>, String> {
    let (readings, _) = replay(sums, grouping, plan);
    let ours = totals(grouping, &readings);
    let linear = linear_totals(grouping, &readings);
    let mut judged = Vec::new();
    for (place, event) in events_of(grouping).into_iter().enumerate().skip(grouping.anchors) {
        let truth = sums.total(event) as f64;
        let (Some(&Some(ours)), Some(&Some(linear))) = (ours.get(place), linear.get(place)) else {
            continue;
        };
        if truth > 0.0 {
            judged.push(Judged { event, truth, ours, linear });
        }
    }
    Ok(judged)
}

/// The seeds of a row.
pub fn seeds(context: &Context, count: u64) -> Vec<u64> {
    (0..count).map(|k| context.seed.wrapping_mul(1_000_003).wrapping_add(k)).collect()
}

/// Does something with the log of each program in turn; what failed is said in the result.
///
/// # Errors
///
/// There is no place for streams.
pub fn each_program<T>(
    context: &Context,
    names: &[&str],
    question: &Question,
    mut act: impl FnMut(&str, &Sums) -> Result<T, String>,
) -> Result<(Vec<(String, T)>, RowResult), String> {
    let (tasks, wrong) = context.tasks(names);
    let root = context.work.streams()?;
    let mut result = RowResult { wrong, ..RowResult::default() };
    let mut found = Vec::new();
    context.progress.start(tasks.len() as u64);
    for (place, task) in tasks.iter().enumerate() {
        let one = |root: &Path| {
            let columns = truth::logged(context, task, question.clone(), root, place)?;
            let sums = Sums::new(&columns);
            drop(columns);
            act(&task.name, &sums)
        };
        let mut one = one;
        match one(&root) {
            Ok(answer) => {
                result.remember(task);
                found.push((task.name.clone(), answer));
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
        context.progress.step(&task.name);
    }
    context.progress.finish();
    Ok((found, result))
}

/// The traces of the repository, for a form that needs no engine. They are short, so slices are.
pub const TRACES: [&str; 2] = ["applu", "art"];
/// The slice of the traces' logs, and of turns on them.
pub const TRACE_CYCLES: u64 = 500;

/// Does something with the log of each trace, `times` over: a trace is too short a program.
///
/// # Errors
///
/// A trace cannot be read, or what is done fails.
pub fn each_trace<T>(
    context: &Context,
    times: usize,
    mut act: impl FnMut(&str, &Sums) -> Result<T, String>,
) -> Result<Vec<(String, T)>, String> {
    let question = Question { slice: TRACE_CYCLES, ..Question::by_cycles(MACHINE) };
    let mut found = Vec::new();
    for name in TRACES {
        let columns = truth::replayed(context, name, question.clone())?;
        let columns = Columns(columns.0.iter().map(|column| column.repeat(times)).collect());
        found.push((name.to_owned(), act(name, &Sums::new(&columns))?));
    }
    Ok(found)
}

/// The mean; none of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The value that a part of all does not exceed.
pub fn quantile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (part * sorted.len() as f64).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied()
}
