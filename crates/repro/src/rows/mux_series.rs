//! An event's rate over time, full and sampled.

use model::event::Event;
use pmu::estimate::Series;
use serde_json::json;

use crate::context::Context;
use crate::mux::chart::{Line, lines};
use crate::mux::judge::{MACHINE, each_program};
use crate::mux::kl::{Bins, bins, plan};
use crate::mux::replay::{grouping, replay};
use crate::mux::truth::Question;
use crate::result::{Figure, Plot, RowResult};

const SLICE_CYCLES: u64 = 200_000;
const SHOWN: [Event; 2] = [Event::Uops, Event::L1dLoadMisses];

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let (found, mut result) =
        each_program(context, &["cc1"], &Question::by_cycles(MACHINE), |_, sums| {
            let pool = crate::mux::judge::drawn(context.seed);
            let others = pool.into_iter().filter(|event| !SHOWN.contains(event));
            let events: Vec<Event> = SHOWN.into_iter().chain(others).take(80).collect();
            let groups = grouping(MACHINE, &events)?;
            let turns = plan(groups.groups.len(), SLICE_CYCLES, context.seed);
            let (readings, ends) = replay(sums, &groups, turns);
            let all = Series::new(&groups, &readings);
            let of = |event: &Event| {
                let place = groups.find(event.name())?;
                Some((*event, bins(sums, &all, &ends, place)?))
            };
            Ok(SHOWN.iter().filter_map(of).collect::<Vec<(Event, Bins)>>())
        })?;
    for (name, series) in &found {
        for (event, bins) in series {
            result.plots.push(Plot {
                name: format!("mux-series-{name}-{}", event.name()),
                caption: format!(
                    "{name}: {} per cycle over time; all counted, one slice in ten scaled, and ours",
                    event.name()
                ),
                svg: draw(name, *event, bins),
            });
            let key = format!("kl_{}", event.name().replace('-', "_"));
            let distance = crate::mux::kl::distance(&bins.full, &bins.ours);
            result.ours.push(Figure::exact(&key, distance));
        }
    }
    result.caption =
        format!("{MACHINE}, 80 events at ratio 10, slices of {SLICE_CYCLES} cycles, a bin a round");
    result.seeds.insert("order".to_owned(), json!(context.seed));
    Ok(result)
}

fn draw(name: &str, event: Event, bins: &Bins) -> String {
    let rate = |counts: &[f64]| {
        let mut at = 0.0;
        let point = |(count, cycles): (&f64, &f64)| {
            at += cycles;
            (at, count / cycles.max(1.0))
        };
        counts.iter().zip(&bins.cycles).map(point).collect::<Vec<_>>()
    };
    let line = |label: &str, counts: &[f64]| Line { label: label.to_owned(), points: rate(counts) };
    let all = [line("linear", &bins.linear), line("full", &bins.full), line("ours", &bins.ours)];
    lines(&format!("{name}: {} per cycle", event.name()), "cycles", "", &all)
}
