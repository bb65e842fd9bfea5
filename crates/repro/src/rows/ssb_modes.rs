//! Stall distributions of the ppc970 as it is, with one instruction a bundle, and in order.

use model::event::Event;
use show::{Cell, Column, Row, Table, Tone};

use crate::context::Context;
use crate::mux::kl::distance;
use crate::mux::replay::Sums;
use crate::mux::truth::{self, Question};
use crate::result::{Figure, RowResult};
use crate::run::Task;

const MACHINE: &str = "ppc970";
/// A bin: slices of instructions end at the same instruction in every mode.
const SLICE_INSTRUCTIONS: u64 = 200_000;
const QUICK_INSTRUCTIONS: u64 = 20_000;
/// A source that stalls less than once in so many instructions is not rated.
const RATED_INSTRUCTIONS: u64 = 10_000;
const MODES: [&str; 3] = ["native", "single", "in-order"];
const QUICK: &[&str] = &["bzip2"];
/// The programs that stand for the paper's.
const PROGRAMS: &[&str] = &["gzip", "cc1", "perl", "chess", "applu", "mgrid", "art", "povray"];

/// The paper's seven sources, and the events of the modelled core that make them up.
const SOURCES: [(&str, &[Event]); 7] = [
    ("icache", &[Event::SsbCode]),
    ("dcache", &[Event::SsbL2, Event::SsbL3, Event::SsbMemory]),
    ("erat", &[Event::SsbDataTlb, Event::SsbCodeTlb]),
    ("fpu", &[Event::SsbFloat]),
    ("integer", &[Event::SsbInteger, Event::SsbLongInteger]),
    ("mispredict", &[Event::SsbMispredict, Event::SsbResteer]),
    ("rejection", &[Event::SsbForward, Event::SsbStore]),
];

const COLUMNS: [Column; 5] = [
    Column::text("program", "program"),
    Column::text("source", "source"),
    Column::number("per_instruction", "stalls/instruction"),
    Column::number("kl_single", "KL_S"),
    Column::number("kl_in_order", "KL_I"),
];

/// One source of one program; distances are absent below the rate.
struct Rated {
    program: String,
    source: &'static str,
    /// In each mode.
    per_instruction: [f64; MODES.len()],
    distances: Option<(f64, f64)>,
    /// The fewest slices that hold half of its stalls on the machine as it is, and all slices.
    half_in: (usize, usize),
}

impl Rated {
    /// How its stalls change with the mode, and how they lie in time: a source that is rare, or comes
    /// in few slices, is far from what it is elsewhere by little.
    fn explained(&self) -> String {
        let Rated { program, source, per_instruction: [real, single, in_order], .. } = self;
        format!(
            "outlier: {program}'s {source}: {real:.4} stalled cycles an instruction, {single:.4} in \
             single mode, {in_order:.4} in order; half of those on the machine as it is fall into \
             {} of {} slices",
            self.half_in.0, self.half_in.1
        )
    }
}

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let names = if context.quick { QUICK } else { PROGRAMS };
    let (tasks, wrong) = context.tasks(names);
    let mut result = RowResult { wrong, ..RowResult::default() };
    let root = context.work.streams()?;
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    let mut all = Vec::new();
    context.progress.start(tasks.len() as u64);
    for (place, task) in tasks.iter().enumerate() {
        match modes(context, task, &root, place) {
            Ok(rated) => {
                result.remember(task);
                let rows = rated.iter().map(|r| Row::Cells(Tone::Plain, cells(r)));
                result.detail.rows.extend(rows);
                all.extend(rated);
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
        context.progress.step(&task.name);
    }
    context.progress.finish();
    let rated: Vec<(f64, f64)> = all.iter().filter_map(|r| r.distances).collect();
    let below = |of: fn(&(f64, f64)) -> f64| rated.iter().filter(|d| of(d) < 0.2).count() as f64;
    result.ours.push(Figure::exact("kl_single_below_0_2", below(|d| d.0)));
    result.ours.push(Figure::exact("kl_in_order_below_0_2", below(|d| d.1)));
    result.ours.push(Figure::exact("of", rated.len() as f64));
    result.caption = format!(
        "{} size; {MACHINE}, user code only; slices of {} instructions, aligned in all modes; KL \
         distance of each source's stalls over time from those of the machine as it is",
        context.size_name(),
        slice(context)
    );
    result.notes.push(
        "stalls are charged as the paper's counters do: the whole of one to what ends it. ERAT and \
         TLB are one source, stalls of stores and of forwarding stand for rejections. A large \
         distance is usually of a source that is small in one mode: serialising the machine turns \
         latency that was overlapped, and so never charged, into stalls, and they come at other \
         times than the few that were charged before"
            .to_owned(),
    );
    let outliers = all.iter().filter(|r| r.distances.is_some_and(|d| d.0.max(d.1) > 0.5));
    result.notes.extend(outliers.map(Rated::explained));
    Ok(result)
}

fn slice(context: &Context) -> u64 {
    if context.quick { QUICK_INSTRUCTIONS } else { SLICE_INSTRUCTIONS }
}

fn modes(
    context: &Context,
    task: &Task,
    root: &std::path::Path,
    place: usize,
) -> Result<Vec<Rated>, String> {
    let mut logs = Vec::new();
    for mode in MODES {
        let question = Question {
            mode: mode.to_owned(),
            boundary: Event::Instructions.name().to_owned(),
            slice: slice(context),
            ..Question::by_cycles(MACHINE)
        };
        logs.push(Sums::new(&truth::logged(context, task, question, root, place)?));
    }
    let [real, single, in_order] = logs.as_slice() else { return Ok(Vec::new()) };
    let bins = real.slices().min(single.slices()).min(in_order.slices());
    let series = |sums: &Sums, events: &[Event]| -> Vec<f64> {
        let of = |k: usize| events.iter().map(|&e| sums.between(e, k, k + 1)).sum::<u64>() as f64;
        (0..bins).map(of).collect()
    };
    let rate = |(source, events): (&'static str, &[Event])| {
        let total = |sums: &Sums| events.iter().map(|&event| sums.total(event)).sum::<u64>();
        let instructions = |sums: &Sums| sums.total(Event::Instructions).max(1);
        let is_rated = total(real) >= instructions(real) / RATED_INSTRUCTIONS;
        let full = series(real, events);
        let from = |sums: &Sums| distance(&full, &series(sums, events));
        Rated {
            program: task.name.clone(),
            source,
            per_instruction: [real, single, in_order]
                .map(|sums| total(sums) as f64 / instructions(sums) as f64),
            distances: is_rated.then(|| (from(single), from(in_order))),
            half_in: (half_in(&full), bins),
        }
    };
    Ok(SOURCES.into_iter().map(rate).collect())
}

/// The fewest bins that hold half of a series.
fn half_in(series: &[f64]) -> usize {
    let mut largest = series.to_vec();
    largest.sort_by(|a, b| b.total_cmp(a));
    let half = 0.5 * series.iter().sum::<f64>();
    let mut held = 0.0;
    let enough = largest.iter().position(|value| {
        held += value;
        held >= half
    });
    enough.map_or(0, |place| place + 1)
}

fn cells(rated: &Rated) -> Vec<Cell> {
    let distance = |value: Option<f64>| {
        value.map_or_else(|| Cell::text("N/A"), |value| Cell::text(format!("{value:.2}")))
    };
    vec![
        Cell::text(&rated.program),
        Cell::text(rated.source),
        Cell::text(format!("{:.5}", rated.per_instruction[0])),
        distance(rated.distances.map(|d| d.0)),
        distance(rated.distances.map(|d| d.1)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_series_lies_in_its_largest_bins() {
        assert_eq!(half_in(&[1.0, 9.0, 0.0, 2.0]), 1);
        assert_eq!(half_in(&[1.0; 8]), 4);
        assert_eq!(half_in(&[]), 0);
    }

    #[test]
    fn an_outlier_names_its_program_and_every_mode() {
        let rated = Rated {
            program: "applu".to_owned(),
            source: "dcache",
            per_instruction: [0.0036, 0.05, 0.004],
            distances: Some((2.48, 0.14)),
            half_in: (3, 200),
        };
        let told = rated.explained();
        for part in ["applu's dcache", "0.0036", "0.0500 in single", "0.0040 in order", "3 of 200"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
    }
}
