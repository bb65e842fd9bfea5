//! The View for a person.

use crate::stack;
use crate::table::{self, wrap};
use crate::{Body, Colour, Fact, Section, Tone, View, clean};

/// What the reader's screen is like.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Columns.
    pub width: usize,
    /// Whether escape sequences may be written.
    pub colour: Colour,
}

/// The view as text, ending in a newline.
pub fn render_text(view: &View, page: Page) -> String {
    let mut lines = vec![page.colour.paint(Tone::Heading, &clean(&view.title))];
    for section in view.sections.iter().filter(|section| !is_empty(section)) {
        lines.push(String::new());
        heading(section, page, &mut lines);
        body(&section.body, page, &mut lines);
    }
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// A section with nothing in it has no heading either; JSON keeps its key.
fn is_empty(section: &Section) -> bool {
    match &section.body {
        Body::Facts(facts) => facts.is_empty(),
        Body::Table(table) => !table.rows.iter().any(crate::Row::is_in_text),
        Body::Tables(tables) => tables.is_empty(),
        Body::Stack(parts) => parts.is_empty(),
        Body::Prose(sentences) => sentences.is_empty(),
    }
}

fn heading(section: &Section, page: Page, lines: &mut Vec<String>) {
    if section.title.is_empty() {
        return;
    }
    let title = clean(&section.title);
    let heading = page.colour.paint(Tone::Heading, &title);
    if section.caption.is_empty() {
        lines.push(heading);
        return;
    }
    let caption = format!("({})", clean(&section.caption));
    let faint = |text: &str| page.colour.paint(Tone::Faint, text);
    if title.chars().count() + 2 + caption.chars().count() <= page.width {
        lines.push(format!("{heading}  {}", faint(&caption)));
    } else {
        lines.push(heading);
        let wrapped = wrap(&caption, page.width.saturating_sub(2).max(20));
        lines.extend(wrapped.iter().map(|part| format!("  {}", faint(part))));
    }
}

fn body(body: &Body, page: Page, lines: &mut Vec<String>) {
    match body {
        Body::Facts(facts) => lines.extend(fact_lines(facts, page)),
        Body::Table(table) => lines.extend(table::lines(table, page.width, page.colour)),
        Body::Tables(tables) => {
            for (place, (title, table)) in tables.iter().enumerate() {
                if place > 0 {
                    lines.push(String::new());
                }
                lines.push(format!("  {}", page.colour.paint(Tone::Heading, &clean(title))));
                lines.extend(table::lines(table, page.width, page.colour));
            }
        }
        Body::Stack(parts) => lines.extend(stack::lines(parts, page.width)),
        Body::Prose(sentences) => {
            for sentence in sentences {
                let wrapped = wrap(&clean(sentence), page.width.saturating_sub(4).max(20));
                for (place, part) in wrapped.iter().enumerate() {
                    lines.push(format!("{}{part}", if place == 0 { "  • " } else { "    " }));
                }
            }
        }
    }
}

fn fact_lines(facts: &[Fact], page: Page) -> Vec<String> {
    let widest = facts.iter().map(|fact| fact.label.chars().count()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for fact in facts {
        let value = wrap(&fact.cell.to_text(), page.width.saturating_sub(widest + 4).max(20));
        for (place, part) in value.iter().enumerate() {
            let label = if place == 0 { fact.label } else { "" };
            let gap = " ".repeat(widest - label.chars().count());
            let label = page.colour.paint(Tone::Faint, label);
            lines.push(format!("  {label}{gap}  {part}").trim_end().to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Schema};

    #[test]
    fn facts_line_up_and_hostile_titles_are_cleaned() {
        let view = View {
            schema: Schema { name: "test", version: 1 },
            title: "a\x1b[2Jb".into(),
            sections: vec![Section {
                key: "f",
                title: "FACTS".into(),
                caption: "measured".into(),
                body: Body::Facts(vec![
                    Fact::new("a", "short", Cell::text("x")),
                    Fact::new("b", "longer name", Cell::text("y")),
                ]),
            }],
        };
        let page = Page { width: 80, colour: Colour::Off };
        let expected = "a\\u{1b}[2Jb\n\nFACTS  (measured)\n  short        x\n  longer name  y\n";
        assert_eq!(render_text(&view, page), expected);
    }
}
