//! Parts of a whole stacked on an axis, negative ones below it.
//!
//! ```text
//!  118 % ┤
//!        │ ██████  left 41.0 %
//!        │ ▓▓▓▓▓▓
//!        │ ▓▓▓▓▓▓  dmiss 52.0 %
//!        │ ▒▒▒▒▒▒  bmisp 25.0 %
//!    0 % ┼──────
//!        │ ▓▓▓▓▓▓  dmiss+bmisp −18.0 %
//!  −18 % ┤
//! ```
//!
//! Above the axis and below it add up to the whole: 118 − 18 = 100 %.

use crate::clean;
use crate::table::wrap;

/// One part of a stack.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// What it is.
    pub name: String,
    /// Its share of the whole; it may be negative.
    pub share: f64,
}

/// Lines of the bar, both sides together.
const LINES: f64 = 26.0;
/// Columns of the bar.
const WIDTH: usize = 8;
const FILLS: [&str; 4] = ["█", "▒", "▓", "░"];

/// The stack as lines of text, so many columns wide. The first part stands on the axis.
pub(crate) fn lines(parts: &[Part], width: usize) -> Vec<String> {
    let side =
        |sign: f64| -> Vec<&Part> { parts.iter().filter(|p| sign * p.share > 0.0).collect() };
    let (above, below) = (side(1.0), side(-1.0));
    let sum = |parts: &[&Part]| parts.iter().map(|part| part.share.abs()).sum::<f64>();
    let a_line = (sum(&above) + sum(&below)) / LINES;
    if !a_line.is_finite() || a_line <= 0.0 {
        return Vec::new();
    }
    let mut small = Vec::new();
    let mut text = vec![format!("{:>7} ┤", percent(sum(&above)))];
    let mut drawn = side_lines(&above, a_line, width, &mut small);
    drawn.reverse();
    text.extend(drawn);
    text.push(format!("{:>7} ┼{}", percent(0.0), "─".repeat(WIDTH + 1)));
    if !below.is_empty() {
        text.extend(side_lines(&below, a_line, width, &mut small));
        text.push(format!("{:>7} ┤", percent(-sum(&below))));
    }
    if !small.is_empty() {
        let all = format!("too small to draw: {}", small.join(", "));
        let lines = wrap(&all, width.saturating_sub(2).max(20));
        text.extend(lines.iter().map(|line| format!("  {line}")));
    }
    text
}

/// One side, from the axis outwards. A part is named on the line in the middle of it. One of less
/// than half a line is not drawn, wherever it lies; what such ones come to lengthens the next.
fn side_lines(parts: &[&Part], a_line: f64, width: usize, small: &mut Vec<String>) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut sum, mut drawn, mut fills) = (0.0, 0, 0);
    for part in parts {
        let label = label(part, width.saturating_sub(WIDTH + 20).max(20));
        sum += part.share.abs();
        if part.share.abs() < a_line / 2.0 {
            small.push(label);
            continue;
        }
        let end = (sum / a_line).round() as usize;
        let count = end.saturating_sub(drawn).max(1);
        let fill = FILLS.get(fills % FILLS.len()).copied().unwrap_or("█").repeat(WIDTH);
        for line in 0..count {
            let label = if line == count / 2 { label.as_str() } else { "" };
            lines.push(format!("{:>7} │ {fill}  {label}", "").trim_end().to_owned());
        }
        drawn += count;
        fills += 1;
    }
    lines
}

/// A part's name, cut to some columns, and its share.
fn label(part: &Part, columns: usize) -> String {
    let name = clean(&part.name);
    let share = 100.0 * part.share;
    match name.chars().count() > columns {
        true => format!("{}… {share:+.1} %", name.chars().take(columns).collect::<String>()),
        false => format!("{name} {share:+.1} %"),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, share: f64) -> Part {
        Part { name: name.to_owned(), share }
    }

    #[test]
    fn parts_take_lines_as_their_shares_and_negative_ones_lie_below_the_axis() {
        let lines =
            lines(&[part("a", 0.75), part("b", 0.4), part("c", -0.15), part("d", 0.001)], 80);
        let axis = lines.iter().position(|line| line.contains('┼')).unwrap();
        let bars = |lines: &[String]| lines.iter().filter(|line| line.contains('│')).count();
        // 1.301 in 26 lines: 23 above, 3 below.
        assert_eq!((bars(&lines[..axis]), bars(&lines[axis..])), (23, 3));
        let place = |name: &str| lines.iter().position(|line| line.contains(name)).unwrap();
        assert!(place("b +40.0 %") < place("a +75.0 %") && place("a +75.0 %") < axis);
        assert!(place("c -15.0 %") > axis);
        assert!(lines.last().unwrap().contains("too small to draw: d +0.1 %"));
    }

    /// Between two lines or on one: what is drawn is never smaller than what is not.
    #[test]
    fn of_two_small_parts_it_is_never_the_smaller_that_is_drawn() {
        let all = [part("a", 0.5), part("b", 0.018), part("c", 0.028), part("d", 0.004)];
        let lines = lines(&[&all[..], &[part("e", 0.45)]].concat(), 80);
        let is_drawn =
            |name: &str| lines.iter().any(|line| line.contains('│') && line.contains(name));
        assert_eq!(
            ["a +", "b +", "c +", "d +", "e +"].map(is_drawn),
            [true, false, true, false, true]
        );
        assert!(lines.last().unwrap().ends_with("too small to draw: b +1.8 %, d +0.4 %"));
    }

    #[test]
    fn nothing_is_drawn_of_nothing() {
        assert!(lines(&[], 80).is_empty());
        assert!(lines(&[part("a", 0.0)], 80).is_empty());
        assert!(lines(&[part("a", f64::NAN)], 80).is_empty());
    }
}
