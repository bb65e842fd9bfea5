//! A listing as rows of a table.

use std::collections::BTreeSet;

use analyse::{InstructionReport, ProcedureReport};
use show::{Cell, Column, Row, Tone};
use vocab::Count;

use super::{CodeLine, FromLine, Listing, Sources, bubbles};
use crate::run::tone;

/// How a listing is shown.
pub(crate) struct CodeTable<'a> {
    pub(crate) listing: &'a Listing,
    /// What shares are of.
    pub(crate) whole: Count,
    /// What held instructions up, where that was looked into.
    pub(crate) report: Option<&'a ProcedureReport>,
}

/// Share, samples, offset and instruction; in JSON also the line.
pub(crate) fn columns() -> Vec<Column> {
    vec![
        Column::number("share", "share").on_pages_of(72),
        Column::number("samples", "samples"),
        Column::number("offset", "offset"),
        Column::text("instruction", "instruction"),
        Column::text("file", "").only_in_json(),
        Column::number("line", "").only_in_json(),
        Column::text("inlined_from", "").only_in_json(),
    ]
}

/// The same where stalls were looked into: bubbles in text, columns of their own in JSON.
pub(crate) fn columns_with_stalls() -> Vec<Column> {
    let mut columns = columns();
    columns.push(Column::number("stall_cycles", "").only_in_json());
    columns.push(Column::text("causes", "").only_in_json());
    columns
}

/// The same where counts are exact: `samples` are runs.
pub(crate) fn exact_columns() -> Vec<Column> {
    let mut columns = columns();
    columns.retain(|column| column.key != "share");
    if let Some(counts) = columns.first_mut() {
        *counts = Column::number("runs", "ran");
    }
    columns
}

/// The rows that belong under [`exact_columns`].
pub(crate) fn exact_rows(table: &CodeTable<'_>, sources: &mut Sources) -> Vec<Row> {
    let mut rows = rows(table, sources);
    for row in &mut rows {
        if let Row::Cells(_, cells) | Row::InJson(cells) = row {
            cells.remove(0);
        }
    }
    rows
}

/// The rows; what is not shown leaves a gap in text and is whole in JSON. Where the line changes, a
/// line of source stands before the instruction.
pub(crate) fn rows(table: &CodeTable<'_>, sources: &mut Sources) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut skipped = 0;
    let mut last: Option<&FromLine> = None;
    let mut explained = BTreeSet::new();
    for line in &table.listing.lines {
        let cells = cells(table, line);
        skipped += line.gone;
        if !line.shown {
            skipped += 1;
            rows.push(Row::InJson(cells));
            continue;
        }
        rows.extend(gap(skipped));
        if skipped > 0 || line.from.as_ref() != last {
            rows.extend(line.from.as_ref().map(|from| aside(table.listing, from, sources)));
        }
        last = line.from.as_ref();
        skipped = 0;
        let found = table.report.and_then(|report| report.at(line.address));
        let before = found.map(|it| bubbles::before(it, &mut explained)).unwrap_or_default();
        rows.extend(
            before.into_iter().map(|b| Row::Aside(Tone::Bad, "instruction", format!("  {b}"))),
        );
        rows.push(Row::Cells(tone(line.count, table.whole), cells));
    }
    rows.extend(gap(skipped));
    rows
}

fn cells(table: &CodeTable<'_>, line: &CodeLine) -> Vec<Cell> {
    let (share, samples) = match line.count {
        Count(0) => (Cell::Empty, Cell::Empty),
        count => (Cell::share_of(count, table.whole), Cell::Count(count)),
    };
    let (file, number, inlined) = match &line.from {
        Some(from) => (
            Cell::text(path(table.listing, from)),
            Cell::Count(Count(u64::from(from.line))),
            match from.inlined.is_empty() {
                true => Cell::Empty,
                false => Cell::text(from.inlined.join(" < ")),
            },
        ),
        None => (Cell::Empty, Cell::Empty, Cell::Empty),
    };
    let text = Cell::text(line.text.as_str());
    let mut cells = vec![share, samples, Cell::Hex(line.offset.0), text, file, number, inlined];
    if let Some(report) = table.report {
        cells.extend(stall(report.at(line.address)));
    }
    cells
}

/// Cycles each time it ran beyond the least, and what may have caused them.
fn stall(found: Option<&InstructionReport>) -> [Cell; 2] {
    let stalled = found.filter(|it| it.dynamic_stall_cycles > 0.0);
    let Some(it) = stalled else { return [Cell::Empty, Cell::Empty] };
    let causes: Vec<&str> = it.culprits.iter().map(|culprit| culprit.cause.key()).collect();
    let causes = if causes.is_empty() { "unexplained".to_owned() } else { causes.join(" ") };
    [bubbles::stall_cell(it), Cell::text(causes)]
}

fn path<'a>(listing: &'a Listing, from: &FromLine) -> &'a str {
    listing.files.get(from.file as usize).map_or("?", String::as_str)
}

/// `copy.c:12 (inlined step)  the line itself`
pub(crate) fn aside(listing: &Listing, from: &FromLine, sources: &mut Sources) -> Row {
    let path = path(listing, from);
    let short = path.rsplit('/').next().unwrap_or(path);
    let text = sources.get(path).and_then(|source| source.line(from.line)).unwrap_or("").trim();
    let mut said = format!("{short}:{}", from.line);
    if let Some(innermost) = from.inlined.first() {
        let more = match from.inlined.len() {
            1 => String::new(),
            n => format!(" and {} around it", n - 1),
        };
        said = format!("{said} (inlined {innermost}{more})");
    }
    if !text.is_empty() {
        said = format!("{said}  {text}");
    }
    Row::Aside(Tone::Good, "instruction", said)
}

fn gap(skipped: usize) -> Option<Row> {
    let plural = if skipped == 1 { "" } else { "s" };
    (skipped > 0).then(|| Row::Gap(format!("{skipped} instruction{plural}")))
}
