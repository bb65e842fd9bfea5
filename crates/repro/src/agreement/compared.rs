//! A window as both cores counted it.

use model::event::{Counts, Event};
use serde::{Deserialize, Serialize};

/// Events rarer than this an instruction are not compared: a difference of one would be a large
/// share of them.
const RATE_MIN: f64 = 1e-3;

/// What both cores counted in a window, by the number of the event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    fast: Vec<u64>,
    reference: Vec<u64>,
}

/// Whether the cores could differ in an event, and it says something that the cycles do not.
///
/// What depends on the code alone is the same on both by construction: it would only flatter.
pub fn is_compared(event: Event) -> bool {
    let restates_cycles = [Event::Cycles, Event::ReferenceCycles, Event::PipelineSlots];
    !event.is_static() && !restates_cycles.contains(&event)
}

impl Compared {
    pub(super) fn new(fast: &Counts, reference: &Counts) -> Compared {
        Compared { fast: fast.0.to_vec(), reference: reference.0.to_vec() }
    }

    /// Both counts of an event, the one-pass core's first.
    pub fn counts(&self, event: Event) -> (u64, u64) {
        let of = |counts: &[u64]| counts.get(event as usize).copied().unwrap_or(0);
        (of(&self.fast), of(&self.reference))
    }

    /// The signed relative difference of an event; none where it is too rare.
    pub fn difference(&self, event: Event) -> Option<f64> {
        let (fast, reference) = self.counts(event);
        let (_, instructions) = self.counts(Event::Instructions);
        let is_common = reference as f64 >= RATE_MIN * instructions as f64 && reference > 0;
        is_common.then(|| fast as f64 / reference as f64 - 1.0)
    }

    /// The signed relative difference of the cycles, which is that of the CPI.
    pub fn cpi_difference(&self) -> Option<f64> {
        self.difference(Event::Cycles)
    }

    /// The signed relative differences of what is compared.
    pub fn differences(&self) -> impl Iterator<Item = (Event, f64)> {
        let compared = Event::ALL.iter().copied().filter(|event| is_compared(*event));
        compared.filter_map(|event| Some((event, self.difference(event)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_events_are_compared_and_rare_or_static_ones_are_not() {
        let (mut fast, mut reference) = (Counts::default(), Counts::default());
        for (event, ours, theirs) in [
            (Event::Instructions, 100_000, 100_000),
            (Event::Cycles, 51_000, 50_000),
            (Event::BranchMisses, 90, 100),
            (Event::L2LoadMisses, 0, 99),
        ] {
            fast[event] = ours;
            reference[event] = theirs;
        }
        let window = Compared::new(&fast, &reference);
        assert!((window.cpi_difference().unwrap() - 0.02).abs() < 1e-12);
        let all: Vec<_> = window.differences().collect();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].0, Event::BranchMisses);
        assert!((all[0].1 + 0.1).abs() < 1e-12);
    }
}
