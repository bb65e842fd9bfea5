//! The suite's own table: native seconds, instructions, cachegrind × and qemu ×, per program.
//!
//! Each round runs the program bare, under cachegrind, bare again and under qemu, so that a
//! machine that slows down slows all of them. Times are CPU time. Instructions are cachegrind's
//! count, exact for the run it saw; qemu's and the machine's own differ by parts of a thousand,
//! because the libraries choose other code there.

use metrology::{Coverage, geometric_ratio, median};
use serde::{Deserialize, Serialize};
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::peers::{Cachegrind, Peer, Qemu, Refs};
use crate::plot::{Bar, bars};
use crate::result::{Figure, Plot, RowResult};
use crate::run::{self, Task, Wrap};

/// Rounds a program: twice as many bare runs, the least for a 95 % interval of a median.
const ROUNDS: usize = 3;
/// What a look runs: the ones that cachegrind finishes in a second or two.
const QUICK: &[&str] =
    &["applu", "art", "bzip2", "copy", "gzip", "mcf", "mgrid", "redis", "sqlite"];

const COLUMNS: [Column; 9] = [
    Column::text("program", "program"),
    Column::number("native", "native"),
    Column::number("instructions", "instructions"),
    Column::number("cachegrind_ratio", "cachegrind ×"),
    Column::number("qemu_ratio", "qemu ×"),
    Column::text("stresses", "stresses"),
    Column::text("version", "version").only_in_json(),
    Column::text("command", "command").only_in_json(),
    Column::text("inputs", "input sha256"),
];

/// What was measured of one program.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    native_seconds: Vec<f64>,
    instructions: u64,
    /// CPU seconds under cachegrind and of the bare run before it.
    cachegrind: Vec<(f64, f64)>,
    /// The same for qemu, or why not.
    qemu: Result<Vec<(f64, f64)>, String>,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let versions = [Cachegrind.version(context)?, Qemu.version(context)?];
    let mut result = RowResult {
        wrong,
        caption: format!(
            "{} size; CPU time, median of {} runs; instructions by cachegrind; ± at 95 %",
            context.size_name(),
            2 * ROUNDS
        ),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    result.versions.insert("cachegrind".to_owned(), json!(versions[0]));
    result.versions.insert("qemu".to_owned(), json!(versions[1]));
    if context.quick && context.commands.is_empty() {
        let left = context.suite.programs.len() - QUICK.len();
        result.notes.push(format!("quick: {left} programs are left out and inputs are shorter"));
    }
    context.progress.start((tasks.len() * ROUNDS) as u64);
    let (mut to_cachegrind, mut to_qemu, mut instructions) = (Vec::new(), Vec::new(), 0_u64);
    let (mut cachegrind_bars, mut qemu_bars) = (Vec::new(), Vec::new());
    for task in &tasks {
        let measured = match measure(context, task, &versions) {
            Ok(measured) => measured,
            Err(sentence) => {
                result.wrong.push(format!("{sentence}; left out"));
                continue;
            }
        };
        instructions += measured.instructions;
        to_cachegrind.extend(mean_pair(&measured.cachegrind));
        to_qemu.extend(measured.qemu.as_ref().ok().and_then(|pairs| mean_pair(pairs)));
        cachegrind_bars.extend(bar(task, &measured.cachegrind));
        qemu_bars.extend(measured.qemu.as_ref().ok().and_then(|pairs| bar(task, pairs)));
        result.detail.rows.push(Row::Cells(Tone::Plain, cells(task, &measured)));
        result.remember(task);
        if !context.quick && context.commands.is_empty() && measured.instructions > 1_000_000_000 {
            let note = "runs more than 10^9 instructions at standard size";
            result.notes.push(format!("{} {note}", task.name));
        }
    }
    context.progress.finish();
    result.ours.push(Figure::exact("programs", result.detail.rows.len() as f64));
    result.ours.push(Figure::exact("instructions", instructions as f64));
    for (key, pairs) in [("cachegrind_ratio", to_cachegrind), ("qemu_ratio", to_qemu)] {
        if let Ok((value, interval)) = geometric_ratio(&pairs, Coverage::P95) {
            result.ours.push(Figure::measured(key, value, interval));
        }
    }
    for (name, title, data) in [
        ("suite-cachegrind", "CPU time under cachegrind, against native", cachegrind_bars),
        ("suite-qemu", "CPU time under qemu, against native", qemu_bars),
    ] {
        let svg = bars(title, "×", &data);
        result.plots.push(Plot { name: name.to_owned(), caption: title.to_owned(), svg });
    }
    result.notes.push(
        "the ± of the two mean ratios is over programs, that of a program over rounds".to_owned(),
    );
    Ok(result)
}

/// One pair for a program: the sums, so that a program counts once.
fn mean_pair(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let sum = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    (sum.1 > 0.0).then_some(sum)
}

fn bar(task: &Task, pairs: &[(f64, f64)]) -> Option<Bar> {
    let (value, interval) = geometric_ratio(pairs, Coverage::P95).ok()?;
    let interval = Some((interval.low, interval.high));
    Some(Bar { label: task.name.clone(), value, interval })
}

fn measure(context: &Context, task: &Task, versions: &[String; 2]) -> Result<Measured, String> {
    let tools: Vec<&str> = versions.iter().map(String::as_str).collect();
    let key = context.key("suite", task, &tools, ROUNDS);
    if let Some(measured) = context.kept.find(&key) {
        (0..ROUNDS).for_each(|_| context.progress.step(&task.name));
        return Ok(measured);
    }
    let measured = rounds(context, task)?;
    context.kept.put(&key, &measured)?;
    Ok(measured)
}

fn rounds(context: &Context, task: &Task) -> Result<Measured, String> {
    let bare = Wrap::default();
    let mut measured = Measured {
        native_seconds: Vec::new(),
        instructions: 0,
        cachegrind: Vec::new(),
        qemu: Ok(Vec::new()),
    };
    for _ in 0..ROUNDS {
        context.progress.step(&task.name);
        let before = once(context, task, &bare)?;
        let streams = context.work.streams()?;
        let wrap = Cachegrind.wrap(context, &streams)?;
        let outcome = run::run(task, &wrap, &streams)
            .map_err(|sentence| format!("under cachegrind, {sentence}"))?;
        measured.cachegrind.push((outcome.spent.cpu_seconds(), before));
        let refs = Refs::read(&streams).map_err(|sentence| format!("{}: {sentence}", task.name))?;
        measured.instructions = refs.instructions;
        let again = once(context, task, &bare)?;
        measured.native_seconds.extend([before, again]);
        if refs.commands > 1 {
            measured.qemu = Err("it starts other programs, which qemu runs natively".to_owned());
        }
        if let Ok(pairs) = &mut measured.qemu {
            match once(context, task, &Qemu.wrap(context, &streams)?) {
                Ok(seconds) => pairs.push((seconds, again)),
                Err(sentence) => measured.qemu = Err(sentence),
            }
        }
    }
    Ok(measured)
}

/// CPU seconds of one checked run.
fn once(context: &Context, task: &Task, wrap: &Wrap) -> Result<f64, String> {
    Ok(run::run(task, wrap, &context.work.streams()?)?.spent.cpu_seconds())
}

fn cells(task: &Task, measured: &Measured) -> Vec<Cell> {
    let ratio = |pairs: &[(f64, f64)]| match geometric_ratio(pairs, Coverage::P95) {
        Ok((value, interval)) => Cell::Estimate(value, interval, Unit::Ratio),
        Err(too_few) => Cell::NotCounted(too_few.to_string()),
    };
    let native = match median(&measured.native_seconds, Coverage::P95) {
        Ok((value, interval)) => Cell::Estimate(value, interval, Unit::Seconds),
        Err(too_few) => Cell::NotCounted(too_few.to_string()),
    };
    let short = |hash: &String| hash.get(..8).unwrap_or(hash).to_owned();
    let joined = |words: Vec<String>| Cell::text(words.join(" "));
    vec![
        Cell::text(&task.name),
        native,
        Cell::Count(vocab::Count(measured.instructions)),
        ratio(&measured.cachegrind),
        match &measured.qemu {
            Ok(pairs) => ratio(pairs),
            Err(why) => Cell::NotCounted(why.clone()),
        },
        Cell::text(&task.stresses),
        joined(task.versions.iter().map(|(name, version)| format!("{name} {version}")).collect()),
        joined(task.argv.clone()),
        joined(task.inputs.values().map(short).collect()),
    ]
}
