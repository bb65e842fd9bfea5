//! The distance over the length of slices, and over the number of groups.

use model::event::Event;
use pmu::estimate::Series;
use serde_json::json;
use show::{Cell, Column, Row, Table, Tone, Unit};

use crate::context::Context;
use crate::mux::chart::{Line, lines};
use crate::mux::judge::{MACHINE, drawn, each_program};
use crate::mux::kl::{bins, distance, plan};
use crate::mux::replay::{Sums, grouping, replay};
use crate::mux::truth::Question;
use crate::result::{Plot, RowResult};

/// What the paper looks at in gzip.
const SHOWN: [Event; 3] = [Event::L1dLoadMisses, Event::DtlbLoadMisses, Event::BranchMisses];
const SLICES_CYCLES: [u64; 6] = [20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000];
const RATIOS: [usize; 5] = [2, 4, 6, 8, 10];
const RATIO_SLICE_CYCLES: u64 = 500_000;
const SEEDS: u64 = 5;

const COLUMNS: [Column; 6] = [
    Column::text("program", "program"),
    Column::text("event", "event"),
    Column::number("slice_cycles", "slice"),
    Column::number("ratio", "groups"),
    Column::number("linear", "linear"),
    Column::number("ours", "ours"),
];

/// One point: slice, groups, event, linear, ours.
type Point = (u64, usize, Event, f64, f64);

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let (found, mut result) =
        each_program(context, &["gzip"], &Question::by_cycles(MACHINE), |_, sums| {
            let mut points = Vec::new();
            for slice in SLICES_CYCLES {
                points.extend(point(sums, slice, 10, context.seed)?);
            }
            for ratio in RATIOS {
                points.extend(point(sums, RATIO_SLICE_CYCLES, ratio, context.seed)?);
            }
            Ok(points)
        })?;
    result.detail = Table { columns: COLUMNS.to_vec(), ..Table::default() };
    for (name, points) in &found {
        for (slice, ratio, event, linear, ours) in points {
            let cells = vec![
                Cell::text(name.clone()),
                Cell::text(event.name()),
                Cell::Number(*slice as f64, Unit::Count),
                Cell::Number(*ratio as f64, Unit::Number),
                Cell::text(format!("{linear:.3}")),
                Cell::text(format!("{ours:.3}")),
            ];
            result.detail.rows.push(Row::Cells(Tone::Plain, cells));
        }
        result.plots.push(drawing(name, points, "slice"));
        result.plots.push(drawing(name, points, "ratio"));
    }
    result.caption = format!(
        "{MACHINE}; KL distance from the full counts, a bin a round, at least half a count, mean over \
         {SEEDS} seeds; the groups' number is varied at slices of {RATIO_SLICE_CYCLES} cycles"
    );
    result.seeds.insert("orders".to_owned(), json!(context.seed));
    Ok(result)
}

fn point(sums: &Sums, slice: u64, ratio: usize, seed: u64) -> Result<Vec<Point>, String> {
    let others = drawn(seed).into_iter().filter(|event| !SHOWN.contains(event));
    let events: Vec<Event> = SHOWN.into_iter().chain(others).take(8 * ratio).collect();
    let groups = grouping(MACHINE, &events)?;
    let places = SHOWN.map(|event| groups.find(event.name()));
    let mut sums_of = [(0.0, 0.0, 0.0); SHOWN.len()];
    for k in 0..SEEDS {
        let turns = plan(groups.groups.len(), slice, seed.wrapping_add(k));
        let (readings, ends) = replay(sums, &groups, turns);
        let series = Series::new(&groups, &readings);
        for (place, (linear, ours, n)) in places.iter().zip(&mut sums_of) {
            let Some(bins) = place.and_then(|place| bins(sums, &series, &ends, place)) else {
                continue;
            };
            if bins.full.len() > 1 {
                *linear += distance(&bins.full, &bins.linear);
                *ours += distance(&bins.full, &bins.ours);
                *n += 1.0;
            }
        }
    }
    let of = |(event, (linear, ours, n)): (Event, (f64, f64, f64))| {
        (n > 0.0).then(|| (slice, groups.groups.len(), event, linear / n, ours / n))
    };
    Ok(SHOWN.into_iter().zip(sums_of).filter_map(of).collect())
}

fn drawing(name: &str, points: &[Point], over: &str) -> Plot {
    let is_slice = over == "slice";
    // The sweep over slices comes first, at ten groups; the one over groups after it.
    let split = SLICES_CYCLES.len() * SHOWN.len();
    let part = if is_slice { points.get(..split) } else { points.get(split..) };
    let part = part.unwrap_or(points);
    let line = |event: Event, label: &str, value: fn(&Point) -> f64| Line {
        label: format!("{} {label}", event.name()),
        points: part
            .iter()
            .filter(|p| p.2 == event)
            .map(|p| (if is_slice { p.0 as f64 } else { p.1 as f64 }, value(p)))
            .collect(),
    };
    let all: Vec<Line> = SHOWN.iter().map(|&event| line(event, "ours", |p| p.4)).collect();
    let across = if is_slice { "cycles a slice" } else { "groups" };
    Plot {
        name: format!("mux-sweep-{name}-{over}"),
        caption: format!("{name}: KL distance over {across}"),
        svg: lines(&format!("{name}: KL distance"), across, "", &all),
    }
}
