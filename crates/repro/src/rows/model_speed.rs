//! How fast the modelled core runs, and sampled modelling against cachegrind.
//!
//! Each program runs once under each: `whither model` with every core and sampled, and cachegrind.
//! CPU time is the kernel's account of the whole command: the engine, the core in it and the report.

use std::fs;

use metrology::{Coverage, Estimate, geometric_ratio, mean};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use show::{Cell, Column, Row, Table, Tone, Unit};
use tracer::launch::EngineChoice;

use crate::context::Context;
use crate::peers::{Cachegrind, Peer, modelled, our_version};
use crate::result::{Figure, RowResult};
use crate::run::{self, Task, Wrap};
use crate::suite::Size;

/// What a look runs.
const QUICK: &[&str] = &["art", "bzip2", "mcf"];
/// The cycle-by-cycle core takes an hour for 5·10^9 instructions: it runs these at quick size.
const REFERENCE: &[&str] = &["art", "bzip2", "gzip", "mcf", "sqlite"];
const REFERENCE_QUICK: &[&str] = &["mcf"];
/// The program whose memory is watched over two sizes.
const MEMORY: &str = "gzip";

const FULL: &[&str] = &["--full"];
const SAMPLED: &[&str] = &["--error", "3%"];
const WARM: &[&str] = &["--core", "warm"];
const CYCLES: &[&str] = &["--core", "reference"];

const COLUMNS: [Column; 9] = [
    Column::text("program", "program"),
    Column::number("instructions", "instructions"),
    Column::number("fast_mips", "fast MIPS"),
    Column::number("warming_mips", "warming MIPS"),
    Column::number("reference_mips", "reference MIPS"),
    Column::number("sampled_s", "sampled"),
    Column::number("cachegrind_s", "cachegrind"),
    Column::number("sampled_vs_cachegrind", "sampled ×"),
    Column::number("fast_memory_mib", "memory MiB"),
];

/// One run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Run {
    cpu_seconds: f64,
    peak_bytes: u64,
    /// As the report says; none from cachegrind, and none where nothing was counted.
    instructions: Option<u64>,
}

/// What was measured of one program.
#[derive(Debug)]
struct Measured {
    fast: Run,
    warm: Run,
    sampled: Run,
    cachegrind: Run,
    reference: Option<Run>,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let size = if context.quick { Size::Quick } else { Size::Full };
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.chosen_at(names, size);
    let versions = [our_version(context)?, Cachegrind.version(context)?];
    let mut result = RowResult {
        wrong,
        caption: format!(
            "{} inputs; CPU time of the whole command, one run each; programs run by {}",
            size.name(),
            EngineChoice::Best.name()
        ),
        size: context.commands.is_empty().then_some(size.name()),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    result.versions.insert("whither".to_owned(), json!(versions[0]));
    result.versions.insert("cachegrind".to_owned(), json!(versions[1]));
    context.progress.start(4 * tasks.len() as u64);
    let mut all = Vec::new();
    for (task, runs) in tasks.iter().zip(measure_all(context, &tasks, size, &versions)) {
        match measured(context, task, runs, &versions) {
            Ok(measured) => {
                result.detail.rows.push(Row::Cells(Tone::Plain, cells(task, &measured)));
                result.remember(task);
                all.push(measured);
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    figures(&mut result, &all);
    memory(context, &mut result, size, &versions);
    context.progress.finish();
    if context.quick && context.commands.is_empty() {
        let note = "quick: few programs and short inputs, so that start-up weighs in every figure";
        result.notes.push(note.to_owned());
    }
    Ok(result)
}

/// How each program is run: first sampled and at once by the peer, whose ratio is the question, so
/// that both find the machine as busy; last what takes longest. A row that is broken off goes on from
/// there, since runs are kept.
const ORDER: [&[Option<&[&str]>]; 3] = [&[Some(SAMPLED), None], &[Some(WARM)], &[Some(FULL)]];

/// The runs of each task, in that order.
fn measure_all(
    context: &Context,
    tasks: &[Task],
    size: Size,
    versions: &[String; 2],
) -> Vec<Vec<Result<Run, String>>> {
    let mut runs: Vec<Vec<Result<Run, String>>> = vec![Vec::new(); tasks.len()];
    for turn in ORDER {
        for (task, runs) in tasks.iter().zip(&mut runs) {
            for &options in turn {
                runs.push(once(context, task, size, options, versions));
            }
        }
    }
    runs
}

fn measured(
    context: &Context,
    task: &Task,
    runs: Vec<Result<Run, String>>,
    versions: &[String; 2],
) -> Result<Measured, String> {
    let runs = runs.into_iter().collect::<Result<Vec<Run>, String>>()?;
    let &[sampled, cachegrind, warm, fast] = runs.as_slice() else {
        return Err(format!("{} was not run", task.name));
    };
    let reference = reference(context, task, versions)?;
    Ok(Measured { fast, warm, sampled, cachegrind, reference })
}

/// The run under the cycle-by-cycle core, of the same program's quick input; none of programs that
/// are not asked for. A command has no other size.
fn reference(
    context: &Context,
    task: &Task,
    versions: &[String; 2],
) -> Result<Option<Run>, String> {
    let names = if context.quick { REFERENCE_QUICK } else { REFERENCE };
    if context.commands.is_empty() && !names.contains(&task.name.as_str()) {
        return Ok(None);
    }
    let short = match context.commands.is_empty() {
        true => context.tasks_at(&[&task.name], Size::Quick).0.into_iter().next(),
        false => Some(task.clone()),
    };
    let Some(short) = short else { return Ok(None) };
    once(context, &short, Size::Quick, Some(CYCLES), versions).map(Some)
}

/// One run with `whither model` and these options, or with cachegrind when there are none.
fn once(
    context: &Context,
    task: &Task,
    size: Size,
    options: Option<&[&str]>,
    versions: &[String; 2],
) -> Result<Run, String> {
    let version = versions.get(usize::from(options.is_none())).map_or("", String::as_str);
    let name = options.map_or_else(|| "cachegrind".to_owned(), |words| words.join(" "));
    context.progress.step(&format!("{} {name}", task.name));
    let engine = options.map_or("", |_| EngineChoice::Best.name());
    let mut key = context.key("model-speed", task, &[version, &name, engine], 1);
    if let Some(key) = key.as_object_mut().filter(|_| context.commands.is_empty()) {
        key.insert("size".to_owned(), json!(size.name()));
    }
    if let Some(run) = context.kept.find(&key) {
        return Ok(run);
    }
    let streams = context.work.streams()?;
    let wrap: Wrap = match options {
        Some(options) => modelled(context, options, &streams)?,
        None => Cachegrind.wrap(context, &streams)?,
    };
    let outcome =
        run::run(task, &wrap, &streams).map_err(|sentence| format!("under {name}, {sentence}"))?;
    let run = Run {
        cpu_seconds: outcome.spent.cpu_seconds(),
        peak_bytes: outcome.spent.peak_bytes,
        instructions: options.and(instructions(&streams.join("report"))),
    };
    context.kept.put(&key, &run)?;
    Ok(run)
}

/// The instructions that a report of `whither model` tells; an estimate has them as its value.
fn instructions(report: &std::path::Path) -> Option<u64> {
    let report: Value = serde_json::from_str(&fs::read_to_string(report).ok()?).ok()?;
    let told = report.get("run")?.get("instructions")?;
    let told = told.get("value").unwrap_or(told);
    told.as_u64().or_else(|| told.as_f64().map(|value| value as u64)).filter(|count| *count > 0)
}

fn figures(result: &mut RowResult, all: &[Measured]) {
    let counted = |m: &Measured| m.fast.instructions.unwrap_or(0);
    let fast: Vec<(u64, f64)> = all.iter().map(|m| (counted(m), m.fast.cpu_seconds)).collect();
    // Warming counts nothing itself: the instructions are those of the run beside it.
    let warm: Vec<(u64, f64)> = all.iter().map(|m| (counted(m), m.warm.cpu_seconds)).collect();
    let reference = all.iter().filter_map(|m| m.reference);
    let reference = reference.filter_map(|run| Some((run.instructions?, run.cpu_seconds)));
    for (key, runs) in
        [("fast_mips", fast), ("reference_mips", reference.collect()), ("warming_mips", warm)]
    {
        result.ours.extend(speed(key, &runs));
    }
    let pairs: Vec<(f64, f64)> =
        all.iter().map(|m| (m.sampled.cpu_seconds, m.cachegrind.cpu_seconds)).collect();
    if let Ok((value, interval)) = geometric_ratio(&pairs, Coverage::P95) {
        result.ours.push(Figure::measured("sampled_vs_cachegrind", value, interval));
    } else if let [(ours, theirs)] = pairs[..] {
        result.ours.push(Figure::exact("sampled_vs_cachegrind", ours / theirs));
    }
    let worst = pairs.iter().map(|(ours, theirs)| ours / theirs).max_by(f64::total_cmp);
    result.ours.extend(worst.map(|value| Figure::exact("sampled_worst", value)));
    let note = "± of the MIPS: which programs there are, not how runs differ";
    result.notes.push(note.to_owned());
    let note = "reference_mips: quick inputs, because full ones would take it days";
    result.notes.push(note.to_owned());
}

/// Instructions over seconds, total over total, in millions. The ± is how much it hangs on which
/// programs there are: each is left out in turn.
fn speed(key: &str, runs: &[(u64, f64)]) -> Option<Figure> {
    let total = |left_out: usize| {
        let kept = runs.iter().enumerate().filter(|(place, _)| *place != left_out);
        let sum = kept.fold((0, 0.0), |sum, (_, run)| (sum.0 + run.0, sum.1 + run.1));
        (sum.1 > 0.0).then(|| sum.0 as f64 / sum.1 / 1e6)
    };
    let value = total(usize::MAX)?;
    let without: Vec<f64> = (0..runs.len()).filter_map(total).collect();
    let Ok(spread) = mean(&without) else { return Some(Figure::exact(key, value)) };
    // The jackknife: what is left shares all but one program, so that it varies too little.
    let (n, u) = (without.len() as f64, spread.standard_uncertainty);
    let estimate = Estimate { value, standard_uncertainty: (n - 1.0) * u, ..spread };
    Some(Figure::measured(key, value, estimate.interval(Coverage::P95)))
}

/// The memory of one program at two sizes: it must not grow with the run.
fn memory(context: &Context, result: &mut RowResult, size: Size, versions: &[String; 2]) {
    // The larger size alone takes longer than a look may.
    if !context.commands.is_empty() || size == Size::Quick {
        return;
    }
    for options in [FULL, SAMPLED] {
        let mut said = Vec::new();
        for size in [Size::Quick, size] {
            let Some(task) = context.tasks_at(&[MEMORY], size).0.into_iter().next() else { return };
            match once(context, &task, size, Some(options), versions) {
                Ok(run) => {
                    let millions = run.instructions.unwrap_or(0) as f64 / 1e6;
                    let mib = run.peak_bytes as f64 / f64::from(1 << 20);
                    said.push(format!("{mib:.0} MiB over {millions:.0} million instructions"));
                }
                Err(sentence) => result.wrong.push(sentence),
            }
        }
        let options = options.join(" ");
        result.notes.push(format!("memory of {MEMORY}, {options}: {}", said.join(", ")));
    }
}

fn cells(task: &Task, measured: &Measured) -> Vec<Cell> {
    let count = measured.fast.instructions;
    let mips = |instructions: Option<u64>, run: Run| match instructions {
        Some(count) => Cell::Number(count as f64 / run.cpu_seconds / 1e6, Unit::Number),
        None => Cell::NotCounted("the report tells no instructions".to_owned()),
    };
    let seconds = |run: Run| Cell::Number(run.cpu_seconds, Unit::Seconds);
    vec![
        Cell::text(&task.name),
        count.map_or(Cell::Empty, |count| Cell::Count(vocab::Count(count))),
        mips(count, measured.fast),
        mips(count, measured.warm),
        measured.reference.map_or(Cell::Empty, |run| mips(run.instructions, run)),
        seconds(measured.sampled),
        seconds(measured.cachegrind),
        Cell::Number(measured.sampled.cpu_seconds / measured.cachegrind.cpu_seconds, Unit::Ratio),
        Cell::Number(measured.fast.peak_bytes as f64 / f64::from(1 << 20), Unit::Number),
    ]
}
