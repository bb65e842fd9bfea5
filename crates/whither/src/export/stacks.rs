//! Stacks of places: recorded chains of calls where there are any, single places where not.

use std::collections::BTreeMap;

use vocab::{Count, Place};

use crate::sampled::Sampled;

/// Places, outermost first, with their samples. A frame without a place is `None`.
pub(super) struct Stacks {
    pub(super) list: Vec<(Vec<Option<Place>>, Count)>,
    pub(super) total: Count,
}

impl Stacks {
    pub(super) fn of(sampled: &Sampled) -> Stacks {
        let event = sampled.event;
        let mut leaves: BTreeMap<Place, Count> = BTreeMap::new();
        for (spot, &count) in sampled.profile.counts.iter().filter(|(s, _)| s.event == event) {
            if sampled.wants(spot.image) {
                *leaves.entry(spot.place()).or_default() += count;
            }
        }
        let mut list = Vec::new();
        for (stack, &count) in sampled.profile.stacks.iter().filter(|(s, _)| s.event == event) {
            // The sampled place itself is the innermost frame; a chain beyond what was counted
            // there belongs to an image that was not asked for.
            let leaf = stack.frames.first().copied().flatten();
            let Some(left) = leaf.and_then(|leaf| leaves.get_mut(&leaf)) else { continue };
            let taken = count.min(*left);
            *left = Count(left.0 - taken.0);
            if taken > Count::ZERO {
                list.push((stack.frames.iter().rev().copied().collect(), taken));
            }
        }
        let alone = leaves.into_iter().filter(|(_, count)| *count > Count::ZERO);
        list.extend(alone.map(|(place, count)| (vec![Some(place)], count)));
        let total = list.iter().map(|(_, count)| *count).sum();
        Stacks { list, total }
    }
}
