//! The rows of a line program.

use gimli::{Dwarf, LineProgramHeader};

use super::{LineRow, Slice, Unit, files};

/// Rows that are kept of one unit; the largest real units have a few hundred thousand.
const ROWS_MAX: usize = 1 << 22;

/// Rows by address, files by the unit's own numbers.
pub(super) fn read(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<'_>) -> (Vec<LineRow>, Vec<String>) {
    let Some(program) = unit.line_program.clone() else { return Default::default() };
    let header: &LineProgramHeader<Slice<'_>> = program.header();
    let paths = files::read(dwarf, unit, header);
    let mut found: Vec<LineRow> = Vec::new();
    let mut rows = program.rows();
    let mut open: Option<LineRow> = None;
    // What follows a malformed instruction is lost; what came before is kept.
    while let Ok(Some((_, row))) = rows.next_row() {
        if let Some(mut held) = open.take() {
            held.end = row.address();
            keep(&mut found, held);
        }
        if found.len() >= ROWS_MAX {
            break;
        }
        if !row.end_sequence() {
            let narrow = |value: u64| u32::try_from(value).unwrap_or(0);
            open = Some(LineRow {
                start: row.address(),
                end: row.address(),
                file: narrow(row.file_index()),
                line: row.line().map_or(0, |line| narrow(line.get())),
                discriminator: narrow(row.discriminator()),
            });
        }
    }
    found.sort_unstable();
    cut_overlaps(&mut found);
    (found, paths)
}

/// A row that goes on where the one before ended, with the same line, is the same row.
fn keep(rows: &mut Vec<LineRow>, row: LineRow) {
    // A sequence that the linker dropped lies at zero.
    if row.start >= row.end || row.start == 0 {
        return;
    }
    if let Some(last) = rows.last_mut()
        && last.end == row.start
        && (last.file, last.line, last.discriminator) == (row.file, row.line, row.discriminator)
    {
        last.end = row.end;
        return;
    }
    rows.push(row);
}

/// Sorted rows, each cut where the next begins.
pub(super) fn cut_overlaps(rows: &mut Vec<LineRow>) {
    for k in 1..rows.len() {
        let next = rows[k].start;
        if let Some(row) = rows.get_mut(k - 1) {
            row.end = row.end.min(next);
        }
    }
    rows.retain(|row| row.start < row.end);
}
