//! Lines over an axis, as SVG.

use std::fmt::Write as _;

/// One line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Its name in the key.
    pub label: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 40.0;
const COLOURS: [&str; 6] = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#aa3377", "#66ccee"];

/// Lines under a title; the y axis begins at 0. Points that are not finite are left out.
pub fn lines(title: &str, across: &str, up: &str, lines: &[Line]) -> String {
    let all =
        || lines.iter().flat_map(|l| &l.points).filter(|p| p.0.is_finite() && p.1.is_finite());
    let low = all().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let high = all().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
    let top = all().map(|p| p.1).fold(0.0, f64::max);
    let span = if high > low { high - low } else { 1.0 };
    let x = |value: f64| LEFT + (value - low) / span * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| {
        HEIGHT - BOTTOM - value / if top > 0.0 { top } else { 1.0 } * (HEIGHT - TOP - BOTTOM)
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"18\" font-weight=\"bold\">{}</text>\n\
         <path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#222222\"/>\n\
         <text x=\"{LEFT}\" y=\"{}\">{}</text>\n\
         <text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
         <text x=\"{}\" y=\"{TOP}\" text-anchor=\"end\">{}</text>\n\
         <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">0</text>\n",
        escaped(title),
        HEIGHT - 10.0,
        escaped(&number(low)),
        HEIGHT - 10.0,
        escaped(&format!("{} {across}", number(high))),
        LEFT - 6.0,
        escaped(&format!("{} {up}", number(top))),
        LEFT - 6.0,
        bottom = HEIGHT - BOTTOM,
        right = WIDTH - RIGHT,
    );
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        let place = lines.iter().position(|other| other == line).unwrap_or(0) as f64;
        let finite = line.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite());
        let path: Vec<String> = finite.map(|p| format!("{:.1},{:.1}", x(p.0), y(p.1))).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.2\"/>\
             <text x=\"{:.1}\" y=\"36\" fill=\"{colour}\">{}</text>",
            path.join(" "),
            LEFT + place * 170.0,
            escaped(&line.label)
        );
    }
    out.push_str("</svg>\n");
    out
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{:.0} M", value / 1e6),
        v if v >= 1e3 => format!("{:.0} k", value / 1e3),
        v if v >= 10.0 || v == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.3}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_point_touches_the_top_and_odd_points_are_left_out() {
        let points = vec![(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN)];
        let svg = lines("a<b", "s", "y", &[Line { label: "l".into(), points }]);
        assert!(svg.contains("a&lt;b") && svg.contains("740.0,50.0") && !svg.contains("NaN"));
    }
}
