//! Linear scaling by measured time: N = C·T/S, as MPX and the kernel have it.

use metrology::Estimate;

use super::line::{Line, Turns};
use super::{Counted, Estimator};
use crate::{Grouping, Reading};

/// An event's total by linear scaling; `None` if it was never counted.
///
/// Its ± takes slices as drawn at random from the whole run (a ratio estimator's variance with the
/// finite population taken off). One slice has no spread and leaves the ± unbounded.
pub fn linear(grouping: &Grouping, readings: &[Reading], event: usize) -> Option<Counted> {
    scaled(&Line::new(grouping, readings, &Turns::new(grouping, readings), event))
}

/// The same for all events, in the grouping's order.
pub fn linear_totals(grouping: &Grouping, readings: &[Reading]) -> Vec<Option<Counted>> {
    let turns = Turns::new(grouping, readings);
    let one = |event| scaled(&Line::new(grouping, readings, &turns, event));
    (0..grouping.events.len()).map(one).collect()
}

pub(super) fn scaled(line: &Line<'_>) -> Option<Counted> {
    let n = line.slices();
    let (all, counted) = line.cycles;
    if n == 0 || counted <= 0.0 {
        return None;
    }
    if n == line.len() {
        return Some(Counted::exact(line.counted, n));
    }
    let rate = line.counted as f64 / counted;
    let residual = |place: usize| line.count(place).map(|count| count - rate * line.size(place));
    let squares: f64 = line.places().filter_map(residual).map(|r| r * r).sum();
    let count = n as f64;
    let expanded = all / counted;
    let unseen = (1.0 - counted / all).max(0.0);
    let estimate = if n == 1 {
        Estimate { value: rate * all, standard_uncertainty: f64::INFINITY, degrees_of_freedom: 1.0 }
    } else {
        let variance = expanded * expanded * unseen * squares * count / (count - 1.0);
        Estimate {
            value: rate * all,
            standard_uncertainty: variance.sqrt(),
            degrees_of_freedom: count - 1.0,
        }
    };
    let share = line.share();
    Some(Counted {
        estimate,
        counted: line.counted,
        share,
        slices: n,
        estimator: Estimator::Linear,
    })
}
