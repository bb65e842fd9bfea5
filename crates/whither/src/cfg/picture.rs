//! The flow as a graph to draw.

use analyse::{BlockReport, Confidence, InstructionReport};
use image::FlowGraph;
use metrology::{Coverage, Estimate};
use show::{Graph, Node, Way};

use super::Drawn;
use crate::examined::{executed, is_vague, least_cpi, mean_cpi, word};
use crate::sampled::Sampled;

/// Instructions of a block that are drawn; a long block keeps its hottest end.
const LINES_MAX: usize = 24;

pub(super) fn graph(sampled: &Sampled, drawn: &Drawn) -> Graph {
    let report = &drawn.examined.report;
    let all = report.summary.samples.max(1) as f64;
    let node = |(k, block): (usize, &BlockReport)| Node {
        title: title(k, block),
        lines: lines(drawn, k),
        heat: block.samples as f64 / all,
    };
    let most = report.edges.iter().map(|edge| edge.frequency.value).fold(0.0, f64::max);
    let way = |edge: &analyse::EdgeReport| Way {
        from: edge.from,
        to: edge.to,
        // Frequencies span decades: the logarithm tells them apart.
        weight: (1.0 + edge.frequency.value).ln() / (1.0 + most).ln().max(1e-9),
        label: ran(edge.frequency),
        is_uncertain: edge.confidence == Confidence::Low,
    };
    let cpi = report.summary.best_cpi().map_or_else(String::new, |best| {
        let actual = mean_cpi(&report.summary, executed(report)).to_text();
        format!(": best {best:.2} CPI, actual {actual} CPI")
    });
    Graph {
        title: format!("{}{cpi}", sampled.title(&drawn.time)),
        nodes: report.blocks.iter().enumerate().map(node).collect(),
        ways: report.edges.iter().map(way).collect(),
    }
}

/// `block 3: 1.2M runs (high), 0.62 → 10.77 CPI, 4,711 samples`
pub(super) fn title(k: usize, block: &BlockReport) -> String {
    let runs = ran(block.frequency);
    let actual = match block.actual_cpi {
        Some(actual) if is_vague(block.frequency) => {
            let least = least_cpi(actual, block);
            format!(", best {:.2}, actual at least {least:.2} CPI", block.best_cpi)
        }
        Some(actual) => format!(", best {:.2}, actual {:.2} CPI", block.best_cpi, actual.value),
        None => String::new(),
    };
    format!("block {k}: {runs} runs ({}){actual}", word(block.confidence))
}

/// The instructions of a block: samples, text, stall.
fn lines(drawn: &Drawn, block: usize) -> Vec<String> {
    let graph: &FlowGraph = &drawn.examined.graph;
    let Some(held) = graph.blocks.get(block) else { return Vec::new() };
    let steps = graph.steps.get(held.first..held.end).unwrap_or_default();
    let left_out = steps.len().saturating_sub(LINES_MAX);
    let told = (left_out > 0).then(|| format!("… {left_out} instructions"));
    let shown = steps.iter().skip(left_out).map(|step| {
        let at = |line: &crate::listing::CodeLine| line.address.cmp(&step.address);
        let place = drawn.listing.lines.binary_search_by(at).ok();
        let text = place.and_then(|k| drawn.listing.lines.get(k)).map_or("", |l| l.text.as_str());
        let report = drawn.examined.report.at(step.address);
        let samples = report.map_or(0, |it| it.samples);
        let samples = if samples == 0 { String::new() } else { samples.to_string() };
        format!("{samples:>7}  {text}{}", report.map_or(String::new(), stall))
    });
    told.into_iter().chain(shown).collect()
}

/// `  dwD 18.0 cy`
fn stall(it: &InstructionReport) -> String {
    let cycles = it.dynamic_stall_cycles;
    if cycles < 0.5 {
        return String::new();
    }
    let letters: String = it.culprits.iter().map(|culprit| culprit.cause.letter()).collect();
    let letters = if letters.is_empty() { "?".to_owned() } else { letters };
    format!("  {letters} {cycles:.1} cy")
}

/// `1.2M`, or `≤ 3.0M` where it may never have run.
fn ran(frequency: Estimate) -> String {
    match is_vague(frequency) {
        true => format!("≤ {}", short(frequency.interval(Coverage::P95).high)),
        false => short(frequency.value),
    }
}

/// `1.2M`.
pub(super) fn short(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e4 => (v / 1e3, "k"),
        v => return format!("{v:.0}"),
    };
    let places = usize::from(scaled < 100.0);
    format!("{scaled:.places$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_are_written_short() {
        let written = [0.0, 999.4, 12_345.0, 1.25e6, 345.6e6, 2e9].map(short);
        assert_eq!(written, ["0", "999", "12.3k", "1.2M", "346M", "2.0G"]);
    }
}
