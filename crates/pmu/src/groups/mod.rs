//! Any list of events, split into the fewest groups that the counters allow.
//!
//! ```text
//! anchors: cycles, instructions           group 0   cycles instructions | a b c d
//! units:   a  b  {c d}  e  f       ──►    group 1   cycles instructions | e f
//! counters: 2 fixed, 4 general            every group can be counted at one time
//! ```
//!
//! A lower bound comes from the counters' capacity (a flow), an upper bound from first fit; where
//! they differ, a bounded search looks in between and says whether it could finish.

mod matching;
mod search;

pub use matching::place;

use std::fmt;

use crate::{Counter, Counters};
use search::Packing;

/// Events that share the counters at one time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// Places in [`Grouping::events`]; the anchors come first.
    pub events: Vec<usize>,
    /// The counter of each.
    pub places: Vec<Counter>,
}

/// All events, and the groups that take turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grouping {
    /// Every event once: the anchors, then the others in the order they were asked for.
    pub events: Vec<String>,
    /// How many of the events are anchors, counted in every group.
    pub anchors: usize,
    /// The groups.
    pub groups: Vec<Group>,
    /// Whether fewer groups are known to be impossible.
    pub is_fewest: bool,
}

impl Grouping {
    /// The groups that count an event; all of them for an anchor.
    pub fn groups_of(&self, event: usize) -> impl Iterator<Item = usize> {
        let has = move |group: &Group| group.events.contains(&event);
        self.groups.iter().enumerate().filter(move |(_, g)| has(g)).map(|(k, _)| k)
    }

    /// The place of an event of this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.events.iter().position(|event| event == name)
    }
}

/// Why events cannot be grouped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupError {
    /// The event cannot be counted, even with nothing but the anchors beside it.
    Impossible {
        /// The event.
        event: String,
        /// What is counted in every group.
        anchors: Vec<String>,
        /// The constraint.
        why: String,
    },
    /// The events of one pair of braces cannot be counted together.
    Conflict {
        /// The first that finds no counter.
        event: String,
        /// All of the braces.
        together: Vec<String>,
        /// The constraint.
        why: String,
    },
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GroupError::Impossible { event, anchors, why } if anchors.is_empty() => {
                write!(f, "{event} cannot be counted: {why}")
            }
            GroupError::Impossible { event, anchors, why } => {
                write!(f, "{event} cannot be counted beside {}: {why}", anchors.join(" and "))
            }
            GroupError::Conflict { event, together, why } => {
                write!(f, "{event} cannot be counted within {{{}}}: {why}", together.join(","))
            }
        }
    }
}

impl std::error::Error for GroupError {}

/// Splits events into groups.
///
/// `anchors` are counted in every group. Each unit is one event, or several that must stay
/// together. An event that is asked for again outside braces is counted once.
///
/// # Errors
///
/// An event or a pair of braces that no group can hold, with the constraint.
pub fn group(
    counters: &Counters,
    anchors: &[&str],
    units: &[Vec<String>],
) -> Result<Grouping, GroupError> {
    let mut events: Vec<String> = Vec::new();
    for anchor in anchors {
        if !events.iter().any(|event| event == anchor) {
            events.push((*anchor).to_owned());
        }
    }
    let anchors = events.len();
    let mut packed: Vec<Vec<usize>> = Vec::new();
    let mut seen_alone = Vec::new();
    let mut in_order: Vec<&Vec<String>> = units.iter().filter(|unit| unit.len() > 1).collect();
    in_order.extend(units.iter().filter(|unit| unit.len() == 1));
    // Names keep the user's order even though braces are packed first.
    for name in units.iter().flatten() {
        if !events.iter().any(|event| event == name) {
            events.push(name.clone());
        }
    }
    for unit in in_order {
        let mut places: Vec<usize> = Vec::new();
        for name in unit {
            let place = events.iter().position(|event| event == name).unwrap_or(0);
            if place >= anchors && !places.contains(&place) {
                places.push(place);
            }
        }
        if unit.len() == 1 && places.iter().all(|place| seen_alone.contains(place)) {
            continue;
        }
        seen_alone.extend(&places);
        if !places.is_empty() {
            packed.push(places);
        }
    }
    let packing = Packing { counters, events: &events, anchors };
    for unit in &packed {
        packing.check(unit)?;
    }
    if packed.is_empty() {
        packing.check(&[])?;
        packed.push(Vec::new());
    }
    let (bins, is_fewest) = packing.pack(&packed);
    let groups = bins.into_iter().filter_map(|bin| packing.group(bin)).collect();
    Ok(Grouping { anchors, groups, is_fewest, events })
}

#[cfg(test)]
mod tests;
