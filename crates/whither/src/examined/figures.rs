//! The paper's figure 4, and what every view says of a frequency.

use analyse::{Confidence, Summary};
use metrology::{Coverage, Estimate};
use show::{Body, Cell, Column, Row, Section, Table, Tone, Unit};

/// `low`, `medium` or `high`.
pub(crate) fn word(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Low => "low",
        Confidence::Medium => "medium",
        Confidence::High => "high",
    }
}

/// How often something ran, with its ±.
pub(crate) fn frequency_cell(frequency: Estimate) -> Cell {
    Cell::Estimate(frequency.value, frequency.interval(Coverage::P95), Unit::Count)
}

/// How cycles were spent, line by line.
pub(crate) fn summary_section(summary: &Summary, caption: String) -> Section {
    let mut rows = Vec::new();
    for (place, range) in summary.dynamic.iter().enumerate() {
        // The paper sets misses apart from the rest.
        if range.cause == analyse::DynamicCause::Mispredict && place > 0 {
            rows.push(blank());
        }
        let title = range.cause.title();
        rows.push(line(range.cause.key(), title, range.share_min, range.share_max));
    }
    rows.push(blank());
    let one = |key, title: &str, share| line(key, title, share, share);
    rows.push(one("unexplained_stall", "Unexplained stall", summary.unexplained_stall));
    rows.push(one("unexplained_gain", "Unexplained gain", summary.unexplained_gain));
    rows.push(total("subtotal_dynamic", "Subtotal dynamic", summary.subtotal_dynamic));
    rows.push(blank());
    for (cause, share) in &summary.statics {
        rows.push(single(Tone::Plain, cause.key(), cause.title(), *share));
    }
    rows.push(total("subtotal_static", "Subtotal static", summary.subtotal_static));
    rows.push(total("total_stall", "Total stall", summary.total_stall));
    rows.push(single(Tone::Plain, "execution", "Execution", summary.execution));
    rows.push(single(Tone::Plain, "sampling_error", "Net sampling error", summary.sampling_error));
    rows.push(total("total_tallied", "Total tallied", summary.total_tallied));
    Section {
        key: "summary",
        title: "WHERE THE CYCLES WENT".into(),
        caption,
        body: Body::Table(Table {
            columns: vec![
                Column::text("key", "").only_in_json(),
                Column::text("cause", ""),
                Column::number("share_min", "at least"),
                Column::number("share_max", "at most"),
            ],
            rows,
            text_rows: None,
        }),
    }
}

fn blank() -> Row {
    Row::Aside(Tone::Plain, "cause", String::new())
}

fn line(key: &'static str, title: &str, min: f64, max: f64) -> Row {
    let tone = match max {
        max if max >= 0.10 && min >= 0.05 => Tone::Hot,
        max if max >= 0.05 => Tone::Warm,
        max if max.abs() >= 0.0005 => Tone::Plain,
        _ => Tone::Faint,
    };
    let share = |value| Cell::Number(value, Unit::Share);
    Row::Cells(tone, vec![Cell::text(key), Cell::text(title), share(min), share(max)])
}

fn single(tone: Tone, key: &'static str, title: &str, share: f64) -> Row {
    let cells =
        vec![Cell::text(key), Cell::text(title), Cell::Empty, Cell::Number(share, Unit::Share)];
    Row::Cells(tone, cells)
}

fn total(key: &'static str, title: &str, share: f64) -> Row {
    single(Tone::Heading, key, title, share)
}
