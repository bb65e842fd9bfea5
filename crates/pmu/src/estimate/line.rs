//! One event along the slices of a run.

use crate::{Grouping, Reading};

/// An event's counts where they were taken.
#[derive(Debug)]
pub(super) struct Line<'a> {
    readings: &'a [Reading],
    /// The event's place in each group.
    columns: Vec<Option<usize>>,
    slices: usize,
    seen: usize,
    /// What was counted.
    pub(super) counted: u64,
    /// Cycles of all slices, and of those that counted.
    pub(super) cycles: (f64, f64),
}

impl<'a> Line<'a> {
    pub(super) fn new(grouping: &Grouping, readings: &'a [Reading], event: usize) -> Line<'a> {
        let column = |group: &crate::Group| group.events.iter().position(|&e| e == event);
        let columns: Vec<Option<usize>> = grouping.groups.iter().map(column).collect();
        let (slices, seen, counted, cycles) = (0, 0, 0_u64, (0.0, 0.0));
        let mut line = Line { readings, columns, slices, seen, counted, cycles };
        for (place, reading) in readings.iter().enumerate() {
            // Without an anchor every slice counts alike.
            let cycles = if grouping.anchors > 0 { reading.counts.first() } else { None };
            let cycles = cycles.map_or(1.0, |&cycles| cycles as f64);
            line.cycles.0 += cycles;
            if let Some(count) = line.at(place) {
                line.slices += 1;
                line.seen += usize::from(count > 0);
                line.counted = line.counted.saturating_add(count);
                line.cycles.1 += cycles;
            }
        }
        line
    }

    fn at(&self, place: usize) -> Option<u64> {
        let reading = self.readings.get(place)?;
        let column = self.columns.get(reading.group).copied().flatten()?;
        reading.counts.get(column).copied()
    }

    /// The count of a slice, where the event was counted.
    pub(super) fn count(&self, place: usize) -> Option<f64> {
        self.at(place).map(|count| count as f64)
    }

    /// A slice's cycles.
    pub(super) fn size(&self, place: usize) -> f64 {
        let cycles = self.readings.get(place).and_then(|reading| reading.counts.first());
        cycles.map_or(0.0, |&cycles| cycles as f64)
    }

    /// How many slices there are.
    pub(super) fn len(&self) -> usize {
        self.readings.len()
    }

    /// How many slices counted it.
    pub(super) fn slices(&self) -> usize {
        self.slices
    }

    /// In how many of them it was there to be counted.
    pub(super) fn seen(&self) -> usize {
        self.seen
    }

    /// The share of cycles in which the event was counted.
    pub(super) fn share(&self) -> f64 {
        let (all, counted) = self.cycles;
        if all > 0.0 { counted / all } else { 0.0 }
    }
}
