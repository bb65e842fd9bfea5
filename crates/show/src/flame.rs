//! Stacks as a flame graph: every frame as wide as its share, its callees on top of it.

use std::collections::BTreeMap;

use crate::clean;
use crate::svg::escape;

const WIDTH: f64 = 1200.0;
const ROW: f64 = 17.0;
const MARGIN: f64 = 10.0;
const CHARACTER: f64 = 7.0;
/// Narrower frames would be invisible, and there may be millions.
const LEAST_WIDTH: f64 = 0.3;
/// Deeper stacks are cut: a recursion that never ends tells no more in its thousandth row.
const DEPTH_MAX: usize = 200;

/// A frame with what it called.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Frame {
    count: u64,
    callees: BTreeMap<String, Frame>,
}

/// Stacks, outermost frame first, with their counts, as an SVG document.
pub fn render_flame_svg<'a>(
    title: &str,
    stacks: impl IntoIterator<Item = (&'a [String], u64)>,
) -> String {
    let mut root = Frame::default();
    for (stack, count) in stacks {
        let mut frame = &mut root;
        frame.count += count;
        for name in stack.iter().take(DEPTH_MAX) {
            frame = frame.callees.entry(name.clone()).or_default();
            frame.count += count;
        }
    }
    let depth = depth(&root);
    let height = 2.0 * MARGIN + ROW * (depth + 2) as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         width=\"{WIDTH}\" height=\"{height:.0}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
         monospace\" font-size=\"11\">\n<style>g:hover rect{{stroke:#000}}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"18\" font-size=\"13\" font-weight=\"bold\">{}</text>\n",
        escape(&clean(title))
    );
    let scale = (WIDTH - 2.0 * MARGIN) / (root.count as f64).max(1.0);
    let draw = Draw { scale, whole: root.count, floor: height - MARGIN };
    draw.callees(&root, MARGIN, 0, &mut svg);
    svg.push_str("</svg>\n");
    svg
}

fn depth(frame: &Frame) -> usize {
    frame.callees.values().map(|callee| 1 + depth(callee)).max().unwrap_or(0)
}

struct Draw {
    /// Pixels a sample.
    scale: f64,
    whole: u64,
    floor: f64,
}

impl Draw {
    fn callees(&self, frame: &Frame, mut x: f64, level: usize, svg: &mut String) {
        for (name, callee) in &frame.callees {
            let width = callee.count as f64 * self.scale;
            if width >= LEAST_WIDTH {
                svg.push_str(&self.frame(name, callee.count, (x, width), level));
                self.callees(callee, x, level + 1, svg);
            }
            x += width;
        }
    }

    fn frame(&self, name: &str, count: u64, (x, width): (f64, f64), level: usize) -> String {
        let name = clean(name);
        let y = self.floor - ROW * (level + 1) as f64;
        let share = 100.0 * count as f64 / (self.whole as f64).max(1.0);
        let room = ((width - 4.0) / CHARACTER).max(0.0) as usize;
        let shown: String = match name.chars().count() {
            length if length <= room => name.to_string(),
            _ if room >= 4 => name.chars().take(room - 1).chain(['…']).collect(),
            _ => String::new(),
        };
        format!(
            "<g><title>{} ({count} samples, {share:.2} %)</title><rect x=\"{x:.1}\" y=\"{y:.1}\" \
             width=\"{:.1}\" height=\"{:.1}\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             </g>\n",
            escape(&name),
            (width - 0.5).max(0.2),
            ROW - 1.0,
            hue(&name),
            x + 2.0,
            y + 12.0,
            escape(&shown)
        )
    }
}

/// The same name has the same colour everywhere: warm, and told apart by a hash.
fn hue(name: &str) -> String {
    let hash = name
        .bytes()
        .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    let (a, b) = ((hash & 0x3f) as u8, ((hash >> 8) & 0x3f) as u8);
    format!("rgb({},{},{})", 220 + a / 2, 120 + a + b, 60 + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_as_wide_as_their_share_and_stand_on_their_callers() {
        let stack = |text: &str| text.split(';').map(str::to_owned).collect::<Vec<String>>();
        let stacks = [(stack("main;a;<b>"), 3), (stack("main;c"), 1)];
        let svg = render_flame_svg("t", stacks.iter().map(|(s, n)| (s.as_slice(), *n)));
        assert_eq!(svg.matches("<g>").count(), 4);
        assert!(svg.contains("<title>main (4 samples, 100.00 %)</title>"), "{svg}");
        assert!(svg.contains("<title>&lt;b&gt; (3 samples, 75.00 %)</title>"));
        // 1180 pixels for four samples: a is 885 wide, c 295.
        assert!(svg.contains("width=\"884.5\"") && svg.contains("width=\"294.5\""));
    }

    #[test]
    fn endless_recursion_is_cut() {
        let deep = vec!["f".to_owned(); 10_000];
        let svg = render_flame_svg("t", [(deep.as_slice(), 1)]);
        assert_eq!(svg.matches("<g>").count(), DEPTH_MAX);
    }
}
