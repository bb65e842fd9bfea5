//! Table 7: the graph against cores that are really idealised.

use icost::{Categories, Lattice, subsets_up_to};
use show::{Cell, Column, Row, Table, Tone, Unit};

use super::{Wanted, answers, mean_of};
use crate::context::Context;
use crate::idealise::{Answer, Shot, Variant, by_set};
use crate::result::{Figure, RowResult};

/// Windows, and instructions of each.
const WINDOWS: (usize, u64) = (30, 100_000);
const QUICK_WINDOWS: (usize, u64) = (8, 30_000);
/// Windows for detailed samples alone, for each that is compared.
const MORE_WINDOWS: usize = 24;
/// Categories of less than this share are not compared, in percent.
const SHARE_MIN: f64 = 5.0;

fn wanted((windows, window_instructions): (usize, u64)) -> Wanted {
    Wanted {
        row: "icost-accuracy",
        variants: vec![Variant::table_6(&[("caches.l1d.latency_cycles", 4)])],
        windows,
        window_instructions,
        most: 2,
        really: true,
        shotgun: Some(MORE_WINDOWS),
    }
}

pub(in crate::rows) fn run(context: &Context) -> Result<RowResult, String> {
    let windows = if context.quick { QUICK_WINDOWS } else { WINDOWS };
    let (found, mut result) = answers(context, &wanted(windows))?;
    fill(&mut result, &found, context.size_name());
    Ok(result)
}

/// One category of a program, in percent of its time.
struct Compared {
    set: Categories,
    graph: f64,
    really: f64,
    /// As the shotgun profiler has it.
    shot: Option<f64>,
}

impl Compared {
    fn error(&self) -> f64 {
        100.0 * (self.graph - self.really).abs() / self.really.abs()
    }

    fn shot_error(&self) -> Option<f64> {
        Some(100.0 * (self.shot? - self.really).abs() / self.really.abs())
    }

    /// The shotgun profiler against the graph.
    fn shot_against_graph(&self) -> Option<f64> {
        Some(100.0 * (self.shot? - self.graph).abs() / self.graph.abs())
    }
}

/// Every single and pair that matters.
fn compared(graph: &Lattice, really: &Lattice, shot: Option<&Lattice>) -> Vec<Compared> {
    let share = |lattice: &Lattice, set: Categories| {
        Some(100.0 * lattice.icost(set)? / lattice.time(Categories::NONE)?)
    };
    let one = |set: Categories| {
        let (graph, really) = (share(graph, set)?, share(really, set)?);
        let shot = shot.and_then(|shot| share(shot, set));
        Some(Compared { set, graph, really, shot }).filter(|one| one.really.abs() >= SHARE_MIN)
    };
    subsets_up_to(2).into_iter().skip(1).filter_map(one).collect()
}

fn fill(result: &mut RowResult, found: &[(String, Answer)], size: &str) {
    result.caption = format!(
        "{size} size; the machine of table 6 with a first-level latency of 4; singles and pairs of \
         at least {SHARE_MIN} % of the time"
    );
    let programs: Vec<(&String, Vec<Compared>)> = found
        .iter()
        .map(|(name, answer)| {
            let (graph, really) = by_set(answer.variants.iter().flatten());
            let shot = answer.shot.as_ref().map(Shot::lattice);
            (name, compared(&graph, &really, shot.as_ref()))
        })
        .collect();
    let errors: Vec<f64> =
        programs.iter().flat_map(|(_, all)| all.iter().map(Compared::error)).collect();
    if !errors.is_empty() {
        result.ours.push(Figure::exact("graph_error_pct", mean_of(&errors)));
    }
    for (key, error) in [
        ("shotgun_error_pct", Compared::shot_error as fn(&Compared) -> Option<f64>),
        ("shotgun_vs_graph_pct", Compared::shot_against_graph),
    ] {
        let errors: Vec<f64> =
            programs.iter().flat_map(|(_, all)| all.iter().filter_map(error)).collect();
        if !errors.is_empty() {
            result.ours.push(Figure::exact(key, mean_of(&errors)));
        }
    }
    let shots: Vec<&Shot> = found.iter().filter_map(|(_, answer)| answer.shot.as_ref()).collect();
    result.notes.extend(samples_note(&shots));
    let row = |(name, all): &(&String, Vec<Compared>)| {
        let errors: Vec<f64> = all.iter().map(Compared::error).collect();
        let worst = all.iter().max_by(|a, b| a.error().total_cmp(&b.error()));
        let worst = worst.map_or(Cell::Empty, |worst| {
            let name = worst.set.name();
            Cell::text(format!("{name}: {:.1} for {:.1} %", worst.graph, worst.really))
        });
        let mean = |error: fn(&Compared) -> Option<f64>| {
            let errors: Vec<f64> = all.iter().filter_map(error).collect();
            (!errors.is_empty()).then(|| mean_of(&errors))
        };
        let shot = |error| mean(error).map_or(Cell::Empty, |mean| Cell::Number(mean, Unit::Number));
        let cells = vec![
            Cell::text(*name),
            Cell::Number(all.len() as f64, Unit::Number),
            Cell::Number(mean_of(&errors), Unit::Number),
            shot(Compared::shot_error),
            shot(Compared::shot_against_graph),
            worst,
        ];
        Row::Cells(Tone::Plain, cells)
    };
    result.detail = Table {
        columns: vec![
            Column::text("program", "program"),
            Column::number("compared", "compared"),
            Column::number("error_pct", "graph %"),
            Column::number("shotgun_pct", "shotgun %"),
            Column::number("shotgun_graph_pct", "against graph"),
            Column::text("worst", "worst"),
        ],
        rows: programs.iter().map(row).collect(),
        text_rows: None,
    };
    result.notes.push("error: |graph − really| ÷ really, mean over all of them".to_owned());
}

/// What became of the samples, over all programs.
fn samples_note(shots: &[&Shot]) -> Option<String> {
    let least = |of: fn(&Shot) -> f64| shots.iter().map(|s| of(s)).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Shot) -> f64| shots.iter().map(|s| of(s)).fold(0.0, f64::max);
    let errant =
        shots.iter().fold((0, 0), |sum, shot| (sum.0 + shot.errant.0, sum.1 + shot.errant.1));
    (!shots.is_empty()).then(|| {
        format!(
            "shotgun: {} signatures, {} detailed samples; {:.0} to {:.0} % of fragments hold \
             together at once (paper 60 to 99); of {} errant ones {} discarded (paper 95 to \
             100 %); at most {:.2} % of instructions without a sample of their own (paper under 2)",
            shots.iter().map(|shot| shot.signatures).sum::<u64>(),
            shots.iter().map(|shot| shot.details).sum::<u64>(),
            100.0 * least(|shot| shot.consistent),
            100.0 * most(|shot| shot.consistent),
            errant.0,
            errant.1,
            100.0 * most(|shot| shot.inferred),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use icost::Category::{Dmiss, Win};

    #[test]
    fn errors_are_told_of_what_is_at_least_five_percent_of_the_time() {
        let lattice = |dmiss: f64, win: f64, both: f64| {
            let sets: [(&[icost::Category], f64); 4] =
                [(&[], 1000.0), (&[Dmiss], dmiss), (&[Win], win), (&[Dmiss, Win], both)];
            Lattice::new(sets.map(|(set, time)| (Categories::of(set), time)))
        };
        // Really 40 %, 2 % and −6 %; the graph says 42, 2 and −9.
        let shot = lattice(590.0, 980.0, 630.0);
        let found =
            compared(&lattice(580.0, 980.0, 650.0), &lattice(600.0, 980.0, 640.0), Some(&shot));
        let errors: Vec<f64> = found.iter().map(Compared::error).collect();
        assert_eq!(found.len(), 2);
        assert!((errors[0] - 5.0).abs() < 1e-9 && (errors[1] - 50.0).abs() < 1e-9, "{errors:?}");
        // The samples say 41 % and −6 %.
        let shot: Vec<f64> = found.iter().filter_map(Compared::shot_error).collect();
        assert!((shot[0] - 2.5).abs() < 1e-9 && shot[1].abs() < 1e-9, "{shot:?}");
        let graph = found[0].shot_against_graph().unwrap();
        assert!((graph - 100.0 / 42.0).abs() < 1e-9, "{graph}");
    }
}
