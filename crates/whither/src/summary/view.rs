//! The view.

use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Unit, View};
use vocab::Count;

use super::{Part, Parts};
use crate::cli::SummaryJob;
use crate::database::notes as notes_section;
use crate::examined::{Examiner, largest_cause, mean_cpi, summary_section};
use crate::run::tone;
use crate::sampled::Sampled;

/// Notes about single procedures that are printed.
const NOTES_MAX: usize = 5;

pub(super) fn view(
    job: &SummaryJob,
    sampled: &Sampled,
    examiner: &Examiner<'_>,
    parts: &Parts,
) -> View {
    let caption = format!(
        "shares of the cycles of {} procedures; {} samples, {:.1} % of all",
        parts.parts.len(),
        parts.whole.samples,
        100.0 * parts.whole.samples as f64 / sampled.whole().as_f64().max(1.0)
    );
    View {
        schema: Schema { name: "summary", version: 2 },
        title: match &job.selection.image {
            Some(image) => format!("whither summary: {image}"),
            None => "whither summary".into(),
        },
        sections: vec![
            sampled.what(),
            cpi(examiner, parts),
            summary_section(&parts.whole, caption),
            procedures(job, sampled, parts),
            notes(job, sampled, parts),
        ],
    }
}

fn cpi(examiner: &Examiner<'_>, parts: &Parts) -> Section {
    let number = |value: Option<f64>| match value {
        Some(value) => Cell::Number(value, Unit::Number),
        None => Cell::NotCounted("nothing is known to have run".into()),
    };
    let facts = vec![
        Fact::new("core", "core", Cell::text(examiner.machine.name.as_str())),
        Fact::new("evidence", "frequencies from", Cell::text(examiner.evidence())),
        Fact::new("best_cpi", "best-case CPI", number(parts.whole.best_cpi())),
        Fact::new("actual_cpi", "actual CPI", mean_cpi(&parts.whole, parts.executed())),
    ];
    Section { key: "cpi", title: String::new(), caption: String::new(), body: Body::Facts(facts) }
}

fn procedures(job: &SummaryJob, sampled: &Sampled, parts: &Parts) -> Section {
    let whole = sampled.whole();
    let row = |part: &Part| {
        let summary = &part.summary;
        let number =
            |value: Option<f64>| value.map_or(Cell::Empty, |v| Cell::Number(v, Unit::Number));
        Row::Cells(
            tone(part.time.count, whole),
            vec![
                Cell::share_of(part.time.count, whole),
                Cell::Count(part.time.count),
                number(summary.best_cpi()),
                mean_cpi(summary, part.executed),
                Cell::Number(summary.execution, Unit::Share),
                Cell::Number(summary.subtotal_static, Unit::Share),
                Cell::Number(summary.subtotal_dynamic, Unit::Share),
                Cell::text(sampled.name(&part.time)),
                largest_cause(summary),
                Cell::text(sampled.image_name(part.time.image)),
            ],
        )
    };
    Section {
        key: "procedures",
        title: "BY PROCEDURE".into(),
        caption: sampled.caption(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("share", "share"),
                Column::number("samples", "samples").on_pages_of(120),
                Column::number("best_cpi", "best").on_pages_of(80),
                Column::number("actual_cpi", "CPI"),
                Column::number("execution", "runs").on_pages_of(110),
                Column::number("static_stall", "static").on_pages_of(110),
                Column::number("dynamic_stall", "dynamic").on_pages_of(90),
                Column::text("procedure", "procedure"),
                Column::text("largest", "largest cause").on_pages_of(90),
                Column::text("image", "image").on_pages_of(130),
            ],
            rows: parts.parts.iter().map(row).collect(),
            text_rows: Some(job.rows),
        }),
    }
}

fn notes(job: &SummaryJob, sampled: &Sampled, parts: &Parts) -> Section {
    let mut notes = Vec::new();
    let told = Count(parts.whole.samples) + parts.without_code;
    let is_cut = parts.parts.len() >= job.most;
    if is_cut && told.as_f64() < job.cover * sampled.whole().as_f64() {
        notes.push(format!(
            "only the {} hottest procedures were examined: --most raises that",
            job.most
        ));
    }
    if parts.without_code > Count::ZERO {
        let why = parts.why.as_deref().unwrap_or("unknown");
        notes.push(format!(
            "{} samples lie in code that cannot be examined: {why}",
            parts.without_code
        ));
    }
    notes.extend(parts.notes.iter().take(NOTES_MAX).cloned());
    let more = parts.notes.len().saturating_sub(NOTES_MAX);
    if more > 0 {
        notes.push(format!("{more} more notes about single procedures: `whither calc` has them"));
    }
    notes.push(
        "a culprit is innocent only where that could be proved: ranges, not verdicts".to_owned(),
    );
    notes.extend(sampled.notes());
    notes_section(notes)
}
