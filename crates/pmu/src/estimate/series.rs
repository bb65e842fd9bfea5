//! An event over time.

use super::line::Line;
use crate::{Grouping, Reading};

/// An event's count in every slice: as counted where it was, else interpolated between the rates
/// (per cycle) of the slices that counted before and after. `None` if it was never counted.
pub fn series(grouping: &Grouping, readings: &[Reading], event: usize) -> Option<Vec<f64>> {
    let line = Line::new(grouping, readings, event);
    let rate = |place: usize| {
        let size = line.size(place);
        let count = line.count(place).filter(|_| size > 0.0)?;
        Some((place, count / size))
    };
    let known: Vec<(usize, f64)> = (0..line.len()).filter_map(rate).collect();
    let (first, last) = (known.first()?, known.last()?);
    let mut next = 0;
    let mut all = Vec::with_capacity(line.len());
    for place in 0..line.len() {
        while known.get(next).is_some_and(|(at, _)| *at < place) {
            next += 1;
        }
        let after = known.get(next).unwrap_or(last);
        let before = next.checked_sub(1).and_then(|k| known.get(k)).unwrap_or(first);
        let rate = if after.0 <= place || before.0 >= after.0 {
            after.1
        } else {
            let along = (place - before.0) as f64 / (after.0 - before.0) as f64;
            before.1 + (after.1 - before.1) * along
        };
        all.push(line.count(place).unwrap_or(rate * line.size(place)));
    }
    Some(all)
}
