//! The view: the paper's figure 3, with what chance alone would do.

use show::{Body, Cell, Column, Row, Schema, Section, Table, Tone, Unit, View};
use vocab::Count;

use super::variation::Variation;
use crate::cli::StatsJob;
use crate::sampled::Sets;

/// Below this, a range is not what sampling alone does.
const SURE: f64 = 0.01;

pub(super) fn view(job: &StatsJob, sets: &Sets, rows: &[Variation]) -> View {
    let mut sections = vec![sets.sampled.what(), each_set(sets), table(job, sets, rows)];
    let mut notes = vec![
        "chance is the probability of counts so uneven if nothing but sampling differed; below 1 % \
         a procedure really varies"
            .to_owned(),
        "sets are compared as they are: a longer run has more samples of everything".to_owned(),
    ];
    notes.extend(sets.sampled.notes());
    sections.push(Section {
        key: "notes",
        title: "WHAT THIS VIEW DOES NOT SEE".into(),
        caption: String::new(),
        body: Body::Prose(notes),
    });
    View {
        schema: Schema { name: "stats", version: 1 },
        title: format!("whither stats: {} sets of samples", sets.names.len()),
        sections,
    }
}

fn each_set(sets: &Sets) -> Section {
    let row = |(name, total): (&String, &Count)| {
        Row::Cells(Tone::Plain, vec![Cell::text(name.as_str()), Cell::Count(*total)])
    };
    Section {
        key: "sets",
        title: "SAMPLES OF EACH SET".into(),
        caption: sets.sampled.event_name().to_owned(),
        body: Body::Table(Table {
            columns: vec![Column::text("set", "set"), Column::number("samples", "samples")],
            rows: sets.names.iter().zip(&sets.totals).map(row).collect(),
            text_rows: Some(12),
        }),
    }
}

fn table(job: &StatsJob, sets: &Sets, rows: &[Variation]) -> Section {
    let whole = sets.total();
    let row = |varied: &Variation| {
        let tone = match varied.chance {
            chance if chance < SURE && varied.range > 0.05 => Tone::Hot,
            chance if chance < SURE => Tone::Warm,
            _ => Tone::Faint,
        };
        Row::Cells(
            tone,
            vec![
                Cell::Number(varied.range, Unit::Share),
                Cell::Count(varied.sum),
                Cell::Number(varied.sum.as_f64() / whole.as_f64().max(1.0), Unit::Share),
                Cell::Number(varied.mean, Unit::Count),
                Cell::Number(varied.deviation, Unit::Count),
                Cell::Count(varied.least),
                Cell::Count(varied.most),
                Cell::Number(varied.chance, Unit::Share),
                Cell::text(varied.procedure.as_str()),
                Cell::text(varied.image.as_str()),
            ],
        )
    };
    Section {
        key: "procedures",
        title: "BY NORMALISED RANGE".into(),
        caption: "(maximum − minimum) ÷ sum".into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("range", "range"),
                Column::number("sum", "sum").on_pages_of(90),
                Column::number("share", "share"),
                Column::number("mean", "mean"),
                Column::number("deviation", "std-dev").on_pages_of(100),
                Column::number("min", "min").on_pages_of(80),
                Column::number("max", "max").on_pages_of(80),
                Column::number("chance", "chance"),
                Column::text("procedure", "procedure"),
                Column::text("image", "image").on_pages_of(100),
            ],
            rows: rows.iter().map(row).collect(),
            text_rows: Some(job.rows),
        }),
    }
}
