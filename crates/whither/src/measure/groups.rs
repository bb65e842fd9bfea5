//! Which events are counted in which run.

use super::quantity::{Choice, Quantity};
use crate::cli::MeasureJob;
use crate::failure::{Failure, USAGE};

/// Counters at a time where nobody says otherwise: what the smaller PMUs of today have.
const COUNTERS: usize = 4;
/// Each event is read at least so often: one reading has no uncertainty.
pub(super) const READINGS_MIN: usize = 2;

/// Events that take turns. Every quantity is in `always` or in one of the groups.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Measured in every run: the measurand, and whatever needs no counter.
    pub(super) always: Vec<usize>,
    /// Measured in turns.
    pub(super) groups: Vec<Vec<usize>>,
}

impl Turns {
    /// Divides what needs a counter into groups that fit beside the measurand, so that nothing
    /// multiplexes.
    pub(super) fn plan(choice: &Choice, job: &MeasureJob) -> Result<Turns, Failure> {
        let counters = match (job.counters, &job.model) {
            (Some(counters), _) => counters,
            // A modelled core counts everything at once.
            (None, Some(_)) => usize::MAX,
            (None, None) => COUNTERS,
        };
        let taken = usize::from(choice.measurand().is_some_and(Quantity::needs_counter));
        let places = 0..choice.quantities.len();
        let in_turns = |place: &usize| {
            *place != choice.measurand
                && choice.quantities.get(*place).is_some_and(Quantity::needs_counter)
        };
        let (turns, always): (Vec<usize>, Vec<usize>) = places.partition(in_turns);
        let each = counters.saturating_sub(taken).max(1);
        let plan = match turns.len() <= each {
            true => Turns { always: [always, turns].concat(), groups: vec![Vec::new()] },
            false => Turns { always, groups: divided(&turns, each) },
        };
        let least = (READINGS_MIN * plan.groups.len()) as u64;
        match job.runs {
            Some(runs) if runs < least => Err(Failure::new(
                USAGE,
                format!(
                    "{runs} runs are too few: {} groups of events take turns, twice each at least",
                    plan.groups.len()
                ),
            )
            .remedy(format!("ask for --runs {least} or more, or for fewer events"))),
            _ => Ok(plan),
        }
    }

    /// What is measured in a run of a group.
    pub(super) fn of(&self, group: usize) -> impl Iterator<Item = usize> {
        self.always.iter().chain(self.groups.get(group).into_iter().flatten()).copied()
    }

    /// How many runs in all once the measurand needs `runs`: a multiple of that, enough for every
    /// group, and two groups of runs to compare where events take turns.
    pub(super) fn in_all(&self, runs: usize) -> usize {
        let least = if self.groups.len() > 1 { 2 } else { 1 };
        runs * least.max((READINGS_MIN * self.groups.len()).div_ceil(runs.max(1)))
    }
}

/// As few groups as there can be, as even as can be, neighbours together: what is named side by
/// side is often divided by one another, and a ratio is sharper where both were counted at once.
fn divided(events: &[usize], each: usize) -> Vec<Vec<usize>> {
    let count = events.len().div_ceil(each.max(1)).max(1);
    let start = |group: usize| group * events.len() / count;
    let group = |group: usize| events.get(start(group)..start(group + 1)).unwrap_or_default();
    (0..count).map(|number| group(number).to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_events_beside_one_on_four_counters_make_three_groups() {
        let groups = divided(&(1..=9).collect::<Vec<_>>(), 3);
        assert_eq!(groups.len(), 3);
        assert!(groups.iter().all(|group| group.len() == 3));
        assert_eq!(groups.concat(), (1..=9).collect::<Vec<_>>());
        let uneven = divided(&(1..=10).collect::<Vec<_>>(), 3);
        assert_eq!(uneven.iter().map(Vec::len).collect::<Vec<_>>(), [2, 3, 2, 3]);
    }

    #[test]
    fn runs_in_all_are_a_multiple_and_enough_for_every_group() {
        let turns = |groups| Turns { always: vec![0], groups: vec![vec![1]; groups] };
        // The paper: three runs for the measurand, six partitions: six executions, two groups.
        assert_eq!(turns(3).in_all(3), 6);
        assert_eq!(turns(3).in_all(5), 10);
        assert_eq!(turns(1).in_all(7), 7);
        assert_eq!(turns(9).in_all(5), 20);
        assert_eq!(turns(2).in_all(30), 60);
    }
}
