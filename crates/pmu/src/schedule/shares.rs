//! Shares that follow the spread that is observed.
//!
//! A total's relative error is its spread over the root of its slices. The sum of all errors is
//! least where slices go with the spread to the power of two thirds (Neyman's rule is for the sum of
//! their squares). A stratum is a group, and its spread the root mean square, over its events, of
//! the relative change of the rate from one of its slices to the next: what changes slowly is
//! followed by the estimators anyway.
//!
//! Events that are rarer than one in ten thousand cycles hardly matter for the time that passes, and
//! their spread is mostly chance: they would take all the turns and have no say.

use crate::Reading;

/// Slices of a group before its spread is believed.
const SLICES_MIN: f64 = 8.0;
/// The largest share: a group that is all noise must not starve the others.
const SHARE_MAX: f64 = 12.0;
/// The rate, in the first anchor, from which on an event has a say.
const RATED: f64 = 1e-4;
/// See above.
const POWER: f64 = 2.0 / 3.0;

#[derive(Clone, Debug, Default)]
struct Moments {
    n: f64,
    sum: f64,
    last: f64,
    /// Of squared steps from slice to slice.
    steps: f64,
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
            if moments.n > 0.0 {
                moments.steps += (rate - moments.last) * (rate - moments.last);
            }
            moments.n += 1.0;
            moments.sum += rate;
            moments.last = rate;
        }
    }

    /// The relative spread of a group; `None` while too little is known.
    fn of(group: &[Moments]) -> Option<f64> {
        let mut squares = 0.0;
        for moments in group {
            if moments.n < SLICES_MIN {
                return None;
            }
            let mean = moments.sum / moments.n;
            if mean >= RATED {
                // Two slices' noise is in a step.
                squares += moments.steps / (2.0 * (moments.n - 1.0)) / (mean * mean);
            }
        }
        Some((squares / group.len().max(1) as f64).sqrt())
    }

    /// New shares: the steadiest group has one slice, the others by their spread.
    pub(super) fn update(&self, shares: &mut [u32]) {
        let spreads: Option<Vec<f64>> = self.groups.iter().map(|group| Spread::of(group)).collect();
        let Some(spreads) = spreads else { return };
        let wanted: Vec<f64> = spreads.iter().map(|spread| spread.powf(POWER)).collect();
        let least = wanted.iter().copied().filter(|s| *s > 0.0).fold(f64::INFINITY, f64::min);
        if !least.is_finite() {
            return;
        }
        // The steadiest groups are so steady that all others would be at the limit: measure from
        // a part of the largest instead.
        let largest = wanted.iter().copied().fold(0.0, f64::max);
        let unit = least.max(largest / SHARE_MAX);
        for (share, wanted) in shares.iter_mut().zip(wanted) {
            *share = (wanted / unit).round().clamp(1.0, SHARE_MAX) as u32;
        }
    }
}
