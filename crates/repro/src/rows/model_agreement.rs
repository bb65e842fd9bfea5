//! The one-pass core against the cycle-by-cycle core, and sampled intervals against the full answer.
//!
//! Both follow from the program's instructions alone and no clock is read, so programs run side by
//! side.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use metrology::{Coverage, mean, share};
use model::event::Event;
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};
use tracer::stream::{InstructionStream, Recorded};

use crate::agreement::{Answer, Compared, Listeners, Question, WINDOW_INSTRUCTIONS, is_cause};
use crate::context::Context;
use crate::hear::{self, Ask};
use crate::result::{Figure, RowResult};
use crate::run::Task;
use crate::suite::Size;

/// Stated, so that the answer is the same on any host.
const MACHINE: &str = "zen4";
/// A few more than must be kept: one that a thread's end cuts short is dropped.
const WINDOWS: usize = 36;
const WINDOWS_MIN: usize = 30;
const ERROR: f64 = 0.03;
/// Program × seed, at least.
const SAMPLINGS: usize = 200;
/// Sampled cores at a time: each holds the tables of a last-level cache twice.
const SEEDS_MAX: usize = 40;
const WORKERS: usize = 2;
/// What a look runs, and how many seeds of sampling each.
const QUICK: &[&str] = &["art", "bzip2", "mcf"];
const QUICK_SEEDS: usize = 4;
const QUICK_WINDOWS: usize = 12;
/// The traces that smoke replays and their instructions; suite/traces/README.md says what made
/// them.
const SMOKE: [(&str, u64); 2] = [("applu", 10_839_408), ("art", 9_128_375)];
/// Seeds with which smoke samples each trace, and how many of all intervals must hold the full
/// answer: were 95 in 100 to hold, fewer would come about once in a hundred choices of seeds.
const SMOKE_SEEDS: usize = 8;
const SMOKE_HELD_MIN: u64 = 13;

const COLUMNS: [Column; 9] = [
    Column::text("program", "program"),
    Column::number("windows", "windows"),
    Column::number("cpi", "CPI"),
    Column::number("cpi_difference", "CPI differs"),
    Column::number("event_difference", "events differ"),
    Column::text("worst_event", "worst event"),
    Column::number("sampled_held", "intervals hold"),
    Column::number("sampled_bias", "bias"),
    Column::number("sampled_half_width", "half-width"),
];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let seeds = match context.quick {
        true => QUICK_SEEDS,
        false => SAMPLINGS.div_ceil(tasks.len().max(1)).clamp(QUICK_SEEDS, SEEDS_MAX),
    };
    let version = hear::version(context)?;
    let root = context.work.streams()?;
    context.progress.start(tasks.len() as u64);
    let answers = side_by_side(&tasks, |place, task| {
        let answer = find_out(context, task, seeds, &version, &root, place);
        context.progress.step(&task.name);
        answer
    });
    context.progress.finish();
    let mut found = Vec::new();
    let mut result = RowResult { wrong, ..RowResult::default() };
    for (task, answer) in tasks.iter().zip(answers) {
        match answer {
            Ok(answer) => {
                result.remember(task);
                found.push((task.name.clone(), answer));
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    if context.quick && context.commands.is_empty() {
        let seeds = format!("{seeds} seeds of sampling a program");
        result.notes.push(format!(
            "quick: {} programs, shorter inputs, {QUICK_WINDOWS} windows and {seeds}",
            QUICK.len()
        ));
    }
    fill(&mut result, &found, context.size_name());
    result.versions.insert("repro".to_owned(), json!(version));
    result.seeds.insert("windows".to_owned(), json!(context.seed));
    result.seeds.insert("sampling".to_owned(), json!(sampling_seeds(context.seed, seeds)));
    Ok(result)
}

/// The cores compared on traces of the repository, and these sampled, so that no engine is needed.
pub(super) fn smoke(context: &Context) -> Result<RowResult, String> {
    let mut found = Vec::new();
    for (name, instructions) in SMOKE {
        let seeds = sampling_seeds(context.seed, SMOKE_SEEDS);
        let question = question(context, instructions, WINDOWS, seeds);
        found.push((name.to_owned(), replay(context, name, question)?));
    }
    let taken: usize = found.iter().map(|(_, answer)| answer.sampled.len()).sum();
    let held: u64 = found.iter().map(|(_, answer)| answer.held()).sum();
    if held < SMOKE_HELD_MIN {
        return Err(format!("only {held} of {taken} sampled intervals hold the full answer"));
    }
    let mut result = RowResult::default();
    fill(&mut result, &found, "recorded");
    // So few cannot tell 93 from 98 in 100: that figure is the whole row's.
    result.ours.retain(|figure| figure.key != "sampled_coverage_pct");
    Ok(result)
}

fn replay(context: &Context, name: &str, question: Question) -> Result<Answer, String> {
    let path = context.suite.data.join("traces").join(format!("{name}.trace"));
    let mut listeners = Listeners::new(question)?;
    let (replayed, ()) = Recorded { path }.play(&mut listeners).map_err(|e| e.to_string())?;
    if !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
        return Err(format!("the trace {name} is damaged"));
    }
    Ok(listeners.answer())
}

fn question(context: &Context, instructions: u64, windows: usize, seeds: Vec<u64>) -> Question {
    Question {
        machine: MACHINE.to_owned(),
        instructions,
        windows,
        seed: context.seed,
        error: ERROR,
        sampling_seeds: seeds,
    }
}

fn sampling_seeds(seed: u64, count: usize) -> Vec<u64> {
    (0..count as u64).map(|k| seed.wrapping_mul(1_000_003).wrapping_add(k)).collect()
}

/// Answers in the order of the tasks, a few under way at a time.
pub(super) fn side_by_side<T: Send>(
    tasks: &[Task],
    answer: impl Fn(usize, &Task) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Relaxed);
                    let Some(task) = tasks.get(place) else { return };
                    let answer = answer(place, task);
                    answers.lock().unwrap_or_else(PoisonError::into_inner).insert(place, answer);
                }
            });
        }
    });
    answers.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn find_out(
    context: &Context,
    task: &Task,
    seeds: usize,
    version: &str,
    root: &Path,
    place: usize,
) -> Result<Answer, String> {
    let windows = if context.quick { QUICK_WINDOWS } else { WINDOWS };
    let mut key = context.key("model-agreement", task, &[version, MACHINE], windows);
    if let Some(key) = key.as_object_mut() {
        key.insert("sampling_seeds".to_owned(), json!(seeds));
    }
    if let Some(answer) = context.kept.find(&key) {
        return Ok(answer);
    }
    let streams = hear::streams_of(root, place)?;
    let (instructions, _) = hear::hear::<u64>(task, &Ask::Instructions, &streams)?;
    let seeds = sampling_seeds(context.seed, seeds);
    let question = question(context, instructions, windows, seeds);
    let (answer, _) = hear::hear::<Answer>(task, &Ask::Agreement(question), &streams)?;
    context.kept.put(&key, &answer)?;
    Ok(answer)
}

fn fill(result: &mut RowResult, found: &[(String, Answer)], size: &str) {
    result.caption = format!(
        "{size} size; {MACHINE}; windows of {WINDOW_INSTRUCTIONS} instructions; mean absolute \
         difference, in brackets the signed one; sampling at {} %",
        100.0 * ERROR
    );
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    result.detail.rows =
        found.iter().map(|(name, a)| Row::Cells(Tone::Plain, cells(name, a))).collect();
    let windows = || found.iter().flat_map(|(_, answer)| &answer.windows);
    let cpi: Vec<f64> = windows().filter_map(Compared::cpi_difference).map(f64::abs).collect();
    let all: Vec<(Event, f64)> = windows().flat_map(Compared::differences).collect();
    let sizes = |keep: fn(Event) -> bool| -> Vec<f64> {
        all.iter().filter(|(event, _)| keep(*event)).map(|(_, d)| d.abs()).collect()
    };
    figure(result, "cpi_mean_pct", &cpi);
    figure(result, "event_mean_pct", &sizes(|_| true));
    figure(result, "event_mean_causes_apart_pct", &sizes(|event| !is_cause(event)));
    figure(result, "cause_mean_pct", &sizes(is_cause));
    let taken = found.iter().map(|(_, answer)| answer.sampled.len() as u64).sum();
    let held = found.iter().map(|(_, answer)| answer.held()).sum();
    if let Some((value, interval)) = share(held, taken, Coverage::P95) {
        let figure =
            Figure::measured("sampled_coverage_pct", 100.0 * value, interval.scaled(100.0));
        result.ours.push(figure);
    }
    let bias: Vec<f64> = found.iter().flat_map(|(_, answer)| errors(answer)).collect();
    figure(result, "sampled_bias_pct", &bias);
    result.ours.push(Figure::exact("samplings", taken as f64));
    result.notes.push(format!(
        "{taken} program × seed; the bias is the mean signed error of sampling, which warming \
         instead of timing between windows leaves"
    ));
    result.notes.push(
        "events: every one with at least 10^-3 an instruction in its window; those that depend on \
         the code alone are the same on both and left out, as are cycles by other names; causes are \
         the events that split stalled cycles by what is to blame"
            .to_owned(),
    );
    result.notes.extend(worst_events(found));
    let few = if size == Size::Quick.name() { QUICK_WINDOWS } else { WINDOWS_MIN };
    for (name, answer) in found.iter().filter(|(_, answer)| answer.windows.len() < few) {
        let count = answer.windows.len();
        result.notes.push(format!("{name} has only {count} whole windows"));
    }
}

/// The events that differ most over all programs, each with its mean absolute difference.
fn worst_events(found: &[(String, Answer)]) -> Option<String> {
    let mut by_event: BTreeMap<Event, (f64, u32)> = BTreeMap::new();
    let windows = found.iter().flat_map(|(_, answer)| &answer.windows);
    for (event, difference) in windows.flat_map(Compared::differences) {
        let sum = by_event.entry(event).or_default();
        *sum = (sum.0 + difference.abs(), sum.1 + 1);
    }
    let mean_of = |sum: &(f64, u32)| sum.0 / f64::from(sum.1);
    let mut events: Vec<_> = by_event.iter().filter(|(_, sum)| sum.1 >= 10).collect();
    events.sort_by(|a, b| mean_of(b.1).total_cmp(&mean_of(a.1)));
    let said = |(event, sum): &(&Event, &(f64, u32))| {
        format!("{} {:.1} % in {} windows", event.name(), 100.0 * mean_of(sum), sum.1)
    };
    let worst: Vec<String> = events.iter().take(8).map(said).collect();
    (!worst.is_empty()).then(|| format!("worst events: {}", worst.join(", ")))
}

/// The mean of `shares` as a percentage.
fn figure(result: &mut RowResult, key: &str, shares: &[f64]) {
    if let Ok(estimate) = mean(shares) {
        let estimate = estimate.scaled(100.0);
        let interval = estimate.interval(Coverage::P95);
        result.ours.push(Figure::measured(key, estimate.value, interval));
    }
}

/// The signed relative errors of sampling.
fn errors(answer: &Answer) -> impl Iterator<Item = f64> {
    let truth = (answer.cycles as f64).max(1.0);
    answer.sampled.iter().map(move |sampled| sampled.cycles / truth - 1.0)
}

fn cells(name: &str, answer: &Answer) -> Vec<Cell> {
    let windows = &answer.windows;
    let cpi: Vec<f64> = windows.iter().filter_map(Compared::cpi_difference).collect();
    let mut by_event: BTreeMap<Event, Vec<f64>> = BTreeMap::new();
    for (event, difference) in windows.iter().flat_map(Compared::differences) {
        by_event.entry(event).or_default().push(difference);
    }
    let all: Vec<f64> = by_event.values().flatten().copied().collect();
    let mean_of = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let size = |values: &[f64]| mean_of(&values.iter().map(|v| v.abs()).collect::<Vec<_>>());
    let both = |values: &[f64]| match values.is_empty() {
        true => Cell::NotCounted("too rare".to_owned()),
        false => {
            let signed = 100.0 * mean_of(values);
            Cell::text(format!("{:.2} % ({signed:+.2})", 100.0 * size(values)))
        }
    };
    // One window may be odd; an event has to be common in several to be called the worst.
    let often = by_event.iter().filter(|(_, values)| values.len() >= 3);
    let worst = often.max_by(|a, b| size(a.1).total_cmp(&size(b.1)));
    let worst = worst.map_or(Cell::Empty, |(event, values)| {
        let signed = 100.0 * mean_of(values);
        Cell::text(format!("{} {:.1} % ({signed:+.1})", event.name(), 100.0 * size(values)))
    });
    let errors: Vec<f64> = errors(answer).collect();
    let widths: Vec<f64> =
        answer.sampled.iter().map(|s| (s.high - s.low) / 2.0 / s.cycles.max(1.0)).collect();
    let share_of = |value: f64| match errors.is_empty() {
        true => Cell::NotCounted("too short to sample".to_owned()),
        false => Cell::Number(value, Unit::Share),
    };
    vec![
        Cell::text(name),
        Cell::Number(windows.len() as f64, Unit::Number),
        Cell::Number(answer.cycles as f64 / answer.instructions.max(1) as f64, Unit::Number),
        both(&cpi),
        both(&all),
        worst,
        share_of(answer.held() as f64 / answer.sampled.len().max(1) as f64),
        share_of(mean_of(&errors)),
        share_of(mean_of(&widths)),
    ]
}
