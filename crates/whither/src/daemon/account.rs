//! What became of everything, and what it cost: the numbers of one daemon's life.

use std::collections::BTreeMap;

use collect::Drained;
use vocab::Unplaced;

/// Sums over all drains.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Account {
    /// What the tables gave.
    pub(super) drained: Drained,
    /// Samples counted under an image.
    pub(super) stored: u64,
    /// Samples without an image, by reason.
    pub(super) unplaced: BTreeMap<Unplaced, u64>,
    /// Samples of the idle task; they are stored too.
    pub(super) idle: u64,
    /// Samples on pcs where delayed interrupts pile up; they are stored too.
    pub(super) blind: u64,
    /// Samples that two lives of a process number claim; they are stored with the later.
    pub(super) ambiguous: u64,
    /// Samples that were placed and then found no room, because the database took none for long.
    pub(super) dropped: u64,
    /// Drains, and how many of them a filling spill asked for.
    pub(super) drains: u64,
    pub(super) woken: u64,
    /// Drains that did not add up. Always 0, or something is wrong with us.
    pub(super) uneven: u64,
    /// Appends to the database, and how many failed.
    pub(super) flushes: u64,
    pub(super) failed_flushes: u64,
    /// Times that the wall clock was set, and by how much last.
    pub(super) clock_steps: u64,
    pub(super) last_step_s: f64,
    /// Records of maps that found no room.
    pub(super) lost_maps: u64,
    /// Images whose file could not be read when it was first seen.
    pub(super) vanished: u64,
}

impl Account {
    /// Adds a drain of which `placed` samples went somewhere.
    pub(super) fn add(&mut self, drained: &Drained, placed: u64) {
        self.drained.add(drained);
        self.drains += 1;
        // entries = stored + unplaced + lost
        let even = drained.adds_up() && drained.samples == placed;
        self.uneven += u64::from(!even);
    }

    pub(super) fn unplaced_total(&self) -> u64 {
        self.unplaced.values().sum()
    }

    /// Samples that found their entry in the table, as a share of all.
    pub(super) fn hit_rate(&self) -> Option<f64> {
        let entries = self.drained.entries;
        (entries > 0).then(|| 1.0 - self.drained.inserted as f64 / entries as f64)
    }

    /// Samples for each entry that reached the daemon.
    pub(super) fn aggregation(&self) -> Option<f64> {
        let handed = self.drained.handed;
        (handed > 0).then(|| self.drained.samples as f64 / handed as f64)
    }

    /// Whether entries = stored + unplaced + lost over the whole life, dropped samples being lost.
    pub(super) fn adds_up(&self) -> bool {
        let lost = self.drained.lost + self.dropped;
        self.uneven == 0 && self.drained.entries == self.stored + self.unplaced_total() + lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_adds_up_or_says_that_it_does_not() {
        let mut account = Account::default();
        let drained =
            Drained { entries: 10, inserted: 4, spilled: 1, lost: 2, samples: 8, handed: 4 };
        account.add(&drained, 8);
        account.stored = 7;
        account.unplaced.insert(Unplaced::UnknownAddress, 1);
        assert!(account.adds_up());
        assert_eq!((account.hit_rate(), account.aggregation()), (Some(0.6), Some(2.0)));
        account.add(&drained, 7);
        assert!(!account.adds_up());
    }
}
