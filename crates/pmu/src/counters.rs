//! What the counters of a core can do, as a value.

use std::fmt;

/// The counters that exist and what keeps events from sharing them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Counters that take any event, rules apart.
    pub general: u32,
    /// Events that have a counter of their own.
    pub fixed: Vec<String>,
    /// Events that need no counter, such as the kernel's own.
    pub free: Vec<String>,
    /// What not every counter can count, and what cannot be counted together.
    pub rules: Vec<Rule>,
}

/// One thing that the counters cannot do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The events that it is about.
    pub events: Vec<String>,
    /// What it says of them.
    pub limit: Limit,
    /// Where the fact comes from.
    pub source: String,
}

/// What a rule says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Only these general counters can count any of the events.
    Only(Vec<u32>),
    /// At most so many of the events can be counted at one time: a shared resource, or with one, a
    /// conflict.
    Together(u32),
}

/// Where an event is counted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Counter {
    /// One that only ever counts one event.
    Fixed(u32),
    /// One that takes most events.
    General(u32),
    /// None is needed.
    Free,
}

impl Counters {
    /// Alike counters without a rule.
    pub fn alike(general: u32) -> Counters {
        Counters { general, ..Counters::default() }
    }

    /// The general counters that can count an event, as a mask.
    pub(crate) fn mask(&self, event: &str) -> u64 {
        let all = if self.general >= 64 { u64::MAX } else { (1 << self.general) - 1 };
        self.rules_on(event).fold(all, |mask, rule| match &rule.limit {
            Limit::Only(counters) => {
                mask & counters.iter().filter(|&&k| k < 64).fold(0, |m, &k| m | 1 << k)
            }
            Limit::Together(_) => mask,
        })
    }

    pub(crate) fn rules_on(&self, event: &str) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.events.iter().any(|name| name == event))
    }

    pub(crate) fn is_free(&self, event: &str) -> bool {
        self.free.iter().any(|name| name == event)
    }

    /// Why an event is hard to place, in words.
    pub(crate) fn reason(&self, event: &str) -> String {
        let mut reasons: Vec<String> = self.rules_on(event).map(Rule::to_string).collect();
        reasons.push(match self.general {
            0 => "there is no general counter".into(),
            1 => "there is one general counter".into(),
            n => format!("there are {n} general counters"),
        });
        reasons.join("; ")
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.events.join(", ");
        match &self.limit {
            Limit::Only(counters) => {
                let list: Vec<String> = counters.iter().map(u32::to_string).collect();
                write!(f, "{names}: counter {} only", list.join(" or "))?;
            }
            Limit::Together(count) => write!(f, "at most {count} of {names} at one time")?,
        }
        if self.source.is_empty() { Ok(()) } else { write!(f, " ({})", self.source) }
    }
}
