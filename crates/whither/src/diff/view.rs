//! The view.

use metrology::{Coverage, Estimate};
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Tone, Unit, View};
use vocab::Count;

use super::Compared;
use super::change::Change;
use crate::cli::DiffJob;
use crate::sampled::Sets;

pub(super) fn view(job: &DiffJob, sets: [&Sets; 2], compared: &Compared) -> View {
    let [a, b] = sets;
    View {
        schema: Schema { name: "diff", version: 1 },
        title: format!("whither diff: {} and {}", job.names[0], job.names[1]),
        sections: vec![
            whole(job, sets, compared),
            table(job, compared),
            Section {
                key: "notes",
                title: "WHAT THIS VIEW DOES NOT SEE".into(),
                caption: String::new(),
                body: Body::Prose(notes(a, b)),
            },
        ],
    }
}

fn estimate(estimate: Estimate, unit: Unit) -> Cell {
    Cell::Estimate(estimate.value, estimate.interval(Coverage::P95), unit)
}

fn verdict(change: &Change) -> &'static str {
    match (change.is_sure, change.difference.value > 0.0) {
        (false, _) => "alike",
        (true, true) => "more",
        (true, false) => "less",
    }
}

fn whole(job: &DiffJob, [a, b]: [&Sets; 2], compared: &Compared) -> Section {
    let sets = |sets: &Sets| Cell::Count(Count(sets.names.len() as u64));
    let change = &compared.whole;
    let ratio = change.b.over(change.a);
    let ratio = ratio
        .map_or(Cell::NotCounted("A has no samples".into()), |ratio| estimate(ratio, Unit::Ratio));
    let mut facts = vec![
        Fact::new("a", "A", Cell::text(job.names[0].as_str())),
        Fact::new("b", "B", Cell::text(job.names[1].as_str())),
        Fact::new("event", "event", Cell::text(a.sampled.event_name())),
        Fact::new("runs_a", "runs of A", sets(a)),
        Fact::new("runs_b", "runs of B", sets(b)),
        Fact::new("samples_a", "samples a run of A", estimate(change.a, Unit::Count)),
        Fact::new("samples_b", "samples a run of B", estimate(change.b, Unit::Count)),
        Fact::new("ratio", "B ÷ A", ratio),
        Fact::new("verdict", "B has", Cell::text(verdict(change))),
    ];
    if job.fail_above.is_some() {
        let grown = match compared.grown.is_empty() {
            true => Cell::Empty,
            false => Cell::text(compared.grown.join(", ")),
        };
        facts.push(Fact::new("grown", "grew more than allowed", grown));
    }
    Section {
        key: "comparison",
        title: String::new(),
        caption: String::new(),
        body: Body::Facts(facts),
    }
}

fn table(job: &DiffJob, compared: &Compared) -> Section {
    let row = |change: &Change| {
        let tone = match verdict(change) {
            "more" => Tone::Hot,
            "less" => Tone::Good,
            _ => Tone::Faint,
        };
        let of_a = compared.whole.a.value.max(1.0);
        Row::Cells(
            tone,
            vec![
                estimate(change.difference.scaled(1.0 / of_a), Unit::Share),
                Cell::Number(change.a.value, Unit::Count),
                Cell::Number(change.b.value, Unit::Count),
                Cell::Number(change.p, Unit::Number),
                Cell::text(verdict(change)),
                Cell::text(change.procedure.as_str()),
                Cell::text(change.image.as_str()),
            ],
        )
    };
    Section {
        key: "procedures",
        title: "WHAT CHANGED, BY PROCEDURE".into(),
        caption: "samples of a run; the change is a share of all of A, ± at 95 %; claims hold \
                  together at 95 %"
            .into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("change", "change"),
                Column::number("a", "A").on_pages_of(70),
                Column::number("b", "B").on_pages_of(70),
                Column::number("p", "p").on_pages_of(90),
                Column::text("verdict", ""),
                Column::text("procedure", "procedure"),
                Column::text("image", "image").on_pages_of(80),
            ],
            rows: compared.rows.iter().map(row).collect(),
            text_rows: Some(job.rows),
        }),
    }
}

fn notes(a: &Sets, b: &Sets) -> Vec<String> {
    let mut notes =
        vec!["samples stand for time only if both sides were sampled at the same rate".to_owned()];
    if a.names.len() < 2 || b.names.len() < 2 {
        notes.push(
            "a side with one run shows what sampling leaves open, not what runs differ in".into(),
        );
    }
    if a.sampled.event_name() != b.sampled.event_name() {
        notes.push(format!(
            "A sampled {} and B {}: name one with --event",
            a.sampled.event_name(),
            b.sampled.event_name()
        ));
    }
    for (side, sets) in [("A", a), ("B", b)] {
        notes.extend(sets.sampled.notes().into_iter().map(|note| format!("{side}: {note}")));
    }
    notes
}
