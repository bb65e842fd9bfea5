//! An event over time.

use super::explain::Pieces;
use super::frame::Frame;
use super::integrate::walk_part;
use super::line::Line;
use crate::{Grouping, Reading};

/// Slices that must have counted an event before the anchors are asked to explain it.
const SLICES_MIN: usize = 20;

/// What a line over instructions per cycle may leave of the squared steps and be used.
const EXPLAINED_MAX: f64 = 0.7;

/// An event's count in every slice: as counted where it was, else interpolated between the rates
/// (per cycle) of the slices that counted before and after. Where instructions per cycle explain a
/// part of the event, only the rest is interpolated. `None` if it was never counted.
///
/// A slice that saw none does not mean that its neighbours had none, so rates are smoothed over
/// three slices before they are interpolated.
pub fn series(grouping: &Grouping, readings: &[Reading], event: usize) -> Option<Vec<f64>> {
    let line = Line::new(grouping, readings, event);
    let groups: Vec<usize> = grouping.groups_of(event).collect();
    let frame = Frame::new(readings, &groups);
    let places: Vec<usize> = frame.nodes().map(|(place, _)| place).collect();
    let rates: Vec<f64> =
        frame.nodes().map(|(place, size)| line.count(place).unwrap_or(0.0) / size).collect();
    if rates.is_empty() {
        return None;
    }
    let pieces =
        Pieces::new(&frame, readings, grouping.anchors).filter(|_| rates.len() >= SLICES_MIN);
    let steps = |list: &[f64]| list.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum::<f64>();
    let fitted = pieces.map(|pieces| pieces.explained_everywhere(&rates, readings));
    // A line that explains little only adds its own error.
    let (left, explained) = fitted
        .filter(|(left, _)| steps(left) < EXPLAINED_MAX * steps(&rates))
        .unwrap_or_else(|| (rates.clone(), vec![0.0; readings.len()]));
    let squares: Vec<f64> = left.windows(2).map(|w| (w[1] - w[0]).powi(2)).collect();
    let walk = if squares.len() >= SLICES_MIN { walk_part(&squares, &frame.lags) } else { 0.0 };
    let smooth = smoothed(&left, walk);
    let highest = rates.iter().copied().fold(0.0, f64::max);
    let mut next = 0;
    let mut all = Vec::with_capacity(line.len());
    for (place, explained) in explained.into_iter().enumerate() {
        while places.get(next).is_some_and(|at| *at < place) {
            next += 1;
        }
        let after = next.min(places.len() - 1);
        let before = next.saturating_sub(1);
        let (from, to) = (places[before], places[after]);
        let along = match to.checked_sub(from) {
            Some(gap) if gap > 0 => (place.saturating_sub(from) as f64 / gap as f64).min(1.0),
            _ => 0.0,
        };
        let rate = explained + smooth[before] + (smooth[after] - smooth[before]) * along;
        // A rate beyond any that was seen is the fit's doing, and none is below 0.
        let predicted = rate.clamp(0.0, highest) * line.size(place);
        all.push(line.count(place).unwrap_or(predicted));
    }
    Some(all)
}

/// Half of each and a quarter of either neighbour for noise, each alone for a walk.
fn smoothed(rates: &[f64], walk: f64) -> Vec<f64> {
    let last = rates.len().saturating_sub(1);
    let own = 0.5 + 0.5 * walk;
    let smooth = |k: usize| {
        let (before, after) = (rates[k.saturating_sub(1)], rates[(k + 1).min(last)]);
        own * rates[k] + (1.0 - own) / 2.0 * (before + after)
    };
    (0..rates.len()).map(smooth).collect()
}
