//! The View for programs.
//!
//! Numbers are plain; estimates are objects, so that nobody can read a value and miss its
//! interval: `{"value":0.41,"low":0.38,"high":0.44,"coverage":0.95}`.

use serde_json::{Map, Value, json};

use crate::{Body, Cell, Row, Shown, Table, View};

/// The view as one JSON object.
pub fn render_json(view: &View) -> Value {
    let mut object = Map::new();
    object.insert("schema".into(), json!(format!("whither.{}", view.schema.name)));
    object.insert("version".into(), json!(view.schema.version));
    for section in &view.sections {
        object.insert(section.key.into(), body(&section.body));
    }
    Value::Object(object)
}

fn body(body: &Body) -> Value {
    match body {
        Body::Facts(facts) => {
            facts.iter().map(|fact| (fact.key.to_owned(), cell(&fact.cell))).collect()
        }
        Body::Table(table) => rows(table),
        Body::Tables(tables) => tables
            .iter()
            .map(|(title, table)| json!({ "title": title, "rows": rows(table) }))
            .collect(),
        Body::Stack(parts) => {
            parts.iter().map(|part| json!({ "name": part.name, "share": part.share })).collect()
        }
        Body::Prose(sentences) => json!(sentences),
    }
}

fn rows(table: &Table) -> Value {
    let row = |row: &Row| match row {
        Row::Cells(_, cells) | Row::InJson(cells) => {
            let kept = table.columns.iter().zip(cells).filter(|(c, _)| c.shown != Shown::InText);
            Some(kept.map(|(c, v)| (c.key.to_owned(), cell(v))).collect())
        }
        Row::Gap(_) | Row::Aside(..) => None,
    };
    Value::Array(table.rows.iter().filter_map(row).collect())
}

fn cell(cell: &Cell) -> Value {
    match cell {
        Cell::Text(text) => json!(text),
        Cell::Word { key, .. } => json!(key),
        Cell::Count(count) => json!(count.0),
        Cell::Id(number) => json!(number),
        Cell::Hex(value) => json!(format!("{value:#x}")),
        Cell::Number(value, _) => json!(value),
        Cell::Estimate(value, interval, _)
        | Cell::AtMost(value, interval, _)
        | Cell::AtLeast(value, interval, _) => json!({
            "value": value,
            "low": interval.low,
            "high": interval.high,
            "coverage": interval.coverage.probability(),
        }),
        Cell::NotCounted(why) => json!({ "not_counted": why }),
        Cell::Flag(flag) => json!(flag),
        Cell::Empty => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Column, Fact, Schema, Section, Tone, Unit};
    use metrology::{Coverage, Interval};

    #[test]
    fn every_shape_keeps_its_keys_and_gaps_are_left_out() {
        let interval = Interval { low: 0.25, high: 0.75, coverage: Coverage::P95 };
        let table = Table {
            columns: vec![Column::text("name", "name"), Column::number("share", "share")],
            rows: vec![
                Row::Cells(
                    Tone::Plain,
                    vec![Cell::text("a"), Cell::Estimate(0.5, interval, Unit::Share)],
                ),
                Row::Gap("3 more".into()),
            ],
            text_rows: None,
        };
        let facts = vec![Fact::new("lost", "lost", Cell::NotCounted("why".into()))];
        let section = |key, body| Section { key, title: "".into(), caption: "".into(), body };
        let view = View {
            schema: Schema { name: "test", version: 3 },
            title: "t".into(),
            sections: vec![section("rows", Body::Table(table)), section("f", Body::Facts(facts))],
        };
        let expected = json!({
            "schema": "whither.test", "version": 3,
            "rows": [{ "name": "a",
                "share": { "value": 0.5, "low": 0.25, "high": 0.75, "coverage": 0.95 } }],
            "f": { "lost": { "not_counted": "why" } },
        });
        assert_eq!(render_json(&view), expected);
    }
}
