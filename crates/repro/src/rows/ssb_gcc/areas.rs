//! A drawing of areas that stand on each other over time.

use std::fmt::Write as _;

/// One area: its name, and its height at every point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Area {
    pub(super) name: String,
    pub(super) heights: Vec<f64>,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 52.0;
/// Room for the title, and the axis's own below it.
const TOP: f64 = 50.0;
const BOTTOM: f64 = 44.0;
/// Room for the names.
const RIGHT: f64 = 170.0;
/// Told apart by those who see few colours.
const COLOURS: [&str; 9] = [
    "#bbbbbb", "#ee6677", "#4477aa", "#ccbb44", "#66ccee", "#aa3377", "#228833", "#ddaa77",
    "#555555",
];

/// The areas over `times` (each point's end, in seconds), the first at the bottom; `ideal` is a
/// line across.
pub(super) fn stacked(title: &str, times: &[f64], areas: &[Area], ideal: Option<f64>) -> String {
    let points = times.len();
    let sum = |place: usize| -> f64 {
        areas.iter().filter_map(|area| area.heights.get(place)).map(|h| h.max(0.0)).sum()
    };
    let top = (0..points).map(sum).fold(0.1, f64::max) * 1.05;
    let last = times.last().copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
    let x = |seconds: f64| LEFT + seconds / last * (WIDTH - LEFT - RIGHT);
    let y = |height: f64| HEIGHT - BOTTOM - height / top * (HEIGHT - TOP - BOTTOM);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n\
         <text x=\"8\" y=\"20\" font-weight=\"bold\" font-size=\"13\">{}</text>\n",
        escaped(title)
    );
    let mut below = vec![0.0; points];
    for (place, area) in areas.iter().enumerate() {
        let above: Vec<f64> = (0..points)
            .map(|k| below[k] + area.heights.get(k).copied().unwrap_or(0.0).max(0.0))
            .collect();
        let colour = COLOURS[place % COLOURS.len()];
        let _ = writeln!(
            out,
            "<path fill=\"{colour}\" d=\"{}\"/>",
            outline(times, &below, &above, x, y)
        );
        legend(&mut out, place, &area.name, colour, areas.len());
        below = above;
    }
    axes(&mut out, top, last, x, y);
    if let Some(ideal) = ideal {
        let (from, to, at) = (LEFT, WIDTH - RIGHT, y(ideal));
        let _ = writeln!(
            out,
            "<path d=\"M{from:.1} {at:.1}H{to:.1}\" stroke=\"#000000\" stroke-dasharray=\"5 3\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">ideal CPI {ideal:.2}</text>",
            to + 8.0,
            at + 4.0
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Steps: an interval has one value from its beginning to its end.
fn outline(
    times: &[f64],
    below: &[f64],
    above: &[f64],
    x: impl Fn(f64) -> f64,
    y: impl Fn(f64) -> f64,
) -> String {
    let start = |k: usize| if k == 0 { 0.0 } else { times[k - 1] };
    let mut path = String::new();
    for k in 0..times.len() {
        let command = if k == 0 { 'M' } else { 'L' };
        let (from, to, at) = (x(start(k)), x(times[k]), y(above[k]));
        let _ = write!(path, "{command}{from:.1} {at:.1}H{to:.1}");
    }
    for k in (0..times.len()).rev() {
        let (from, to, at) = (x(times[k]), x(start(k)), y(below[k]));
        let _ = write!(path, "L{from:.1} {at:.1}H{to:.1}");
    }
    path.push('Z');
    path
}

/// The highest area's name stands highest.
fn legend(out: &mut String, place: usize, name: &str, colour: &str, of: usize) {
    let at = TOP + 18.0 * (of - 1 - place) as f64;
    let left = WIDTH - RIGHT + 12.0;
    let _ = writeln!(
        out,
        "<rect x=\"{left:.1}\" y=\"{at:.1}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        left + 18.0,
        at + 10.0,
        escaped(name)
    );
}

fn axes(out: &mut String, top: f64, last: f64, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
    for step in 0..=4 {
        let value = top * f64::from(step) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.2}</text>",
            LEFT - 6.0,
            y(value) + 4.0
        );
        let seconds = last * f64::from(step) / 4.0;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0}</text>",
            x(seconds),
            HEIGHT - BOTTOM + 16.0,
            1e3 * seconds
        );
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">modelled time, ms</text>\
         <text x=\"8\" y=\"{:.1}\">CPI</text>",
        x(last / 2.0),
        HEIGHT - 8.0,
        TOP - 12.0
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_stand_on_each_other_and_steps_span_their_interval() {
        let area =
            |name: &str, heights: &[f64]| Area { name: name.into(), heights: heights.into() };
        let areas = [area("a<b", &[1.0, 1.0]), area("c", &[1.0, 3.0])];
        let svg = stacked("t", &[0.001, 0.002], &areas, Some(0.5));
        // The whole reaches 4 of 4.2; the first area a quarter of that.
        let y = |height: f64| HEIGHT - BOTTOM - height / 4.2 * (HEIGHT - TOP - BOTTOM);
        assert!(svg.contains(&format!("{:.1}H{:.1}Z", y(1.0), LEFT)), "{svg}");
        assert!(svg.contains(&format!("{:.1}H{:.1}", y(4.0), WIDTH - RIGHT)), "{svg}");
        assert!(svg.contains("a&lt;b") && svg.contains("ideal CPI 0.50"));
        // The axis's title stands a line above its highest number.
        assert!(svg.contains("<text x=\"8\" y=\"38.0\">CPI") && svg.contains("y=\"54.0\""));
        assert!(stacked("t", &[], &[], None).ends_with("</svg>\n"));
    }
}
