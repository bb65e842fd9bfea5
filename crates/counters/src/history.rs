//! The slices of a run, in bounded memory.

use pmu::Reading;

/// The group of a reading that nobody counted: time in which a counter was taken away, or in which
/// groups were being switched. Its anchors say how much passed.
pub const NOBODY: usize = u32::MAX as usize;

/// Slices kept before neighbours are put together. At the default slice this is minutes of run
/// time, and still thousands of slices an event afterwards.
const SLICES_MAX: usize = 1 << 16;

/// Readings in order of time. A position is where something began to be looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    readings: Vec<Reading>,
    /// How many readings were forgotten, so that positions stay meaningful.
    forgotten: usize,
}

impl History {
    pub(crate) fn extend(&mut self, readings: impl IntoIterator<Item = Reading>) {
        self.readings.extend(readings);
    }

    /// Everything from here on is later.
    pub(crate) fn position(&self) -> usize {
        self.forgotten + self.readings.len()
    }

    /// What came since a position; nought is the beginning.
    pub(crate) fn since(&self, position: usize) -> &[Reading] {
        self.readings.get(position.saturating_sub(self.forgotten)..).unwrap_or_default()
    }

    /// Forgets what came before a position.
    pub(crate) fn forget_before(&mut self, position: usize) {
        let count = position.saturating_sub(self.forgotten).min(self.readings.len());
        self.readings.drain(..count);
        self.forgotten += count;
    }

    /// Puts pairs of slices of the same group together once there are very many after a position,
    /// which must be the last that anybody holds.
    pub(crate) fn shorten_after(&mut self, position: usize) {
        let kept = position.saturating_sub(self.forgotten).min(self.readings.len());
        if self.readings.len() - kept > SLICES_MAX {
            let tail = self.readings.split_off(kept);
            self.readings.extend(paired(tail));
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

    #[test]
    fn positions_survive_forgetting() {
        let mut history = History::default();
        history.extend((0..5).map(|k| reading(0, k)));
        let middle = history.position();
        history.extend((5..8).map(|k| reading(0, k)));
        history.forget_before(3);
        assert_eq!(history.since(middle).len(), 3);
        assert_eq!(history.since(middle)[0].counts, [5]);
        assert_eq!(history.position(), 8);
    }
}
