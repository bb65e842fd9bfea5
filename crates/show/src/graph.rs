//! A flow graph as a picture, or in the language of dot.
//!
//! Blocks stand below each other in the order of their addresses, as in a listing. Ways forward run
//! on the right, ways back on the left, each in a lane of its own, so that a loop is a bracket:
//!
//! ```text
//!      ┌────────┐
//!      │ block  ├──┐
//!      └───┬────┘  │
//!   ┌─►┌───┴────┐  │
//!   └──┤ loop   │  │
//!      └───┬────┘  │
//!      ┌───┴────┐◄─┘
//!      └────────┘
//! ```

use crate::clean;
use crate::svg::escape;

/// A block.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// One line above the others.
    pub title: String,
    /// Text, a line each.
    pub lines: Vec<String>,
    /// The share of all time, 0 to 1: the warmth of its colour.
    pub heat: f64,
}

/// A way between blocks.
#[derive(Clone, PartialEq, Debug)]
pub struct Way {
    /// The place of the block that is left.
    pub from: usize,
    /// The place of the block that is entered.
    pub to: usize,
    /// How often, relative to the most frequent: the width of the line, 0 to 1.
    pub weight: f64,
    /// What stands beside it.
    pub label: String,
    /// Whether that is uncertain: drawn broken.
    pub is_uncertain: bool,
}

/// A graph.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Graph {
    /// Above all.
    pub title: String,
    /// In the order in which they are drawn.
    pub nodes: Vec<Node>,
    /// Between them.
    pub ways: Vec<Way>,
}

const CHARACTER: f64 = 7.2;
const LINE: f64 = 15.0;
const PADDING: f64 = 8.0;
const GAP: f64 = 26.0;
const LANE: f64 = 15.0;
const LABEL: f64 = 90.0;
/// Characters of a line; what is longer is cut.
const WIDEST: usize = 72;
/// Lanes beside each other; ways beyond share the outermost.
const LANES_MAX: usize = 24;

/// The graph as an SVG document.
pub fn render_graph_svg(graph: &Graph) -> String {
    let drawing = Drawing::of(graph);
    let (w, h) = (drawing.width, drawing.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" \
         width=\"{w:.0}\" height=\"{h:.0}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, \
         monospace\" font-size=\"12\">\n\
         <defs><marker id=\"to\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">\
         <path d=\"M0,0 L8,4 L0,8 z\" fill=\"#444\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{PADDING}\" y=\"18\" font-weight=\"bold\">{}</text>\n",
        escape(&clean(&graph.title))
    );
    for (way, lane) in graph.ways.iter().zip(&drawing.lanes) {
        svg.push_str(&drawing.way(way, *lane));
    }
    for (node, top) in graph.nodes.iter().zip(&drawing.tops) {
        svg.push_str(&drawing.node(node, *top));
    }
    svg.push_str("</svg>\n");
    svg
}

/// Where everything goes.
struct Drawing {
    left: f64,
    box_width: f64,
    tops: Vec<f64>,
    heights: Vec<f64>,
    /// Of each way: 0 is straight down, positive on the right, negative on the left.
    lanes: Vec<i32>,
    width: f64,
    height: f64,
}

impl Drawing {
    fn of(graph: &Graph) -> Drawing {
        let height = |node: &Node| 2.0 * PADDING + LINE * (1 + node.lines.len()) as f64;
        let heights: Vec<f64> = graph.nodes.iter().map(height).collect();
        let mut tops = Vec::with_capacity(heights.len());
        let mut y = 34.0;
        for height in &heights {
            tops.push(y);
            y += height + GAP;
        }
        let texts = graph.nodes.iter().flat_map(|node| node.lines.iter().chain([&node.title]));
        let widest = texts.map(|text| text.chars().count().min(WIDEST)).max().unwrap_or(8);
        let lanes = lanes(graph);
        let most = |side: i32| lanes.iter().map(|lane| lane * side).max().unwrap_or(0).max(0);
        let left = f64::from(most(-1)) * LANE + LABEL + PADDING;
        let box_width = widest as f64 * CHARACTER + 2.0 * PADDING;
        let width = left + box_width + f64::from(most(1)) * LANE + LABEL + PADDING;
        Drawing { left, box_width, tops, heights, lanes, width, height: y }
    }

    fn node(&self, node: &Node, top: f64) -> String {
        let height = 2.0 * PADDING + LINE * (1 + node.lines.len()) as f64;
        let mut drawn = format!(
            "<rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{height:.1}\" rx=\"3\" \
             fill=\"{}\" stroke=\"#444\"/>\n",
            self.left,
            self.box_width,
            warmth(node.heat)
        );
        let lines = std::iter::once((&node.title, " font-weight=\"bold\""));
        for (number, (text, style)) in lines.chain(node.lines.iter().map(|l| (l, ""))).enumerate() {
            let (x, y) = (self.left + PADDING, top + PADDING + LINE * (number as f64 + 0.8));
            let kept: String = clean(text).chars().take(WIDEST).collect();
            drawn.push_str(&format!(
                "<text xml:space=\"preserve\" x=\"{x:.1}\" y=\"{y:.1}\"{style}>{}</text>\n",
                escape(&kept)
            ));
        }
        drawn
    }

    fn way(&self, way: &Way, lane: i32) -> String {
        let top = |k: usize| self.tops.get(k).copied().unwrap_or(0.0);
        let bottom = |k: usize| top(k) + self.heights.get(k).copied().unwrap_or(0.0);
        let middle = self.left + self.box_width / 2.0;
        let (path, x, y, anchor) = match lane {
            0 => {
                let (from, to) = (bottom(way.from), top(way.to));
                let path = format!("M{middle:.1},{from:.1} V{to:.1}");
                (path, middle + 6.0, (from + to) / 2.0 + 4.0, "start")
            }
            lane => {
                let is_right = lane > 0;
                let side = if is_right { self.left + self.box_width } else { self.left };
                let out = side + f64::from(lane) * LANE;
                let (from, to) = (bottom(way.from) - PADDING, top(way.to) + PADDING);
                let path = format!("M{side:.1},{from:.1} H{out:.1} V{to:.1} H{side:.1}");
                let (nudge, anchor) = if is_right { (4.0, "start") } else { (-4.0, "end") };
                (path, out + nudge, (from + to) / 2.0, anchor)
            }
        };
        let width = 0.8 + 3.2 * way.weight.clamp(0.0, 1.0);
        let dashes = if way.is_uncertain { " stroke-dasharray=\"5 4\"" } else { "" };
        format!(
            "<path d=\"{path}\" fill=\"none\" stroke=\"#444\" stroke-width=\"{width:.1}\"{dashes} \
             marker-end=\"url(#to)\"/>\n<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" \
             font-size=\"10\" fill=\"#06c\">{}</text>\n",
            escape(&clean(&way.label))
        )
    }
}

/// The innermost free lane for each way, short ways first.
fn lanes(graph: &Graph) -> Vec<i32> {
    let mut order: Vec<usize> = (0..graph.ways.len()).collect();
    order.sort_by_key(|&k| graph.ways.get(k).map_or(0, |way| way.from.abs_diff(way.to)));
    let mut lanes = vec![0; graph.ways.len()];
    let mut taken: [Vec<Vec<(usize, usize)>>; 2] = [Vec::new(), Vec::new()];
    for k in order {
        let Some(way) = graph.ways.get(k) else { continue };
        if way.to == way.from + 1 && lanes.get(k) == Some(&0) && !is_doubled(graph, k) {
            continue;
        }
        let is_back = way.to <= way.from;
        let span = (way.from.min(way.to), way.from.max(way.to));
        let side = &mut taken[usize::from(is_back)];
        let meets = |lane: &Vec<(usize, usize)>| {
            lane.iter().any(|held| held.0 <= span.1 && span.0 <= held.1)
        };
        let free = side.iter().position(|lane| !meets(lane)).unwrap_or(side.len());
        let free = free.min(LANES_MAX - 1);
        if free == side.len() {
            side.push(Vec::new());
        }
        if let Some(lane) = side.get_mut(free) {
            lane.push(span);
        }
        let number = free as i32 + 1;
        if let Some(lane) = lanes.get_mut(k) {
            *lane = if is_back { -number } else { number };
        }
    }
    lanes
}

/// Whether an earlier way already leads straight down between the same blocks.
fn is_doubled(graph: &Graph, k: usize) -> bool {
    let same = |a: &Way, b: &Way| (a.from, a.to) == (b.from, b.to);
    let way = graph.ways.get(k);
    way.is_some_and(|way| graph.ways.iter().take(k).any(|other| same(other, way)))
}

/// White to red.
fn warmth(heat: f64) -> String {
    let heat = heat.clamp(0.0, 1.0).sqrt();
    let other = (255.0 - 150.0 * heat) as u8;
    format!("#ff{other:02x}{other:02x}")
}

/// The graph in the language of dot.
pub fn render_graph_dot(graph: &Graph) -> String {
    let quoted = |text: &str| clean(text).replace('\\', "\\\\").replace('"', "\\\"");
    let mut dot = format!(
        "digraph flow {{\n  label=\"{}\";\n  node [shape=box, fontname=monospace, style=filled];\n",
        quoted(&graph.title)
    );
    for (k, node) in graph.nodes.iter().enumerate() {
        let text: String =
            std::iter::once(&node.title).chain(&node.lines).map(|l| quoted(l) + "\\l").collect();
        let fill = warmth(node.heat);
        dot.push_str(&format!("  b{k} [label=\"{text}\", fillcolor=\"{fill}\"];\n"));
    }
    for way in &graph.ways {
        let style = if way.is_uncertain { "dashed" } else { "solid" };
        dot.push_str(&format!(
            "  b{} -> b{} [label=\"{}\", penwidth={:.1}, style={style}];\n",
            way.from,
            way.to,
            quoted(&way.label),
            0.8 + 3.2 * way.weight.clamp(0.0, 1.0)
        ));
    }
    dot.push_str("}\n");
    dot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(from: usize, to: usize) -> Way {
        Way { from, to, weight: 0.5, label: format!("{from}→{to}"), is_uncertain: false }
    }

    fn graph() -> Graph {
        let node = |k: usize| Node { title: format!("</b{k}>"), lines: vec![], heat: 0.0 };
        Graph {
            title: "a \"b\"".into(),
            nodes: (0..4).map(node).collect(),
            ways: vec![way(0, 1), way(1, 1), way(0, 3), way(2, 1), way(1, 2), way(1, 3)],
        }
    }

    #[test]
    fn ways_that_overlap_get_lanes_of_their_own() {
        // 0→1 and 1→2 go straight down; 1→1 is inside 2→1 on the left, 1→3 inside 0→3 on the right.
        assert_eq!(lanes(&graph()), [0, -1, 2, -2, 0, 1]);
    }

    #[test]
    fn every_block_and_way_is_drawn_and_names_cannot_leave_their_text() {
        let svg = render_graph_svg(&graph());
        assert_eq!(svg.matches("<rect").count(), 1 + 4);
        assert_eq!(svg.matches("marker-end").count(), 6);
        assert!(svg.contains("&lt;/b2&gt;") && !svg.contains("</b2>"));
        let dot = render_graph_dot(&graph());
        assert_eq!(dot.matches(" -> ").count(), 6);
        assert!(dot.contains("label=\"a \\\"b\\\"\""));
    }
}
