//! Table 7: the graph against cores that are really idealised.

use icost::{Categories, Lattice, subsets_up_to};
use show::{Cell, Column, Row, Table, Tone, Unit};

use super::{Wanted, answers, mean_of};
use crate::context::Context;
use crate::idealise::{Answer, Variant, by_set};
use crate::result::{Figure, RowResult};

const WINDOWS: usize = 10;
const QUICK_WINDOWS: usize = 4;
const WINDOW_INSTRUCTIONS: u64 = 30_000;
/// Categories of less than this share are not compared, in percent.
const SHARE_MIN: f64 = 5.0;

fn wanted(windows: usize) -> Wanted {
    Wanted {
        row: "icost-accuracy",
        variants: vec![Variant::table_6(&[("caches.l1d.latency_cycles", 4)])],
        windows,
        window_instructions: WINDOW_INSTRUCTIONS,
        most: 2,
        really: true,
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
}

impl Compared {
    fn error(&self) -> f64 {
        100.0 * (self.graph - self.really).abs() / self.really.abs()
    }
}

/// Every single and pair that matters.
fn compared(graph: &Lattice, really: &Lattice) -> Vec<Compared> {
    let share = |lattice: &Lattice, set: Categories| {
        Some(100.0 * lattice.icost(set)? / lattice.time(Categories::NONE)?)
    };
    let one = |set: Categories| {
        let (graph, really) = (share(graph, set)?, share(really, set)?);
        Some(Compared { set, graph, really }).filter(|one| one.really.abs() >= SHARE_MIN)
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
            (name, compared(&graph, &really))
        })
        .collect();
    let errors: Vec<f64> =
        programs.iter().flat_map(|(_, all)| all.iter().map(Compared::error)).collect();
    if !errors.is_empty() {
        result.ours.push(Figure::exact("graph_error_pct", mean_of(&errors)));
    }
    let row = |(name, all): &(&String, Vec<Compared>)| {
        let errors: Vec<f64> = all.iter().map(Compared::error).collect();
        let worst = all.iter().max_by(|a, b| a.error().total_cmp(&b.error()));
        let worst = worst.map_or(Cell::Empty, |worst| {
            let name = worst.set.name();
            Cell::text(format!("{name}: {:.1} for {:.1} %", worst.graph, worst.really))
        });
        let cells = vec![
            Cell::text(*name),
            Cell::Number(all.len() as f64, Unit::Number),
            Cell::Number(mean_of(&errors), Unit::Number),
            worst,
        ];
        Row::Cells(Tone::Plain, cells)
    };
    result.detail = Table {
        columns: vec![
            Column::text("program", "program"),
            Column::number("compared", "compared"),
            Column::number("error_pct", "error %"),
            Column::text("worst", "worst"),
        ],
        rows: programs.iter().map(row).collect(),
        text_rows: None,
    };
    result.notes.push("error: |graph − really| ÷ really, mean over all of them".to_owned());
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
        let found = compared(&lattice(580.0, 980.0, 650.0), &lattice(600.0, 980.0, 640.0));
        let errors: Vec<f64> = found.iter().map(Compared::error).collect();
        assert_eq!(found.len(), 2);
        assert!((errors[0] - 5.0).abs() < 1e-9 && (errors[1] - 50.0).abs() < 1e-9, "{errors:?}");
    }
}
