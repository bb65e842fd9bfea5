//! The fewest groups: bounds, and a bounded search between them.

use super::{Group, GroupError, place};
use crate::{Counters, Limit};

/// How many partial packings are tried before first fit's answer is taken.
const TRIES: u32 = 50_000;

/// What is packed into groups.
#[derive(Debug)]
pub(super) struct Packing<'a> {
    pub(super) counters: &'a Counters,
    pub(super) events: &'a [String],
    pub(super) anchors: usize,
}

impl Packing<'_> {
    fn names(&self, bin: &[usize]) -> Vec<&str> {
        let all = (0..self.anchors).chain(bin.iter().copied());
        all.filter_map(|event| self.events.get(event)).map(String::as_str).collect()
    }

    fn fits(&self, bin: &[usize]) -> bool {
        place(self.counters, &self.names(bin)).is_ok()
    }

    /// A bin as a group, if it is one.
    pub(super) fn group(&self, bin: Vec<usize>) -> Option<Group> {
        let places = place(self.counters, &self.names(&bin)).ok()?;
        Some(Group { events: (0..self.anchors).chain(bin).collect(), places })
    }

    /// Whether a unit fits a group of its own.
    pub(super) fn check(&self, unit: &[usize]) -> Result<(), GroupError> {
        let names = self.names(unit);
        let Err(k) = place(self.counters, &names) else { return Ok(()) };
        let event = names.get(k).copied().unwrap_or_default().to_owned();
        let why = self.counters.reason(&event);
        let together: Vec<String> =
            names.get(self.anchors..).unwrap_or_default().iter().map(|s| (*s).to_owned()).collect();
        if k < self.anchors || together.len() < 2 {
            let beside = names.iter().take(self.anchors).filter(|name| **name != event);
            let anchors = beside.map(|name| (*name).to_owned()).collect();
            return Err(GroupError::Impossible { event, anchors, why });
        }
        Err(GroupError::Conflict { event, together, why })
    }

    /// Bins of units, and whether fewer are impossible.
    pub(super) fn pack(&self, units: &[Vec<usize>]) -> (Vec<Vec<usize>>, bool) {
        // The hardest to place go first: large units, then those with few counters to choose from.
        let choices = |unit: &Vec<usize>| -> u32 {
            unit.iter().map(|&event| self.freedom(event)).min().unwrap_or(u32::MAX)
        };
        let mut order: Vec<usize> = (0..units.len()).collect();
        order.sort_by_key(|&k| (std::cmp::Reverse(units[k].len()), choices(&units[k])));
        let lower = self.lower_bound(units);
        let mut best = self.first_fit(units, &order);
        let mut tries = TRIES;
        while best.len() > lower {
            let mut bins: Vec<Vec<usize>> = Vec::new();
            if self.search(units, &order, best.len() - 1, &mut bins, &mut tries) {
                best = bins;
            } else {
                return (self.in_asked_order(best, units), tries > 0);
            }
        }
        (self.in_asked_order(best, units), true)
    }

    fn freedom(&self, event: usize) -> u32 {
        self.events.get(event).map_or(0, |name| self.counters.mask(name).count_ones())
    }

    /// Groups in the order in which the user first asked for one of their events.
    fn in_asked_order(&self, mut bins: Vec<Vec<usize>>, units: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let braces: Vec<&Vec<usize>> = units.iter().filter(|unit| unit.len() > 1).collect();
        for bin in &mut bins {
            // Within braces the user's order stays.
            if !braces.iter().any(|unit| *unit == bin) {
                bin.sort_unstable();
            }
        }
        bins.sort_by_key(|bin| bin.iter().min().copied());
        bins
    }

    fn first_fit(&self, units: &[Vec<usize>], order: &[usize]) -> Vec<Vec<usize>> {
        let mut bins: Vec<Vec<usize>> = Vec::new();
        for &k in order {
            let home = bins.iter_mut().find(|bin| self.fits(&joined(bin, &units[k])));
            match home {
                Some(bin) => *bin = joined(bin, &units[k]),
                None => bins.push(units[k].clone()),
            }
        }
        bins
    }

    /// Tries every way to pack the units in order into at most `most` bins.
    fn search(
        &self,
        units: &[Vec<usize>],
        order: &[usize],
        most: usize,
        bins: &mut Vec<Vec<usize>>,
        tries: &mut u32,
    ) -> bool {
        let Some((&k, rest)) = order.split_first() else { return true };
        for bin in 0..bins.len() {
            let with = joined(&bins[bin], &units[k]);
            // Two bins that hold the same kinds of unit would be tried twice; equal ones are not.
            if bins[..bin].contains(&bins[bin]) || !self.fits(&with) {
                continue;
            }
            if *tries == 0 {
                return false;
            }
            *tries -= 1;
            let before = std::mem::replace(&mut bins[bin], with);
            if self.search(units, rest, most, bins, tries) {
                return true;
            }
            bins[bin] = before;
        }
        if bins.len() >= most {
            return false;
        }
        // All empty bins are alike: one is enough to try.
        bins.push(units[k].clone());
        if self.search(units, rest, most, bins, tries) {
            return true;
        }
        bins.pop();
        false
    }

    /// No packing has fewer bins than this.
    fn lower_bound(&self, units: &[Vec<usize>]) -> usize {
        let mut distinct: Vec<usize> = units.iter().flatten().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        let mut bound = 1;
        for rule in &self.counters.rules {
            let Limit::Together(most) = rule.limit else { continue };
            let is_in = |event: usize| {
                let name = self.events.get(event).map_or("", String::as_str);
                rule.events.iter().any(|e| e == name)
                    && !self.counters.fixed.iter().any(|e| e == name)
            };
            let asked = distinct.iter().filter(|&&event| is_in(event)).count();
            let held = (0..self.anchors).filter(|&event| is_in(event)).count();
            let room = (most as usize).saturating_sub(held);
            if asked > 0 && room > 0 {
                bound = bound.max(asked.div_ceil(room));
            }
        }
        let masks: Vec<u64> = distinct.iter().filter_map(|&event| self.needs(event)).collect();
        let anchors: Vec<u64> = (0..self.anchors).filter_map(|event| self.needs(event)).collect();
        let mut groups = bound;
        while groups < masks.len() && !flows(&masks, &anchors, groups, self.counters.general) {
            groups += 1;
        }
        groups
    }

    /// The general counters that an event needs one of; none if it has a place elsewhere.
    fn needs(&self, event: usize) -> Option<u64> {
        let name = self.events.get(event)?;
        let elsewhere = self.counters.is_free(name) || self.counters.fixed.contains(name);
        (!elsewhere).then(|| self.counters.mask(name))
    }
}

fn joined(bin: &[usize], unit: &[usize]) -> Vec<usize> {
    let mut both = bin.to_vec();
    both.extend(unit.iter().copied().filter(|event| !bin.contains(event)));
    both
}

/// Whether the counters have room for all events over `groups` groups: each counter once a group,
/// each anchor in every group. Counters are filled by moving events along, as in a matching.
fn flows(masks: &[u64], anchors: &[u64], groups: usize, general: u32) -> bool {
    let counters = (general as usize).min(64);
    let repeated = anchors.iter().flat_map(|&mask| std::iter::repeat_n(mask, groups));
    let wanted: Vec<u64> = repeated.chain(masks.iter().copied()).collect();
    if wanted.len() > counters * groups {
        return false;
    }
    let mut held: Vec<Vec<usize>> = vec![Vec::new(); counters];
    (0..wanted.len()).all(|k| push(&wanted, k, groups, &mut held, &mut 0))
}

fn push(wanted: &[u64], k: usize, groups: usize, held: &mut [Vec<usize>], tried: &mut u64) -> bool {
    for counter in 0..held.len() {
        let bit = 1_u64 << counter;
        if wanted[k] & bit == 0 || *tried & bit != 0 {
            continue;
        }
        *tried |= bit;
        if held[counter].len() < groups {
            held[counter].push(k);
            return true;
        }
        for place in 0..held[counter].len() {
            let other = held[counter][place];
            if push(wanted, other, groups, held, tried) {
                held[counter][place] = k;
                return true;
            }
        }
    }
    false
}
