//! The slices of a run, in bounded memory.

use pmu::Reading;

/// The group of a reading that nobody counted: time in which a counter was taken away, or in which
/// groups were being switched. Its anchors say how much passed.
pub const NOBODY: usize = u32::MAX as usize;

/// Slices kept before neighbours are put together. At the default slice this is minutes of run
/// time, and still thousands of slices an event afterwards.
const SLICES_MAX: usize = 1 << 16;

/// Readings in order of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    readings: Vec<Reading>,
}

impl History {
    pub(crate) fn extend(&mut self, readings: impl IntoIterator<Item = Reading>) {
        self.readings.extend(readings);
    }

    pub(crate) fn readings(&self) -> &[Reading] {
        &self.readings
    }

    /// Puts pairs of slices of the same group together once there are very many.
    pub(crate) fn shorten(&mut self) {
        if self.readings.len() > SLICES_MAX {
            self.readings = paired(std::mem::take(&mut self.readings));
        }
    }
}

/// Every two slices of a group as one, where the first of the two stood.
fn paired(readings: Vec<Reading>) -> Vec<Reading> {
    let mut waiting = std::collections::HashMap::<usize, usize>::new();
    let mut kept: Vec<Reading> = Vec::with_capacity(readings.len() / 2 + 1);
    for reading in readings {
        match waiting.remove(&reading.group).and_then(|place| kept.get_mut(place)) {
            Some(first) => {
                let sums = first.counts.iter_mut().zip(&reading.counts);
                sums.for_each(|(sum, count)| *sum = sum.saturating_add(*count));
            }
            None => {
                waiting.insert(reading.group, kept.len());
                kept.push(reading);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(group: usize, count: u64) -> Reading {
        Reading { group, round: 0, counts: vec![count] }
    }

    #[test]
    fn pairs_keep_every_groups_sum_and_order() {
        let kept = paired((0..9).map(|k| reading((k % 2) as usize, 10 + k)).collect());
        assert_eq!(
            kept,
            [
                reading(0, 10 + 12),
                reading(1, 11 + 13),
                reading(0, 14 + 16),
                reading(1, 15 + 17),
                reading(0, 18)
            ]
        );
    }
}
