//! One event along the slices of a run.

use crate::{Grouping, Reading};

/// An event's counts where they were taken, with the sizes of all slices.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Each slice's size by each anchor.
    pub(super) sizes: Vec<Vec<f64>>,
    /// Each slice's count, where the event was counted.
    pub(super) counts: Vec<Option<f64>>,
    /// What was counted.
    pub(super) counted: u64,
}

impl Line {
    pub(super) fn new(grouping: &Grouping, readings: &[Reading], event: usize) -> Line {
        let column = |group: &crate::Group| group.events.iter().position(|&e| e == event);
        let columns: Vec<Option<usize>> = grouping.groups.iter().map(column).collect();
        let mut line = Line::default();
        line.sizes.resize(grouping.anchors, Vec::with_capacity(readings.len()));
        for reading in readings {
            for (anchor, sizes) in line.sizes.iter_mut().enumerate() {
                sizes.push(reading.counts.get(anchor).map_or(0.0, |&size| size as f64));
            }
            let column = columns.get(reading.group).copied().flatten();
            let count = column.and_then(|column| reading.counts.get(column)).copied();
            line.counted = line.counted.saturating_add(count.unwrap_or(0));
            line.counts.push(count.map(|count| count as f64));
        }
        line
    }

    /// How many slices counted it.
    pub(super) fn slices(&self) -> usize {
        self.counts.iter().flatten().count()
    }

    /// The size of all slices and of those that counted, by an anchor.
    pub(super) fn sizes_of(&self, anchor: usize) -> (f64, f64) {
        let Some(sizes) = self.sizes.get(anchor) else {
            return (self.counts.len() as f64, self.slices() as f64);
        };
        let counted = sizes.iter().zip(&self.counts).filter(|(_, count)| count.is_some());
        (sizes.iter().sum(), counted.map(|(size, _)| size).sum())
    }

    /// The share of the first anchor in which the event was counted.
    pub(super) fn share(&self) -> f64 {
        let (all, counted) = self.sizes_of(0);
        if all > 0.0 { counted / all } else { 0.0 }
    }
}
