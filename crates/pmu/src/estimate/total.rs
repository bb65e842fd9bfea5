//! The total of an event, by the estimator that the data favour.

use metrology::Estimate;

use super::line::Line;
use super::series::interpolated;
use super::{Counted, Estimator, linear};
use crate::{Grouping, Reading};

/// The totals of all events, in the grouping's order; `None` for what was never counted.
///
/// Readings are in order of time, thread after thread where there are several.
pub fn totals(grouping: &Grouping, readings: &[Reading]) -> Vec<Option<Counted>> {
    (0..grouping.events.len()).map(|event| total(grouping, readings, event)).collect()
}

/// The total of one event.
pub fn total(grouping: &Grouping, readings: &[Reading], event: usize) -> Option<Counted> {
    let line = Line::new(grouping, readings, event);
    let n = line.slices();
    if n == 0 {
        return None;
    }
    if n == line.counts.len() {
        return Some(Counted::exact(line.counted, n));
    }
    if n < 3 {
        return linear::scaled(&line);
    }
    let anchors = 0..line.sizes.len().min(2);
    let best = anchors.filter_map(|anchor| predicted(&line, anchor));
    best.min_by(|a, b| a.estimate.standard_uncertainty.total_cmp(&b.estimate.standard_uncertainty))
}

/// Counted exactly where it was, interpolated elsewhere; the spread is that of neighbours.
fn predicted(line: &Line, anchor: usize) -> Option<Counted> {
    let sizes = line.sizes.get(anchor)?;
    let all = interpolated(line, anchor)?;
    let value: f64 = all.iter().sum();
    let (whole, counted) = line.sizes_of(anchor);
    let known: Vec<(f64, f64)> =
        line.counts.iter().zip(sizes).filter_map(|(c, s)| c.map(|c| (c, *s))).collect();
    let n = known.len() as f64;
    let step = |pair: &[(f64, f64)]| match pair {
        [(y, s), (z, t)] if *s > 0.0 && *t > 0.0 => {
            let mean = counted / n;
            ((y / s - z / t) * mean).powi(2) / 2.0
        }
        _ => 0.0,
    };
    let squares: f64 = known.windows(2).map(step).sum();
    let variance = squares / (n - 1.0) * n * (whole / counted).powi(2) * (1.0 - counted / whole);
    let estimate = Estimate {
        value,
        standard_uncertainty: variance.max(0.0).sqrt(),
        degrees_of_freedom: n - 1.0,
    };
    let estimator = if anchor == 0 { Estimator::PerCycle } else { Estimator::PerInstruction };
    let (share, slices) = (line.share(), known.len());
    Some(Counted { estimate, counted: line.counted, share, slices, estimator })
}
