//! The report of a comparison.

use metrology::summarise;
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, Unit, View};

use super::{Pairs, Ratio, Verdict};
use crate::cli::MeasureJob;
use crate::measure::experiment::Ended;
use crate::measure::quantity::Choice;
use crate::measure::source::Source;
use crate::measure::view::{capital, count, estimate_cell, origin_cell, percent, section, share};

const COLUMNS: [Column; 6] = [
    Column::text("measure", "measure"),
    Column::number("a", "A"),
    Column::number("b", "B"),
    Column::number("ratio", "B over A"),
    Column::number("relative", "u").only_in_text(),
    Column::text("interval_by", "interval by"),
];

pub(super) fn view(
    job: &MeasureJob,
    choice: &Choice,
    sources: &[Source<'_>; 2],
    pairs: &Pairs,
    ratios: &[Option<Ratio>],
    main: Ratio,
    verdict: Option<Verdict>,
) -> View {
    let [a, b] = sources;
    View {
        schema: Schema { name: "compare", version: 1 },
        title: format!("whither measure: A = {}, B = {}", a.shown(), b.shown()),
        sections: vec![
            summary(job, choice, [a.shown(), b.shown()], pairs, main, verdict),
            table(job, choice, pairs, ratios),
            section(
                "notes",
                "WHAT TO KNOW",
                String::new(),
                Body::Prose(notes(job, choice, pairs, main, verdict)),
            ),
        ],
    }
}

fn summary(
    job: &MeasureJob,
    choice: &Choice,
    [a, b]: [String; 2],
    pairs: &Pairs,
    main: Ratio,
    verdict: Option<Verdict>,
) -> Section {
    let measurand = choice.measurand().map_or("", |m| m.name.as_str());
    let relative = main.estimate.standard_uncertainty / main.estimate.value;
    let facts = vec![
        Fact::new("command_a", "A", Cell::text(a)),
        Fact::new("command_b", "B", Cell::text(b)),
        Fact::new("source", "source", origin_cell(job)),
        Fact::new("measurand", "measurand", Cell::text(measurand)),
        Fact::new(
            "ratio",
            "B over A",
            Cell::Estimate(main.estimate.value, main.interval, Unit::Number),
        ),
        Fact::new("verdict", "verdict", verdict_cell(job, main, verdict)),
        Fact::new("asked", "asked for", share(Some(job.uncertainty))),
        Fact::new("reached", "reached", share(Some(relative))),
        Fact::new("is_reached", "as asked", Cell::Flag(relative <= job.uncertainty)),
        Fact::new("pairs", "pairs of runs", count(pairs.pairs.len() as u64)),
        Fact::new("executions", "executions", count(pairs.started)),
        Fact::new("warm_up", "left out as warm-up", count(pairs.warm_up)),
        Fact::new("failed_a", "A failed, left out", count(pairs.failed[0])),
        Fact::new("failed_b", "B failed, left out", count(pairs.failed[1])),
        Fact::new("elapsed_s", "took", Cell::Number(pairs.seconds, Unit::Seconds)),
    ];
    section("comparison", "", String::new(), Body::Facts(facts))
}

fn verdict_cell(job: &MeasureJob, main: Ratio, verdict: Option<Verdict>) -> Cell {
    let limit = percent(job.fail_above);
    let words = |key, text: String| Cell::Word { key, text };
    match verdict {
        Some(Verdict::Slower) => words("slower", format!("B takes over {limit} more than A")),
        Some(Verdict::Within) => words("within", format!("B does not take {limit} more than A")),
        Some(Verdict::Undecided) => {
            words("undecided", format!("undecided: B may or may not take {limit} more than A"))
        }
        None if main.interval.low > 1.0 => words("more", "B takes more than A".into()),
        None if main.interval.high < 1.0 => words("less", "B takes less than A".into()),
        None => words("alike", "no difference can be told".into()),
    }
}

fn table(job: &MeasureJob, choice: &Choice, pairs: &Pairs, ratios: &[Option<Ratio>]) -> Section {
    let rows = choice.quantities.iter().enumerate().map(|(place, quantity)| {
        let values = pairs.values(place);
        let side = |values: Vec<f64>| match summarise(&values, job.coverage, 1.0) {
            Ok(s) => estimate_cell(s.estimate.value, s.interval, quantity.unit()),
            Err(_) => Cell::NotCounted("in no two pairs".into()),
        };
        let (ratio, relative, by) = match ratios.get(place).copied().flatten() {
            Some(r) => (
                Cell::Estimate(r.estimate.value, r.interval, Unit::Number),
                Cell::text(percent(Some(r.estimate.standard_uncertainty / r.estimate.value))),
                match r.is_bootstrapped {
                    true => Cell::Word { key: "bootstrap", text: "bootstrap, for skew".into() },
                    false => Cell::Word { key: "student", text: "Student".into() },
                },
            ),
            None => (Cell::NotCounted("one of them is zero".into()), Cell::Empty, Cell::Empty),
        };
        let (a, b) = values.into_iter().unzip();
        Row::Cells(
            Tone::Plain,
            vec![Cell::text(&*quantity.name), side(a), side(b), ratio, relative, by],
        )
    });
    let table = Table { columns: COLUMNS.to_vec(), rows: rows.collect(), text_rows: None };
    let caption = format!(
        "means over pairs; ± at {} %; the ratio's interval is its own",
        100.0 * job.coverage.probability()
    );
    section("measures", "MEASURES", caption, Body::Table(table))
}

fn notes(
    job: &MeasureJob,
    choice: &Choice,
    pairs: &Pairs,
    main: Ratio,
    verdict: Option<Verdict>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if !choice.why_measurand.is_empty() {
        notes.push(capital(&choice.why_measurand));
    }
    let reached = main.estimate.standard_uncertainty / main.estimate.value;
    if reached > job.uncertainty && pairs.ended != Ended::Fixed {
        notes.push(format!(
            "The uncertainty asked for ({}) was not reached: {} is what there is.",
            percent(Some(job.uncertainty)),
            percent(Some(reached))
        ));
    }
    if verdict == Some(Verdict::Undecided) {
        notes.push(
            "The interval of the ratio holds the limit. More runs decide it: ask for a smaller \
             --uncertainty, and allow more --max-time."
                .into(),
        );
    }
    if main.is_bootstrapped {
        notes.push(
            "Readings lean to one side, so the interval of the ratio comes from drawing pairs \
             anew (BCa); below some thirty pairs it holds a little less often than it says."
                .into(),
        );
    }
    if pairs.failed != [0, 0] {
        let [a, b] = pairs.failed;
        notes.push(format!("A failed {a}× and B {b}×; pairs with a failure are in no mean."));
    }
    notes
}
