//! The View as a picture of a terminal, for pages that cannot show one.
//!
//! The text form is drawn as it is: whatever the picture says, the terminal says.

use crate::{Colour, Page, View, render_text};

/// Size of one character cell, in pixels.
const CELL: (f64, f64) = (7.8, 17.0);
const MARGIN: f64 = 14.0;

/// The view as an SVG document, `width` columns wide.
pub fn render_svg(view: &View, width: usize) -> String {
    let text = render_text(view, Page { width, colour: Colour::On });
    let lines: Vec<&str> = text.lines().collect();
    let columns = lines.iter().map(|line| visible_length(line)).max().unwrap_or(0).max(40);
    let (w, h) =
        (2.0 * MARGIN + columns as f64 * CELL.0, 2.0 * MARGIN + lines.len() as f64 * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" \
         width=\"{w:.0}\" height=\"{h:.0}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
         monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#1d1f24\"/>\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + (number as f64 + 0.75) * CELL.1;
        svg.push_str(&draw_line(line, y));
    }
    svg.push_str("</svg>\n");
    svg
}

/// One `<text>` a line, one `<tspan>` a stretch of one colour.
fn draw_line(line: &str, y: f64) -> String {
    let mut drawn = String::new();
    let mut column = 0;
    for (code, text) in stretches(line) {
        if text.trim().is_empty() {
            column += text.chars().count();
            continue;
        }
        let x = MARGIN + column as f64 * CELL.0;
        let length = text.chars().count() as f64 * CELL.0;
        drawn.push_str(&format!(
            "<text xml:space=\"preserve\" x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" \
             {}>{}</text>\n",
            style(code),
            escape(text)
        ));
        column += text.chars().count();
    }
    drawn
}

/// The escape sequences of [`Colour`] and the text between them: (code, text).
fn stretches(line: &str) -> Vec<(&str, &str)> {
    let mut parts = line.split("\x1b[");
    let mut found = vec![("0", parts.next().unwrap_or_default())];
    found.extend(parts.filter_map(|part| part.split_once('m')));
    found.retain(|(_, text)| !text.is_empty());
    found
}

fn visible_length(line: &str) -> usize {
    stretches(line).iter().map(|(_, text)| text.chars().count()).sum()
}

/// What the terminal's codes look like on a dark ground.
fn style(code: &str) -> &'static str {
    match code {
        "1" => "fill=\"#ffffff\" font-weight=\"bold\"",
        "1;31" => "fill=\"#ff7b72\" font-weight=\"bold\"",
        "31" => "fill=\"#ff7b72\"",
        "32" => "fill=\"#7ee787\"",
        "33" => "fill=\"#e3b341\"",
        "2" => "fill=\"#8b949e\"",
        _ => "fill=\"#d0d7de\"",
    }
}

/// Text that can stand between tags and inside quotes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Body, Schema, Section};

    #[test]
    fn hostile_names_cannot_leave_their_line() {
        let view = View {
            schema: Schema { name: "t", version: 1 },
            title: "</text><script>&\x1b[0m".into(),
            sections: vec![Section {
                key: "s",
                title: String::new(),
                caption: String::new(),
                body: Body::Prose(vec!["x".into()]),
            }],
        };
        let svg = render_svg(&view, 80);
        assert!(svg.contains("&lt;/text&gt;&lt;script&gt;&amp;"), "{svg}");
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
        assert!(!svg.contains('\x1b') && !svg.contains("<script"));
    }

    #[test]
    fn a_line_is_divided_where_its_colour_changes() {
        let line = "  \x1b[1mA\x1b[0m  \x1b[2mb c\x1b[0m";
        assert_eq!(stretches(line), [("0", "  "), ("1", "A"), ("0", "  "), ("2", "b c")]);
        assert_eq!(visible_length(line), 8);
    }
}
