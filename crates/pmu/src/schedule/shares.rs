//! Shares that follow the spread that is observed.
//!
//! Neyman's rule: to know every total equally well, give each stratum slices in proportion to its
//! standard deviation. Here a stratum is a group, and its spread the root mean square, over its
//! events, of the relative standard deviation of counts per slice.

use crate::Reading;

/// Slices of a group before its spread is believed.
const SLICES_MIN: f64 = 8.0;
/// The largest share: a group that is all noise must not starve the others.
const SHARE_MAX: f64 = 8.0;

#[derive(Clone, Debug, Default)]
struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
}

/// What each group's events have shown so far.
#[derive(Clone, Debug)]
pub(super) struct Spread {
    groups: Vec<Vec<Moments>>,
}

impl Spread {
    pub(super) fn new(groups: usize) -> Spread {
        Spread { groups: vec![Vec::new(); groups] }
    }

    /// Rates per unit of the first anchor, so that slices of different lengths compare.
    pub(super) fn observe(&mut self, anchors: usize, reading: &Reading) {
        let Some(group) = self.groups.get_mut(reading.group) else { return };
        let Some(&size) = reading.counts.first().filter(|&&size| size > 0) else { return };
        let events = reading.counts.get(anchors..).unwrap_or_default();
        group.resize(events.len().max(group.len()), Moments::default());
        for (moments, &count) in group.iter_mut().zip(events) {
            let rate = count as f64 / size as f64;
            moments.n += 1.0;
            moments.sum += rate;
            moments.squares += rate * rate;
        }
    }

    /// The relative spread of a group; `None` while too little is known.
    fn of(group: &[Moments]) -> Option<f64> {
        let mut squares = Vec::new();
        for moments in group {
            if moments.n < SLICES_MIN {
                return None;
            }
            let mean = moments.sum / moments.n;
            if mean > 0.0 {
                squares.push((moments.squares / moments.n / (mean * mean) - 1.0).max(0.0));
            }
        }
        let count = squares.len();
        (count > 0).then(|| (squares.iter().sum::<f64>() / count as f64).sqrt())
    }

    /// New shares: the steadiest group has one slice, the others in proportion to their spread.
    pub(super) fn update(&self, shares: &mut [u32]) {
        let spreads: Option<Vec<f64>> = self.groups.iter().map(|group| Spread::of(group)).collect();
        let Some(spreads) = spreads else { return };
        let least = spreads.iter().copied().filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min);
        if !least.is_finite() {
            return;
        }
        // The steadiest groups are so steady that all others would be at the limit: measure from
        // an eighth of the largest instead.
        let largest = spreads.iter().copied().fold(0.0, f64::max);
        let unit = least.max(largest / SHARE_MAX);
        for (share, spread) in shares.iter_mut().zip(spreads) {
            *share = (spread / unit).round().clamp(1.0, SHARE_MAX) as u32;
        }
    }
}
