//! SSB figure 7: the stall breakdown of cc1 over time.
//!
//! `whither ssb` itself watches cc1 on two modelled cores: the paper's, and the one that describes
//! this host. What it prints of every interval is what is drawn.

mod areas;

use serde_json::Value;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::peers::{file, our_binary, words};
use crate::result::{Figure, Plot, RowResult};
use crate::run::{self, Task};
use areas::{Area, stacked};

const PROGRAMS: &[&str] = &["cc1"];
/// The paper's machine.
const PAPERS: &str = "ppc970";
/// The cause that is drawn at the bottom: what is left when all stalls are taken away.
const REST: &str = "rest";

const COLUMNS: [Column; 6] = [
    Column::text("program", "program"),
    Column::text("machine", "machine"),
    Column::text("cause", "waiting for"),
    Column::number("cpi", "CPI"),
    Column::number("share", "share"),
    Column::number("intervals", "intervals"),
];

/// What one run printed.
#[derive(Debug, Default)]
struct Watched {
    machine: String,
    times: Vec<f64>,
    areas: Vec<Area>,
    ideal: Option<f64>,
    /// Cause, CPI, its interval's half width, share of the cycles; over the whole run.
    whole: Vec<(String, f64, f64)>,
    cpi: f64,
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let whither = our_binary(context)?;
    let (tasks, wrong) = context.tasks(PROGRAMS);
    let mut result = RowResult {
        wrong,
        caption: "modelled; every interval's CPI divided by cause, ± at 95 %".to_owned(),
        detail: Table { columns: COLUMNS.to_vec(), ..Table::default() },
        ..RowResult::default()
    };
    context.progress.start(tasks.len() as u64 * 2);
    for task in &tasks {
        result.remember(task);
        // None: the machine that describes this host.
        for machine in [Some(PAPERS), None] {
            match watch(context, task, &whither, machine) {
                Ok(watched) => add(&mut result, task, &watched),
                Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
            }
            context.progress.step(&task.name);
        }
    }
    context.progress.finish();
    result.seeds.insert("order of turns".to_owned(), serde_json::json!(context.seed));
    result.notes.push(
        "events take turns in slices of 5,000 cycles, so that every point is an estimate; times \
         are the process's own at the machine's clock"
            .to_owned(),
    );
    Ok(result)
}

fn watch(
    context: &Context,
    task: &Task,
    whither: &str,
    machine: Option<&str>,
) -> Result<Watched, String> {
    let streams = context.work.streams()?;
    let report = file(&streams, "ssb.json");
    let seed = context.seed.to_string();
    let interval = if context.quick { "1" } else { "4" };
    let host = machine.map_or_else(host_machine, |name| Ok(name.to_owned()))?;
    let asked = [
        whither,
        "ssb",
        "--machine",
        &host,
        "--json",
        "-I",
        interval,
        "--seed",
        &seed,
        "-o",
        &report,
        "--",
    ];
    run::run(task, &words(&asked), &streams)?;
    let text = std::fs::read_to_string(&report).map_err(|error| format!("{report}: {error}"))?;
    read(&text).ok_or_else(|| format!("{}: `whither ssb` printed no interval", task.name))
}

/// The machine that describes this host, as `whither list machines` has it.
fn host_machine() -> Result<String, String> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
        line.and_then(|line| line.split(':').nth(1)).map(|value| value.trim().to_owned())
    };
    let number = |name: &str| field(name).and_then(|value| value.parse().ok());
    let found = match (field("vendor_id"), number("cpu family"), number("model")) {
        (Some(vendor), Some(family), Some(model)) => {
            model::machine::Machine::matching(&vendor, family, model)
        }
        _ => None,
    };
    Ok(found.map_or_else(|| "icelake-server".to_owned(), |machine| machine.name))
}

/// From the lines that were printed: intervals, then the report.
fn read(text: &str) -> Option<Watched> {
    let lines: Vec<Value> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let intervals: Vec<&Value> =
        lines.iter().filter(|line| line["schema"] == "whither.ssb_interval").collect();
    let busiest = busiest(&intervals)?;
    let mine = intervals.iter().filter(|line| line["interval"]["pid"] == busiest);
    let mut watched = Watched::default();
    for line in mine {
        let about = &line["interval"];
        watched.machine = about["machine"].as_str().unwrap_or_default().to_owned();
        watched.ideal = about["ideal_cpi"].as_f64();
        watched.times.push(about["at_s"].as_f64()?);
        let point = watched.times.len();
        for row in line["causes"].as_array()? {
            let name = row["cause"].as_str()?;
            // What is a part of the rest is not drawn again.
            if name == "unclaimed" {
                continue;
            }
            let height = value(&row["cpi"]).unwrap_or(0.0);
            let place = watched.areas.iter().position(|area| area.name == name);
            let place = place.unwrap_or_else(|| {
                let heights = vec![0.0; point - 1];
                watched.areas.push(Area { name: name.to_owned(), heights });
                watched.areas.len() - 1
            });
            watched.areas[place].heights.push(height);
        }
    }
    watched.areas.sort_by_key(|area| area.name != REST);
    whole(&mut watched, &intervals, &busiest);
    Some(watched)
}

/// The process with the most instructions.
fn busiest(intervals: &[&Value]) -> Option<Value> {
    let mut sums: Vec<(Value, f64)> = Vec::new();
    for line in intervals {
        let about = &line["interval"];
        let instructions = about["instructions"].as_f64().unwrap_or(0.0);
        match sums.iter_mut().find(|(pid, _)| *pid == about["pid"]) {
            Some((_, sum)) => *sum += instructions,
            None => sums.push((about["pid"].clone(), instructions)),
        }
    }
    sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(pid, _)| pid)
}

/// Each cause over all intervals: cycles add up, and so do variances.
fn whole(watched: &mut Watched, intervals: &[&Value], pid: &Value) {
    let mine: Vec<&&Value> =
        intervals.iter().filter(|line| line["interval"]["pid"] == *pid).collect();
    let weight = |line: &Value| line["interval"]["instructions"].as_f64().unwrap_or(0.0);
    let all: f64 = mine.iter().map(|line| weight(line)).sum::<f64>().max(1.0);
    let mean = |of: &dyn Fn(&Value) -> f64| -> f64 {
        mine.iter().map(|line| of(line) * weight(line)).sum::<f64>() / all
    };
    watched.cpi = mean(&|line| value(&line["interval"]["cpi"]).unwrap_or(0.0));
    for area in &watched.areas {
        let part = |line: &Value| {
            let rows = line["causes"].as_array().cloned().unwrap_or_default();
            rows.into_iter().find(|row| row["cause"] == area.name.as_str()).unwrap_or_default()
        };
        let cpi = mean(&|line| value(&part(line)["cpi"]).unwrap_or(0.0));
        let squares: f64 = mine
            .iter()
            .map(|line| (half_width(&part(line)["cpi"]) * weight(line) / all).powi(2))
            .sum();
        watched.whole.push((area.name.clone(), cpi, squares.sqrt()));
    }
}

/// A number, or an estimate's value.
fn value(cell: &Value) -> Option<f64> {
    cell.as_f64().or_else(|| cell["value"].as_f64())
}

fn half_width(cell: &Value) -> f64 {
    match (cell["low"].as_f64(), cell["high"].as_f64()) {
        (Some(low), Some(high)) => (high - low) / 2.0,
        _ => 0.0,
    }
}

fn add(result: &mut RowResult, task: &Task, watched: &Watched) {
    let machine = &watched.machine;
    let interval = |value: f64, half: f64| metrology::Interval {
        low: value - half,
        high: value + half,
        coverage: metrology::Coverage::P95,
    };
    for (cause, cpi, half) in &watched.whole {
        let cells = vec![
            Cell::text(&*task.name),
            Cell::text(&**machine),
            Cell::text(&**cause),
            Cell::Estimate(*cpi, interval(*cpi, *half), Unit::Number),
            Cell::Number(cpi / watched.cpi, Unit::Share),
            Cell::Number(watched.times.len() as f64, Unit::Number),
        ];
        result.detail.rows.push(Row::Cells(Tone::Plain, cells));
    }
    let stalls = watched.whole.iter().filter(|(cause, ..)| cause != REST);
    if let Some((cause, cpi, _)) = stalls.max_by(|a, b| a.1.total_cmp(&b.1)) {
        result.notes.push(format!(
            "{} on {machine}: most stalls are charged to {cause}, {:.0} % of the cycles",
            task.name,
            100.0 * cpi / watched.cpi
        ));
    }
    result.ours.push(Figure::exact(&format!("cpi_{machine}"), watched.cpi));
    result.plots.push(Plot {
        name: format!("ssb-{}-{machine}", task.name),
        caption: format!(
            "{}'s CPI on the modelled {machine} over time, divided by what was waited for",
            task.name
        ),
        svg: stacked(
            &format!("{} on {machine} (modelled): CPI by cause", task.name),
            &watched.times,
            &watched.areas,
            watched.ideal,
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(pid: u64, at: f64, instructions: u64, icache: f64, rest: f64) -> String {
        serde_json::json!({
            "schema": "whither.ssb_interval",
            "interval": {"pid": pid, "at_s": at, "instructions": instructions, "machine": "m",
                         "cpi": icache + rest, "ideal_cpi": 0.2},
            "causes": [
                {"cause": "ICache miss", "cpi": {"value": icache, "low": icache - 0.1,
                                                 "high": icache + 0.1}},
                {"cause": "rest", "cpi": rest},
                {"cause": "unclaimed", "cpi": 0.1},
            ],
        })
        .to_string()
    }

    #[test]
    fn the_busiest_process_is_drawn_and_its_parts_add_up() {
        let text = [
            line(1, 0.001, 10, 9.0, 9.0),
            line(2, 0.001, 100, 1.0, 0.5),
            line(2, 0.002, 300, 2.0, 0.5),
            "{\"schema\":\"whither.ssb\"}".to_owned(),
        ]
        .join("\n");
        let watched = read(&text).unwrap();
        assert_eq!(watched.times, [0.001, 0.002]);
        let names: Vec<&str> = watched.areas.iter().map(|area| area.name.as_str()).collect();
        assert_eq!(names, ["rest", "ICache miss"]);
        // (1·100 + 2·300)/400.
        assert_eq!(watched.whole[1].1, 1.75);
        assert_eq!(watched.cpi, 2.25);
        let squares = (0.1_f64 * 0.25).powi(2) + (0.1_f64 * 0.75).powi(2);
        assert!((watched.whole[1].2 - squares.sqrt()).abs() < 1e-12);
        assert!(read("").is_none());
    }
}
