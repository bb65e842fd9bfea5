//! One event along the slices of a run.

use crate::{Grouping, Reading};

/// Which slices each group had: looked for once, for all of a run's events.
#[derive(Debug)]
pub(super) struct Turns {
    of_group: Vec<Vec<usize>>,
    /// Cycles of all slices.
    cycles: f64,
}

impl Turns {
    pub(super) fn new(grouping: &Grouping, readings: &[Reading]) -> Turns {
        let mut turns = Turns { of_group: vec![Vec::new(); grouping.groups.len()], cycles: 0.0 };
        for (place, reading) in readings.iter().enumerate() {
            turns.cycles += cycles(grouping, reading);
            if let Some(places) = turns.of_group.get_mut(reading.group) {
                places.push(place);
            }
        }
        turns
    }

    /// The slices of all groups that count an event, in order.
    fn of(&self, grouping: &Grouping, event: usize) -> Vec<usize> {
        let of_group = |group: usize| self.of_group.get(group).into_iter().flatten();
        let mut places: Vec<usize> =
            grouping.groups_of(event).flat_map(of_group).copied().collect();
        places.sort_unstable();
        places
    }
}

/// Without an anchor every slice counts alike.
fn cycles(grouping: &Grouping, reading: &Reading) -> f64 {
    let cycles = if grouping.anchors > 0 { reading.counts.first() } else { None };
    cycles.map_or(1.0, |&cycles| cycles as f64)
}

/// An event's counts where they were taken.
#[derive(Debug)]
pub(super) struct Line<'a> {
    readings: &'a [Reading],
    /// The event's place in each group.
    columns: Vec<Option<usize>>,
    /// The slices that counted it.
    places: Vec<usize>,
    seen: usize,
    /// What was counted.
    pub(super) counted: u64,
    /// Cycles of all slices, and of those that counted.
    pub(super) cycles: (f64, f64),
}

impl<'a> Line<'a> {
    pub(super) fn new(
        grouping: &Grouping,
        readings: &'a [Reading],
        turns: &Turns,
        event: usize,
    ) -> Line<'a> {
        let column = |group: &crate::Group| group.events.iter().position(|&e| e == event);
        let columns: Vec<Option<usize>> = grouping.groups.iter().map(column).collect();
        let (places, seen, counted) = (Vec::new(), 0, 0_u64);
        let mut line =
            Line { readings, columns, places, seen, counted, cycles: (turns.cycles, 0.0) };
        for place in turns.of(grouping, event) {
            if let (Some(count), Some(reading)) = (line.at(place), readings.get(place)) {
                line.places.push(place);
                line.seen += usize::from(count > 0);
                line.counted = line.counted.saturating_add(count);
                line.cycles.1 += cycles(grouping, reading);
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
        self.places.len()
    }

    /// Which.
    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.places.iter().copied()
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
