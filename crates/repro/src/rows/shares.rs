//! Where time went, as `whither run` and as perf see it.
//!
//! Both sample the same command with the same clock at the same rate, one after the other. perf's
//! samples are taken as addresses and placed by perf's own records of maps, so that stripped
//! programs are compared too; our procedures are the bins. Two shares of n and m samples differ by
//! chance with the variance p(1−p)(1/n + 1/m).

use std::collections::HashMap;
use std::process::Command;

use serde_json::{Value, json};
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::peers::{file, our_binary, version_of_perf, words};
use crate::result::{Figure, RowResult};
use crate::run::{self, Task};
use crate::suite::Size;

/// What is run unless commands are given: one stripped to the bone, one with 27,000 names.
const PROGRAMS: &[&str] = &["gzip", "cc1"];
/// Procedures compared for each program, ours with the most samples first.
const COMPARED: usize = 12;
/// Samples a second, prime.
const HERTZ: &str = "997";

const COLUMNS: [Column; 6] = [
    Column::text("program", "program"),
    Column::text("image", "image"),
    Column::text("procedure", "procedure"),
    Column::number("ours", "whither"),
    Column::number("perf", "perf"),
    Column::number("sigmas", "apart, in σ"),
];

/// One of our procedures with its samples.
struct Bin {
    image: String,
    name: String,
    start: u64,
    bytes: u64,
    samples: u64,
}

/// What perf recorded: samples by file and offset in it, and how many there were in all.
#[derive(Default)]
struct PerfSamples {
    by_file: HashMap<String, Vec<u64>>,
    all: u64,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let whither = our_binary(context)?;
    let version = version_of_perf()?;
    // Samples take time: only full inputs run long enough for a share to mean something.
    let size = if context.quick { Size::Quick } else { Size::Full };
    let (tasks, wrong) = context.tasks_at(PROGRAMS, size);
    let mut result = RowResult {
        wrong,
        caption: format!("{} inputs; cpu-clock at {HERTZ} Hz, user code", size.name()),
        size: Some(size.name()),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    result.versions.insert("perf".to_owned(), json!(version));
    let mut apart = Vec::new();
    context.progress.start(tasks.len() as u64 * 2);
    for task in &tasks {
        match compare(context, task, &whither, &mut result) {
            Ok(sigmas) => {
                result.remember(task);
                apart.extend(sigmas);
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    context.progress.finish();
    let within = apart.iter().filter(|sigmas: &&f64| sigmas.abs() <= 3.0).count();
    if !apart.is_empty() {
        let share = 100.0 * within as f64 / apart.len() as f64;
        result.ours.push(Figure::exact("within_3_sigma_pct", share));
        result.ours.push(Figure::exact("compared", apart.len() as f64));
    }
    Ok(result)
}

fn compare(
    context: &Context,
    task: &Task,
    whither: &str,
    result: &mut RowResult,
) -> Result<Vec<f64>, String> {
    let streams = context.work.streams()?;
    let (report, data) = (file(&streams, "report.json"), file(&streams, "perf.data"));
    let ours = words(&[whither, "run", "--json", "-F", HERTZ, "-o", &report, "--"]);
    run::run(task, &ours, &streams)?;
    context.progress.step(&task.name);
    let (bins, all) = read_report(&report)?;
    let perf = ["perf", "record", "-q", "-e", "cpu-clock", "-F", HERTZ, "-o", &data, "--"];
    run::run(task, &words(&perf), &streams)?;
    context.progress.step(&task.name);
    let samples = read_perf(&data)?;
    Ok(bins.iter().take(COMPARED).map(|bin| row(task, bin, all, &samples, result)).collect())
}

/// One line of the table; returns how far the two are apart.
fn row(task: &Task, bin: &Bin, all: u64, perf: &PerfSamples, result: &mut RowResult) -> f64 {
    let range = bin.start..bin.start.saturating_add(bin.bytes);
    let theirs = perf
        .by_file
        .get(&bin.image)
        .map_or(0, |offsets| offsets.iter().filter(|offset| range.contains(offset)).count() as u64);
    let (n, m) = (all.max(1) as f64, perf.all.max(1) as f64);
    let (p, q) = (bin.samples as f64 / n, theirs as f64 / m);
    let pooled = (bin.samples + theirs) as f64 / (n + m);
    let sigma = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    let sigmas = if sigma > 0.0 { (p - q) / sigma } else { 0.0 };
    let cells = [
        Cell::text(&task.name),
        Cell::text(bin.image.rsplit('/').next().unwrap_or_default()),
        Cell::text(&bin.name),
        Cell::Number(p, Unit::Share),
        Cell::Number(q, Unit::Share),
        Cell::Number(sigmas, Unit::Number),
    ];
    result.detail.rows.push(Row::Cells(Tone::Plain, cells.to_vec()));
    sigmas
}

/// Our procedures in files, most samples first, and how many samples there were in all.
fn read_report(path: &str) -> Result<(Vec<Bin>, u64), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let hex = |value: &Value| {
        let digits = value.as_str().and_then(|text| text.strip_prefix("0x"));
        digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
    };
    let rows = report["procedures"].as_array().ok_or("the report has no procedures")?;
    let bin = |row: &Value| {
        Some(Bin {
            image: row["path"].as_str().filter(|path| path.starts_with('/'))?.to_owned(),
            name: row["procedure"].as_str()?.to_owned(),
            start: hex(&row["offset"])?,
            bytes: number(&row["bytes"]),
            samples: number(&row["samples"]),
        })
    };
    let sampling = &report["sampling"];
    let all = number(&sampling["stored"]) + number(&sampling["unplaced"]);
    Ok((rows.iter().filter_map(bin).collect(), all))
}

fn read_perf(data: &str) -> Result<PerfSamples, String> {
    let output = Command::new("perf")
        .args(["script", "-i", data, "--show-mmap-events", "-F", "pid,ip"])
        .output()
        .map_err(|e| format!("perf cannot run: {e}"))?;
    Ok(place(&String::from_utf8_lossy(&output.stdout)))
}

/// Places samples by the maps that stand before them.
///
/// ```text
/// 24894 PERF_RECORD_MMAP2 24894/24894: [0x5590976ca000(0xf000) @ 0x3000 fe:00 1 0]: r-xp /bin/x
/// 24894      5590976cb330
/// ```
fn place(script: &str) -> PerfSamples {
    let mut samples = PerfSamples::default();
    let mut maps: HashMap<&str, Vec<(u64, u64, u64, &str)>> = HashMap::new();
    for line in script.lines() {
        let mut words = line.split_whitespace();
        let (Some(pid), Some(second)) = (words.next(), words.next()) else { continue };
        if second.starts_with("PERF_RECORD_MMAP") {
            if let Some(map) = parse_map(line) {
                maps.entry(pid).or_default().push(map);
            }
            continue;
        }
        let Ok(pc) = u64::from_str_radix(second, 16) else { continue };
        samples.all += 1;
        let found = maps.get(pid).and_then(|maps| {
            maps.iter().rev().find(|(start, length, ..)| pc.wrapping_sub(*start) < *length)
        });
        if let Some((start, _, offset, path)) = found {
            let offsets = samples.by_file.entry((*path).to_owned()).or_default();
            offsets.push(offset + (pc - start));
        }
    }
    samples
}

/// Start, length, offset in the file, path.
fn parse_map(line: &str) -> Option<(u64, u64, u64, &str)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (_, rest) = line.split_once('[')?;
    let (start, rest) = rest.split_once('(')?;
    let (length, rest) = rest.split_once(')')?;
    let (_, rest) = rest.split_once("@ ")?;
    let offset = rest.split([' ', ']']).next()?;
    let (_, path) = rest.split_once("]: ")?.1.split_once(' ')?;
    Some((hex(start)?, hex(length)?, hex(offset)?, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_fall_into_the_newest_map_of_their_process() {
        let script = "\
            7 PERF_RECORD_MMAP2 7/7: [0x1000(0x1000) @ 0x300 fe:00 1 0]: r-xp /bin/a b\n\
            7 1010\n\
            7 PERF_RECORD_MMAP2 7/7: [0x1000(0x1000) @ 0 fe:00 1 0]: r-xp /bin/c\n\
            7 1010\n8 1010\n7 ffffffff81000000\n";
        let samples = place(script);
        assert_eq!(samples.all, 4);
        assert_eq!(samples.by_file["/bin/a b"], [0x310]);
        assert_eq!(samples.by_file["/bin/c"], [0x10]);
    }
}
