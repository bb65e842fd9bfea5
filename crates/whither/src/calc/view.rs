//! The view.

use analyse::{BlockReport, InstructionReport};
use show::{Body, Cell, Column, Fact, Row, Schema, Section, Table, Unit, View};
use vocab::Count;

use super::{Calculated, listing};
use crate::cli::CalcJob;
use crate::database::notes as notes_section;
use crate::examined::{
    Examiner, block_cpi, executed, frequency_cell, mean_cpi, summary_section, word,
};
use crate::listing::Sources;
use crate::sampled::Sampled;

pub(super) fn view(
    job: &CalcJob,
    sampled: &Sampled,
    examiner: &Examiner<'_>,
    calculated: &Calculated,
) -> View {
    let mut sources = Sources::default();
    let report = &calculated.examined.report;
    let summary = &report.summary;
    View {
        schema: Schema { name: "calc", version: 2 },
        title: format!("whither calc: {}", sampled.title(&calculated.time)),
        sections: vec![
            sampled.what(),
            sampled.about(&calculated.time),
            cpi(examiner, calculated),
            listing::section(calculated, job.whole, &mut sources),
            blocks(calculated),
            stalls(calculated),
            summary_section(
                summary,
                format!(
                    "shares of the procedure's cycles; {} samples, {:.1} % of all",
                    summary.samples,
                    100.0 * summary.share_of_all
                ),
            ),
            notes(sampled, examiner, calculated),
        ],
    }
}

fn cpi(examiner: &Examiner<'_>, calculated: &Calculated) -> Section {
    let report = &calculated.examined.report;
    let summary = &report.summary;
    let number = |value: Option<f64>| match value {
        Some(value) => Cell::Number(value, Unit::Number),
        None => Cell::NotCounted("nothing is known to have run".into()),
    };
    let entry = calculated.examined.graph.entries.first();
    let entry = entry.and_then(|&k| calculated.examined.report.blocks.get(k));
    let mut facts = vec![
        Fact::new("core", "core", Cell::text(examiner.machine.name.as_str())),
        Fact::new("evidence", "frequencies from", Cell::text(examiner.evidence())),
        Fact::new("best_cpi", "best-case CPI", number(summary.best_cpi())),
        Fact::new("actual_cpi", "actual CPI", mean_cpi(summary, executed(report))),
    ];
    if let Some(entry) = entry {
        facts.push(Fact::new("calls", "times entered", frequency_cell(entry.frequency)));
        facts.push(Fact::new(
            "confidence",
            "confidence in that",
            Cell::text(word(entry.confidence)),
        ));
    }
    Section { key: "cpi", title: String::new(), caption: String::new(), body: Body::Facts(facts) }
}

/// For JSON alone: the text form has them as headings.
fn blocks(calculated: &Calculated) -> Section {
    let row = |(k, block): (usize, &BlockReport)| {
        Row::InJson(vec![
            Cell::Count(Count(k as u64)),
            Cell::Hex(calculated.listing.offset_of(block.address).0),
            Cell::Count(Count(block.instructions as u64)),
            Cell::Count(Count(block.samples)),
            frequency_cell(block.frequency),
            Cell::text(word(block.confidence)),
            Cell::Number(block.best_cpi, Unit::Number),
            block_cpi(block),
        ])
    };
    let rows = calculated.examined.report.blocks.iter().enumerate().map(row).collect();
    let columns = vec![
        Column::number("block", "block"),
        Column::number("offset", "offset"),
        Column::number("instructions", "instructions"),
        Column::number("samples", "samples"),
        Column::number("frequency", "frequency"),
        Column::text("confidence", "confidence"),
        Column::number("best_cpi", "best CPI"),
        Column::number("actual_cpi", "actual CPI"),
    ];
    in_json("blocks", columns, rows)
}

/// For JSON alone: the text form has them as bubbles, and as letters behind the instruction where
/// no stall stands out.
fn stalls(calculated: &Calculated) -> Section {
    let report = &calculated.examined.report;
    let offset = |address: u64| Cell::Hex(calculated.listing.offset_of(address).0);
    let responsible = |at: Option<u64>| at.map_or(Cell::Empty, offset);
    let cycles = |value: f64| Cell::Number(value, Unit::Number);
    let rows_of = |it: &InstructionReport| {
        let at = offset(it.address);
        let statics = it.static_stall.map(|stall| {
            let (least, most) = (cycles(stall.cycles), cycles(stall.cycles));
            let who = responsible(stall.responsible);
            Row::InJson(vec![
                at.clone(),
                Cell::text("static"),
                Cell::text(stall.cause.key()),
                least,
                most,
                who,
            ])
        });
        let dynamic = it.culprits.iter().map(|culprit| {
            let whole = it.dynamic_stall_cycles;
            Row::InJson(vec![
                at.clone(),
                Cell::text("dynamic"),
                Cell::text(culprit.cause.key()),
                cycles(whole * culprit.share_min),
                cycles(whole * culprit.share_max),
                responsible(culprit.responsible),
            ])
        });
        let possible = listing::worth_naming(it).map(|suspect| {
            Row::InJson(vec![
                at.clone(),
                Cell::text("possible"),
                Cell::text(suspect.cause.key()),
                cycles(0.0),
                cycles(suspect.cycles_max),
                Cell::Empty,
            ])
        });
        statics.into_iter().chain(dynamic).chain(possible).collect::<Vec<Row>>()
    };
    let rows = report.instructions.iter().flat_map(rows_of).collect();
    let columns = vec![
        Column::number("offset", "offset"),
        Column::text("kind", "kind"),
        Column::text("cause", "cause"),
        Column::number("cycles_min", "at least"),
        Column::number("cycles_max", "at most"),
        Column::number("responsible", "responsible"),
    ];
    in_json("stalls", columns, rows)
}

fn in_json(key: &'static str, columns: Vec<Column>, rows: Vec<Row>) -> Section {
    let body = Body::Table(Table { columns, rows, text_rows: None });
    Section { key, title: String::new(), caption: String::new(), body }
}

fn notes(sampled: &Sampled, examiner: &Examiner<'_>, calculated: &Calculated) -> Section {
    let mut notes = calculated.examined.report.notes.clone();
    if !examiner.knows_period {
        notes.push("how often it was sampled is not known: frequencies are in samples".into());
    }
    if calculated.listing.left_out_bytes > 0 {
        let bytes = calculated.listing.left_out_bytes;
        notes.push(format!("{bytes} bytes of code beyond the first megabyte are left out"));
    }
    notes.extend(listing::legend(&calculated.examined.report));
    notes.push(
        "a culprit is innocent only where that could be proved: ranges, not verdicts".to_owned(),
    );
    notes.extend(sampled.notes());
    notes_section(notes)
}
