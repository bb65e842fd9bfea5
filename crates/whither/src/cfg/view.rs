//! The flow in words: a block a row, then the ways between them.

use analyse::{BlockReport, EdgeReport};
use image::EdgeKind;
use show::{Body, Cell, Column, Row, Schema, Section, Table, Tone, Unit, View};
use vocab::Count;

use super::Drawn;
use crate::database::notes as notes_section;
use crate::examined::{block_cpi, frequency_cell, is_vague, least_cpi, word};
use crate::run::tone;
use crate::sampled::Sampled;

pub(super) fn view(sampled: &Sampled, evidence: &str, drawn: &Drawn) -> View {
    let mut notes = drawn.examined.report.notes.clone();
    notes.push(format!("frequencies come from {evidence}"));
    notes.push("`-o FILE.svg` draws it".into());
    notes.extend(sampled.notes());
    View {
        schema: Schema { name: "cfg", version: 1 },
        title: format!("whither cfg: {}", sampled.title(&drawn.time)),
        sections: vec![
            sampled.what(),
            sampled.about(&drawn.time),
            blocks(drawn),
            edges(drawn),
            notes_section(notes),
        ],
    }
}

fn blocks(drawn: &Drawn) -> Section {
    let report = &drawn.examined.report;
    let whole = Count(report.summary.samples);
    let leads = |k: usize| {
        let to = report.edges.iter().filter(|edge| edge.from == k).map(|edge| edge.to.to_string());
        let exit = drawn.examined.graph.blocks.get(k).and_then(|block| block.exit);
        let exit = exit.map(|exit| format!("{exit:?}").to_lowercase());
        to.chain(exit).collect::<Vec<String>>().join(" ")
    };
    let row = |(k, block): (usize, &BlockReport)| {
        let cells = vec![
            Cell::Count(Count(k as u64)),
            Cell::Hex(drawn.listing.offset_of(block.address).0),
            Cell::Count(Count(block.instructions as u64)),
            Cell::Count(Count(block.samples)),
            frequency_cell(block.frequency),
            Cell::text(word(block.confidence)),
            Cell::Number(block.best_cpi, Unit::Number),
            block_cpi(block),
            match block.actual_cpi {
                Some(it) if is_vague(block.frequency) => match least_cpi(it, block) {
                    least if least < 0.005 => Cell::text("–"),
                    least => Cell::text(format!("≥ {least:.2}")),
                },
                Some(it) => Cell::text(format!("{:.2}", it.value)),
                None => Cell::text("–"),
            },
            Cell::text(leads(k)),
        ];
        Row::Cells(tone(Count(block.samples), whole), cells)
    };
    Section {
        key: "blocks",
        title: "BLOCKS".into(),
        caption: "± at 95 %".into(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("block", "block"),
                Column::number("offset", "offset"),
                Column::number("instructions", "instructions").on_pages_of(110),
                Column::number("samples", "samples"),
                Column::number("frequency", "ran"),
                Column::text("confidence", "sure").on_pages_of(70),
                Column::number("best_cpi", "best").on_pages_of(80),
                Column::number("actual_cpi", "").only_in_json(),
                Column::number("cpi", "CPI").only_in_text().on_pages_of(60),
                Column::text("to", "leads to").only_in_text().on_pages_of(70),
            ],
            rows: report.blocks.iter().enumerate().map(row).collect(),
            text_rows: None,
        }),
    }
}

fn edges(drawn: &Drawn) -> Section {
    let kind = |kind: EdgeKind| match kind {
        EdgeKind::Fall => "falls through",
        EdgeKind::Taken => "branch",
        EdgeKind::Switch => "jump table",
    };
    let row = |(edge, flow): (&EdgeReport, &image::Edge)| {
        let tone = if edge.frequency.value > 0.0 { Tone::Plain } else { Tone::Faint };
        Row::Cells(
            tone,
            vec![
                Cell::Count(Count(edge.from as u64)),
                Cell::Count(Count(edge.to as u64)),
                Cell::text(kind(flow.kind)),
                frequency_cell(edge.frequency),
                Cell::text(word(edge.confidence)),
            ],
        )
    };
    let edges = drawn.examined.report.edges.iter().zip(&drawn.examined.graph.edges);
    Section {
        key: "edges",
        title: "WAYS BETWEEN THEM".into(),
        caption: String::new(),
        body: Body::Table(Table {
            columns: vec![
                Column::number("from", "from"),
                Column::number("to", "to"),
                Column::text("kind", "by"),
                Column::number("frequency", "taken"),
                Column::text("confidence", "sure"),
            ],
            rows: edges.map(row).collect(),
            text_rows: None,
        }),
    }
}
