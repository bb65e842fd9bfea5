//! A small SVG writer: horizontal bars with their intervals.

use std::fmt::Write as _;

/// One bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    /// Its name.
    pub label: String,
    /// Its length.
    pub value: f64,
    /// The ends of its interval, drawn as a whisker.
    pub interval: Option<(f64, f64)>,
}

const LINE: f64 = 22.0;
const LEFT: f64 = 110.0;
const WIDTH: f64 = 720.0;

/// Bars under a title; values are in `unit`. Bars that are not finite are left out.
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let bars: Vec<&Bar> = bars.iter().filter(|bar| bar.value.is_finite()).collect();
    let top = |bar: &&Bar| bar.interval.map_or(bar.value, |(_, high)| high.max(bar.value));
    let longest = bars.iter().map(top).filter(|v| v.is_finite()).fold(0.0, f64::max);
    let scale = if longest > 0.0 { (WIDTH - LEFT - 90.0) / longest } else { 0.0 };
    let height = 40.0 + LINE * bars.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    );
    for (place, bar) in bars.iter().enumerate() {
        draw(&mut out, bar, 32.0 + LINE * place as f64, scale, unit);
    }
    out.push_str("</svg>\n");
    out
}

fn draw(out: &mut String, bar: &Bar, y: f64, scale: f64, unit: &str) {
    let length = (bar.value * scale).max(0.0);
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
         <rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{:.1}\" fill=\"#4477aa\"/>",
        LEFT - 8.0,
        y + 13.0,
        escaped(&bar.label),
        LINE - 6.0
    );
    let mut end = length;
    if let Some((low, high)) =
        bar.interval.filter(|(low, high)| low.is_finite() && high.is_finite())
    {
        let (low, high) = ((low * scale).max(0.0), (high * scale).max(0.0));
        end = end.max(high);
        let middle = y + (LINE - 6.0) / 2.0;
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {middle:.1}H{:.1}\" stroke=\"#222222\" stroke-width=\"2\"/>",
            LEFT + low,
            LEFT + high
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\">{:.1} {}</text>",
        LEFT + end + 6.0,
        y + 13.0,
        bar.value,
        escaped(unit)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(label: &str, value: f64) -> Bar {
        Bar { label: label.to_owned(), value, interval: None }
    }

    #[test]
    fn the_longest_bar_fills_the_width_and_the_others_follow() {
        let svg = bars("t", "×", &[bar("a", 10.0), bar("b", 5.0)]);
        assert!(svg.contains("width=\"520.0\"") && svg.contains("width=\"260.0\""));
    }

    #[test]
    fn names_are_escaped_and_what_is_no_number_is_left_out() {
        let svg = bars("a<b", "s", &[bar("<x>", 1.0), bar("nan", f64::NAN)]);
        assert!(svg.contains("a&lt;b") && svg.contains("&lt;x&gt;") && !svg.contains("nan"));
        assert!(bars("none", "s", &[]).ends_with("</svg>\n"));
    }
}
