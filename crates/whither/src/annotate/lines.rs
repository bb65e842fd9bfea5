//! Samples by line of source.

use std::collections::BTreeMap;

use show::{Cell, Column, Row, Table, Tone};
use vocab::Count;

use crate::listing::{Listing, Sources};
use crate::run::tone;

/// Lines shown before and after one that has samples.
const CONTEXT: u32 = 2;

/// Samples by file and line.
pub(super) fn by_line(listing: &Listing) -> BTreeMap<u32, BTreeMap<u32, Count>> {
    let mut files: BTreeMap<u32, BTreeMap<u32, Count>> = BTreeMap::new();
    for line in listing.lines.iter().filter(|line| line.count > Count::ZERO) {
        if let Some(from) = &line.from {
            *files.entry(from.file).or_default().entry(from.line).or_default() += line.count;
        }
    }
    files
}

/// One table a file, the file with the most samples first.
pub(super) fn tables(
    listing: &Listing,
    whole: Count,
    sources: &mut Sources,
) -> Vec<(String, Table)> {
    let mut files: Vec<(u32, BTreeMap<u32, Count>)> = by_line(listing).into_iter().collect();
    files.sort_by_key(|(_, lines)| std::cmp::Reverse(lines.values().copied().sum::<Count>()));
    let table = |(file, lines): &(u32, BTreeMap<u32, Count>)| {
        let path = listing.files.get(*file as usize).map_or("?", String::as_str);
        let rows = rows(path, lines, whole, sources);
        let columns = vec![
            Column::number("share", "share").on_pages_of(60),
            Column::number("samples", "samples"),
            Column::number("line", "line"),
            Column::text("text", "source"),
        ];
        (path.to_owned(), Table { columns, rows, text_rows: None })
    };
    files.iter().map(table).collect()
}

/// Sampled lines with what stands around them; a file that is not there has its sampled lines alone.
fn rows(path: &str, lines: &BTreeMap<u32, Count>, whole: Count, sources: &mut Sources) -> Vec<Row> {
    let source = sources.get(path);
    let mut wanted: Vec<u32> = match source {
        Some(_) => lines
            .keys()
            .flat_map(|&line| line.saturating_sub(CONTEXT).max(1)..=line.saturating_add(CONTEXT))
            .collect(),
        None => lines.keys().copied().collect(),
    };
    wanted.dedup();
    wanted.sort_unstable();
    wanted.dedup();
    let mut rows: Vec<Row> = Vec::new();
    let mut before = None;
    for number in wanted {
        let text = source.and_then(|source| source.line(number));
        let count = lines.get(&number).copied();
        // Context ends where the file does.
        if source.is_some() && text.is_none() && count.is_none() {
            continue;
        }
        if before.is_some_and(|before| before + 1 < number) {
            rows.push(Row::Gap(String::new()));
        }
        before = Some(number);
        let text = text.map_or(Cell::Empty, Cell::text);
        let line = Cell::Count(Count(u64::from(number)));
        rows.push(match count {
            Some(count) => Row::Cells(
                tone(count, whole),
                vec![Cell::share_of(count, whole), Cell::Count(count), line, text],
            ),
            None => Row::Cells(Tone::Faint, vec![Cell::Empty, Cell::Empty, line, text]),
        });
    }
    rows
}
