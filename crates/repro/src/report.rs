//! A row for a person: ours beside the paper's, then the detail, then what to know.

use serde_json::{Map, Value, json};
use show::{Body, Cell, Colour, Column, Page, Row, Schema, Section, Table, Tone, Unit, View};

use crate::context::Context;
use crate::machine::{Machine, today};
use crate::result::RowResult;
use crate::suite::PageRow;

const COLUMNS: [Column; 5] = [
    Column::text("key", "key"),
    Column::text("paper", "paper"),
    Column::number("ours", "ours"),
    Column::text("goal", "goal"),
    Column::text("met", "met"),
];

/// The row as text.
pub fn text(row: &PageRow, result: &RowResult, size: &str, width: usize) -> String {
    let view = View {
        schema: Schema { name: "repro", version: 1 },
        title: format!("{}: {}", row.name, row.regenerates),
        sections: sections(row, result, size),
    };
    show::render_text(&view, Page { width, colour: Colour::Off })
}

fn sections(row: &PageRow, result: &RowResult, size: &str) -> Vec<Section> {
    let mut sections = Vec::new();
    let beside = beside(row, result);
    let size = result.size.unwrap_or(size);
    if !beside.rows.is_empty() {
        sections.push(Section {
            key: "figures",
            title: "OURS BESIDE THE PAPER'S".to_owned(),
            caption: format!("{size} size; ± at 95 %"),
            body: Body::Table(beside),
        });
    }
    if !result.detail.rows.is_empty() {
        sections.push(result.detail_section());
    }
    for (key, title, sentences) in
        [("notes", "TO KNOW", &result.notes), ("wrong", "LEFT OUT", &result.wrong)]
    {
        if !sentences.is_empty() {
            let body = Body::Prose(sentences.clone());
            sections.push(Section { key, title: title.to_owned(), caption: String::new(), body });
        }
    }
    sections
}

/// One line a key of the paper, of ours or of the goal.
fn beside(row: &PageRow, result: &RowResult) -> Table {
    let mut keys: Vec<&str> = row.paper.keys().map(String::as_str).collect();
    keys.extend(row.goal.keys().map(String::as_str));
    keys.extend(result.ours.iter().map(|figure| figure.key.as_str()));
    let mut seen = std::collections::BTreeSet::new();
    keys.retain(|key| seen.insert(*key));
    let line = |key: &str| {
        let figure = result.figure(key);
        let goal = row.goal.get(key);
        let ours = match figure {
            Some(figure) => match figure.interval {
                Some(interval) => Cell::Estimate(figure.value, interval, Unit::Number),
                None => Cell::Number(figure.value, Unit::Number),
            },
            None if goal.is_some() => Cell::NotCounted("no figure".to_owned()),
            None => Cell::Empty,
        };
        let met = goal.map(|bound| figure.is_some_and(|figure| bound.holds(figure.value)));
        Row::Cells(
            if met == Some(false) { Tone::Bad } else { Tone::Plain },
            vec![
                Cell::text(key),
                row.paper.get(key).map_or(Cell::Empty, |value| Cell::text(plain(value))),
                ours,
                goal.map_or(Cell::Empty, |bound| Cell::text(bound.text())),
                met.map_or(Cell::Empty, Cell::Flag),
            ],
        )
    };
    Table {
        columns: COLUMNS.to_vec(),
        rows: keys.into_iter().map(line).collect(),
        ..Table::default()
    }
}

fn plain(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What a result was measured with: machine, date, versions, seeds, inputs.
pub fn run_object(context: &Context, result: &RowResult) -> Value {
    let mut seeds: Map<String, Value> = result.seeds.clone();
    seeds.insert("row".to_owned(), json!(context.seed));
    json!({
        "machine": Machine::this().json(),
        "date": today(),
        "repro": env!("CARGO_PKG_VERSION"),
        "versions": result.versions,
        "seeds": seeds,
        "inputs": result.inputs,
    })
}
