//! How the kernel's groups and the grouping's events correspond.

use std::collections::BTreeMap;

use pmu::{Grouping, Reading};
use vocab::{Event, EventCode};

use crate::bank::Delta;
use crate::capacity::TIME;
use crate::history::NOBODY;
use crate::name::full_name;

/// A grouping with the events that the kernel is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) grouping: Grouping,
    /// The events that are opened, group by group: all but the time.
    pub(crate) opened: Vec<Vec<Event>>,
    /// The time's place among the anchors.
    time: Option<usize>,
}

impl Layout {
    pub(crate) fn new(grouping: Grouping, events: &BTreeMap<String, Event>) -> Layout {
        let mut opened = Vec::with_capacity(grouping.groups.len());
        for group in &grouping.groups {
            let names = group.events.iter().filter_map(|&event| grouping.events.get(event));
            opened.push(names.filter_map(|name| events.get(name)).cloned().collect());
        }
        let time = grouping.find(TIME).filter(|&place| place < grouping.anchors);
        Layout { opened, time, grouping }
    }

    /// Whether the event of this name has this code.
    pub(crate) fn has_code(&self, name: &str, code: &EventCode) -> bool {
        self.opened.iter().flatten().any(|event| event.code == *code && full_name(event) == name)
    }

    /// A slice as estimators want it: every event's count, with the time in its place.
    pub(crate) fn reading(&self, group: usize, round: u64, delta: &Delta) -> Reading {
        let mut counts = delta.counts.clone();
        if let Some(time) = self.time.filter(|&time| time <= counts.len()) {
            counts.insert(time, delta.running_ns);
        }
        Reading { group, round, counts }
    }

    /// An anchor's count in a delta.
    pub(crate) fn anchor(&self, place: usize, delta: &Delta) -> u64 {
        match self.time {
            Some(time) if time == place => delta.running_ns,
            Some(time) if time < place => delta.counts.get(place - 1).copied().unwrap_or(0),
            _ => delta.counts.get(place).copied().unwrap_or(0),
        }
    }

    /// Time that nobody counted; the other anchors as they went with time in all slices so far.
    pub(crate) fn gap(&self, round: u64, gap_ns: u64, so_far: &[u64]) -> Reading {
        let sum = |place: usize| so_far.get(place).map_or(0.0, |&count| count as f64);
        let time_ns = self.time.map_or(0.0, sum);
        let count = |place: usize| match self.time {
            Some(time) if time == place => gap_ns,
            _ if time_ns > 0.0 => (sum(place) / time_ns * gap_ns as f64).round() as u64,
            _ => 0,
        };
        Reading { group: NOBODY, round, counts: (0..self.grouping.anchors).map(count).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmu::Counters;

    fn layout() -> Layout {
        let counters = Counters { free: vec![TIME.into()], ..Counters::alike(2) };
        let units = [vec!["a".to_owned()], vec!["b".to_owned()]];
        let grouping = pmu::group(&counters, &["cycles", TIME], &units).unwrap();
        Layout::new(grouping, &BTreeMap::new())
    }

    #[test]
    fn the_time_stands_where_the_anchors_have_it() {
        let delta = Delta { counts: vec![100, 7], enabled_ns: 60, running_ns: 50 };
        let layout = layout();
        let reading = layout.reading(1, 3, &delta);
        assert_eq!((reading.group, reading.round, reading.counts), (1, 3, vec![100, 50, 7]));
        assert_eq!((layout.anchor(0, &delta), layout.anchor(1, &delta)), (100, 50));
    }

    #[test]
    fn a_gap_has_anchors_in_proportion_and_no_group() {
        let layout = layout();
        let gap = layout.gap(0, 10, &[100, 50]);
        assert_eq!((gap.group, gap.counts), (NOBODY, vec![20, 10]));
    }
}
