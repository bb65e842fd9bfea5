//! Columns that line up, in the width there is.
//!
//! Every column is as wide as its widest cell; where that is wider than the page, text wraps inside
//! its column, as long as that does not leave a sliver.

use crate::{Align, Colour, Column, Row, Shown, Table, Tone, clean};

/// The least width in which wrapping still reads well.
const LEAST_WRAP: usize = 20;

pub(crate) fn lines(table: &Table, width: usize, colour: Colour) -> Vec<String> {
    let shown: Vec<&Column> = table.columns.iter().filter(|c| is_shown(c, width)).collect();
    let limit = table.text_rows.unwrap_or(usize::MAX);
    let visible = table.rows.iter().filter(|row| row.is_in_text());
    let rows: Vec<Line> =
        visible.clone().take(limit).map(|row| Line::of(table, row, width)).collect();
    let layout = Layout { widths: widths(&shown, &rows, width), columns: shown };
    let mut lines = Vec::new();
    if layout.columns.iter().any(|column| !column.heading.is_empty()) {
        let headings: Vec<String> = layout.columns.iter().map(|c| c.heading.into()).collect();
        lines.extend(layout.place(&headings).iter().map(|l| colour.paint(Tone::Faint, l)));
    }
    for row in &rows {
        match row {
            Line::Texts(tone, texts) => {
                lines.extend(layout.place(texts).iter().map(|l| colour.paint(*tone, l)));
            }
            Line::Gap(what) => {
                lines.push(colour.paint(Tone::Faint, format!("  … {what}").trim_end()));
            }
            Line::Aside(tone, under, what) => {
                lines.extend(
                    layout.aside(under, what, width).iter().map(|l| colour.paint(*tone, l)),
                );
            }
        }
    }
    let more = visible.count().saturating_sub(limit);
    if more > 0 {
        lines.push(colour.paint(Tone::Faint, &format!("  … and {more} more")));
    }
    lines
}

/// Whether the text form has a column, on a page of this width.
fn is_shown(column: &Column, width: usize) -> bool {
    column.shown != Shown::InJson && column.page_min <= width
}

/// A row as text, the columns of JSON left out.
enum Line {
    Texts(Tone, Vec<String>),
    Gap(String),
    Aside(Tone, &'static str, String),
}

impl Line {
    fn of(table: &Table, row: &Row, width: usize) -> Line {
        match row {
            Row::Cells(tone, cells) => {
                let shown = table.columns.iter().zip(cells).filter(|(c, _)| is_shown(c, width));
                Line::Texts(*tone, shown.map(|(_, cell)| cell.to_text()).collect())
            }
            Row::Gap(what) => Line::Gap(clean(what).into_owned()),
            Row::Aside(tone, under, what) => Line::Aside(*tone, under, clean(what).into_owned()),
            Row::InJson(_) => Line::Gap(String::new()),
        }
    }
}

/// As wide as the widest cell; where the page is too narrow for that, the widest column of text
/// gives way, again and again.
fn widths(columns: &[&Column], rows: &[Line], page: usize) -> Vec<usize> {
    let widest = |(place, column): (usize, &&Column)| {
        let cells = rows.iter().filter_map(|row| match row {
            Line::Texts(_, texts) => texts.get(place).map(|text| length(text)),
            Line::Gap(_) | Line::Aside(..) => None,
        });
        cells.chain([length(column.heading)]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = columns.iter().enumerate().map(widest).collect();
    loop {
        let total: usize = widths.iter().map(|width| width + 2).sum();
        let wrapping = (0..widths.len())
            .filter(|&c| columns[c].align == Align::Left && widths[c] > LEAST_WRAP)
            .max_by_key(|&c| widths[c]);
        match wrapping {
            Some(column) if total > page => widths[column] -= 1,
            _ => return widths,
        }
    }
}

struct Layout<'a> {
    columns: Vec<&'a Column>,
    widths: Vec<usize>,
}

impl Layout<'_> {
    /// A line that begins where a column does, cut at the page's edge: it explains what stands
    /// beside it, and wrapped it would look like something else.
    fn aside(&self, under: &str, what: &str, page: usize) -> Vec<String> {
        let place = self.columns.iter().position(|column| column.key == under);
        let before = self.widths.iter().take(place.unwrap_or(0)).map(|width| width + 2);
        let indent = before.sum::<usize>() + 2;
        let room = page.saturating_sub(indent).max(LEAST_WRAP);
        let kept: String = what.chars().take(room).collect();
        vec![format!("{}{kept}", " ".repeat(indent)).trim_end().to_owned()]
    }

    /// One row as one or more lines.
    fn place(&self, texts: &[String]) -> Vec<String> {
        let cells: Vec<Vec<String>> =
            texts.iter().zip(&self.widths).map(|(text, &width)| wrap(text, width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |number: usize| {
            let mut line = String::new();
            for (place, cell) in cells.iter().enumerate() {
                let part = cell.get(number).map_or("", String::as_str);
                line.push_str("  ");
                line.push_str(&pad(part, self.widths[place], self.columns[place].align));
            }
            line.trim_end().to_owned()
        };
        (0..height).map(line).collect()
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
    // What is indented stays so: it may be source.
    let indent = (text.len() - text.trim_start_matches(' ').len()).min(width / 2);
    let mut line = " ".repeat(indent);
    for word in text.trim_start_matches(' ').split(' ') {
        let is_begun = (!lines.is_empty() && !line.is_empty()) || line.len() > indent;
        if is_begun && length(&line) + 1 + length(word) > width {
            lines.push(std::mem::take(&mut line));
        }
        if is_begun && !line.is_empty() {
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
    use crate::Cell;

    #[test]
    fn wrapping_loses_nothing_and_keeps_the_width() {
        let text = "one two three fouraverylongwordthatdoesnotfit five";
        let lines = wrap(text, 10);
        assert!(lines.iter().all(|line| length(line) <= 10), "{lines:?}");
        let squeeze = |s: &str| s.replace(' ', "");
        assert_eq!(squeeze(&lines.concat()), squeeze(text));
        assert_eq!(wrap("", 10), [""]);
        assert_eq!(wrap("    a = b; c = d;", 12), ["    a = b; c", "= d;"]);
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
    fn a_narrow_page_leaves_columns_out_and_asides_begin_under_theirs() {
        let table = Table {
            columns: vec![
                Column::number("n", "n"),
                Column::number("m", "more").on_pages_of(40),
                Column::text("w", "what"),
            ],
            rows: vec![
                Row::Aside(
                    Tone::Plain,
                    "w",
                    "a line of source that is too long for the page".into(),
                ),
                Row::Cells(Tone::Plain, vec![Cell::Hex(1), Cell::Hex(2), Cell::text("x")]),
            ],
            text_rows: None,
        };
        let narrow = ["    n  what", "       a line of source that i", "  0x1  x"];
        assert_eq!(lines(&table, 30, Colour::Off), narrow);
        let wide =
            ["    n  more  what", "             a line of source that is to", "  0x1   0x2  x"];
        assert_eq!(lines(&table, 40, Colour::Off), wide);
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
