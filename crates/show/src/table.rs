//! Columns that line up, in the width there is.
//!
//! Every column but the last is as wide as its widest cell; the last one takes what is left and
//! wraps, or is cut where wrapping would leave a sliver.

use crate::{Align, Cell, Colour, Column, Row, Shown, Table, Tone};

/// The least width in which wrapping still reads well.
const LEAST_WRAP: usize = 20;

pub(crate) fn lines(table: &Table, width: usize, colour: Colour) -> Vec<String> {
    let shown: Vec<usize> =
        (0..table.columns.len()).filter(|&c| table.columns[c].shown != Shown::InJson).collect();
    let limit = table.text_rows.unwrap_or(usize::MAX);
    let rows: Vec<&Row> = table.rows.iter().take(limit).collect();
    let widths = widths(table, &shown, &rows);
    let layout = Layout { columns: &table.columns, shown: &shown, widths: &widths, width };
    let mut lines = Vec::new();
    if shown.iter().any(|&c| !table.columns[c].heading.is_empty()) {
        let headings: Vec<String> =
            shown.iter().map(|&c| table.columns[c].heading.to_owned()).collect();
        lines.extend(layout.place(&headings).iter().map(|l| colour.paint(Tone::Faint, l)));
    }
    for row in rows {
        match row {
            Row::Cells(tone, cells) => {
                let texts = shown.iter().map(|&c| text_of(cells, c)).collect::<Vec<_>>();
                lines.extend(layout.place(&texts).iter().map(|l| colour.paint(*tone, l)));
            }
            Row::Gap(what) => lines.push(colour.paint(Tone::Faint, &format!("  … {what}"))),
        }
    }
    if table.rows.len() > limit {
        let more = format!("  … and {} more", table.rows.len() - limit);
        lines.push(colour.paint(Tone::Faint, &more));
    }
    lines
}

fn text_of(cells: &[Cell], column: usize) -> String {
    cells.get(column).map(Cell::to_text).unwrap_or_default()
}

fn widths(table: &Table, shown: &[usize], rows: &[&Row]) -> Vec<usize> {
    let widest = |&column: &usize| {
        let cells = rows.iter().filter_map(|row| match row {
            Row::Cells(_, cells) => Some(length(&text_of(cells, column))),
            Row::Gap(_) => None,
        });
        cells.chain([length(table.columns[column].heading)]).max().unwrap_or(0)
    };
    shown.iter().map(widest).collect()
}

struct Layout<'a> {
    columns: &'a [Column],
    shown: &'a [usize],
    widths: &'a [usize],
    width: usize,
}

impl Layout<'_> {
    /// One row as one or more lines.
    fn place(&self, texts: &[String]) -> Vec<String> {
        let Some(last) = texts.len().checked_sub(1) else { return Vec::new() };
        let mut line = String::from("  ");
        for (place, text) in texts[..last].iter().enumerate() {
            line.push_str(&pad(text, self.widths[place], self.align(place)));
            line.push_str("  ");
        }
        let indent = length(&line);
        let left = self.width.saturating_sub(indent);
        let tail = match self.align(last) {
            Align::Right => vec![pad(&texts[last], self.widths[last], Align::Right)],
            Align::Left if left >= LEAST_WRAP => wrap(&texts[last], left),
            Align::Left => vec![texts[last].clone()],
        };
        let mut lines = Vec::with_capacity(tail.len());
        for (number, part) in tail.iter().enumerate() {
            let start = if number == 0 { line.clone() } else { " ".repeat(indent) };
            lines.push(format!("{start}{part}").trim_end().to_owned());
        }
        lines
    }

    fn align(&self, place: usize) -> Align {
        self.columns[self.shown[place]].align
    }
}

/// Length as a terminal shows it, near enough: one column a character.
fn length(text: &str) -> usize {
    text.chars().count()
}

fn pad(text: &str, width: usize, align: Align) -> String {
    let gap = " ".repeat(width.saturating_sub(length(text)));
    match align {
        Align::Left => format!("{text}{gap}"),
        Align::Right => format!("{gap}{text}"),
    }
}

/// Breaks at spaces; a word longer than the width is broken inside.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && length(&line) + 1 + length(word) > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        while length(&line) > width {
            let cut = line.char_indices().nth(width).map_or(line.len(), |(at, _)| at);
            let rest = line.split_off(cut);
            lines.push(std::mem::replace(&mut line, rest));
        }
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapping_loses_nothing_and_keeps_the_width() {
        let text = "one two three fouraverylongwordthatdoesnotfit five";
        let lines = wrap(text, 10);
        assert!(lines.iter().all(|line| length(line) <= 10), "{lines:?}");
        let squeeze = |s: &str| s.replace(' ', "");
        assert_eq!(squeeze(&lines.concat()), squeeze(text));
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn columns_line_up_and_the_last_one_wraps_under_itself() {
        let table = Table {
            columns: vec![Column::number("n", "n"), Column::text("w", "what")],
            rows: vec![
                Row::Cells(Tone::Plain, vec![Cell::Hex(1), Cell::text("short")]),
                Row::Cells(
                    Tone::Plain,
                    vec![Cell::Hex(0x1000), Cell::text("a longer text that must wrap")],
                ),
            ],
            text_rows: None,
        };
        let expected = [
            "       n  what",
            "     0x1  short",
            "  0x1000  a longer text that",
            "          must wrap",
        ];
        assert_eq!(lines(&table, 30, Colour::Off), expected);
    }

    #[test]
    fn rows_beyond_the_limit_are_counted() {
        let row = || Row::Cells(Tone::Plain, vec![Cell::Hex(1)]);
        let table = Table {
            columns: vec![Column::number("n", "")],
            rows: vec![row(), row(), row()],
            text_rows: Some(1),
        };
        assert_eq!(lines(&table, 30, Colour::Off), ["  0x1", "  … and 2 more"]);
    }
}
