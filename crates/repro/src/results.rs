//! docs/RESULTS.md: what `repro all --write` leaves for a reader.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use crate::machine::{Machine, today};
use crate::report;
use crate::result::RowResult;
use crate::suite::{Page, PageRow};

/// One row of the document: measured, or why not.
pub type Finished<'a> = (&'a PageRow, Result<RowResult, String>);

/// Writes the document and its drawings under `docs`.
///
/// # Errors
///
/// A file cannot be written.
pub fn write(docs: &Path, page: &Page, rows: &[Finished<'_>], size: &str) -> Result<(), String> {
    let drawings = docs.join("results");
    let wrong = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(&drawings).map_err(|e| wrong(&drawings, e))?;
    for plot in rows.iter().filter_map(|(_, result)| result.as_ref().ok()).flat_map(|r| &r.plots) {
        let path = drawings.join(format!("{}.svg", plot.name));
        fs::write(&path, &plot.svg).map_err(|e| wrong(&path, e))?;
    }
    let path = docs.join("RESULTS.md");
    let mut text = document(page, rows, size);
    // A sentence may carry a path below the repository; the document must not say where that is.
    if let Some(root) = docs.parent().and_then(Path::to_str).filter(|root| root.len() > 1) {
        text = text.replace(root, "");
    }
    fs::write(&path, text).map_err(|e| wrong(&path, e))
}

fn document(page: &Page, rows: &[Finished<'_>], size: &str) -> String {
    let mut out = format!(
        "# Results\n\nWritten by `repro all --write`; no figure in a table is typed by hand; what \
         stands below a missed goal quotes earlier runs. Inputs at {size} size.\n\n- Machine: {}\n- Date: {}\n- repro {}\n\n",
        Machine::this().text(),
        today(),
        env!("CARGO_PKG_VERSION")
    );
    out.push_str("| row | regenerates | goals |\n| --- | --- | --- |\n");
    for (row, result) in rows {
        let _ = writeln!(out, "| {} | {} | {} |", row.name, row.regenerates, standing(row, result));
    }
    for (row, result) in rows {
        section(&mut out, row, result, size);
    }
    missing(&mut out, page, rows);
    out
}

fn standing(row: &PageRow, result: &Result<RowResult, String>) -> &'static str {
    match result {
        Err(_) => "not measured",
        Ok(result) => match result.met(row) {
            None => "none set",
            Some(true) => "met",
            Some(false) => "not met",
        },
    }
}

fn section(out: &mut String, row: &PageRow, result: &Result<RowResult, String>, size: &str) {
    let _ = write!(out, "\n## {}\n\n", row.name);
    let result = match result {
        Ok(result) => result,
        Err(sentence) => {
            let _ = writeln!(out, "Not measured: {sentence}.");
            return;
        }
    };
    let _ = write!(out, "```text\n{}```\n", report::text(row, result, size, 118));
    if result.met(row) == Some(false) && !row.shortfall.is_empty() {
        let _ = write!(out, "\nNot met. What is suspected, and not proved: {}\n", row.shortfall);
    }
    for plot in &result.plots {
        let _ = write!(out, "\n![{}](results/{}.svg)\n", plot.caption, plot.name);
    }
    for (what, values) in [("Versions", &result.versions), ("Seeds", &result.seeds)] {
        if !values.is_empty() {
            let _ = write!(out, "\n{what}: {}.\n", listed(values));
        }
    }
}

fn listed(values: &Map<String, Value>) -> String {
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    values
        .iter()
        .map(|(key, value)| format!("{key} {}", plain(value)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn missing(out: &mut String, page: &Page, rows: &[Finished<'_>]) {
    let landed = |name: &str| rows.iter().any(|(row, _)| row.name == name);
    let absent: Vec<&PageRow> = page.row.iter().filter(|row| !landed(&row.name)).collect();
    if absent.is_empty() {
        return;
    }
    out.push_str("\n## Rows still missing\n\n");
    for row in absent {
        let _ = writeln!(out, "- {}: {}", row.name, row.regenerates);
    }
}
