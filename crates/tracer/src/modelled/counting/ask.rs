//! What is to be counted, and how turns are given.

use std::fmt;
use std::path::PathBuf;

use model::event::Event;
use model::machine::Machine;
use pmu::schedule::{Early, Order, Plan};
use pmu::{Group, GroupError, Grouping};

use crate::modelled::ModelAsk;

/// A modelled core whose counters take turns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountAsk {
    /// The core; only the one-pass core counts.
    pub model: ModelAsk,
    /// Events and groups, by the names of the modelled core's events.
    pub grouping: Grouping,
    /// How turns are given.
    pub plan: Plan,
    /// The anchor whose count ends a slice.
    pub boundary: usize,
    /// The directory that every process writes its log to.
    pub logs: PathBuf,
}

/// Why something cannot be counted on a modelled core.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CountError {
    /// The machine file cannot be read.
    Machine(String),
    /// It counts nothing of that name.
    Event {
        /// As asked for.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// The events do not fit the counters.
    Group(GroupError),
    /// A counter would wrap within a slice.
    Wraps {
        /// The slice.
        slice: u64,
        /// The counters' width.
        width_bits: u32,
    },
}

impl fmt::Display for CountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CountError::Machine(why) => f.write_str(why),
            CountError::Event { name, nearest: Some(near) } => {
                write!(f, "the modelled core has no event '{name}'; did you mean '{near}'?")
            }
            CountError::Event { name, nearest: None } => {
                write!(f, "the modelled core has no event '{name}'")
            }
            CountError::Group(why) => why.fmt(f),
            CountError::Wraps { slice, width_bits } => write!(
                f,
                "a counter of {width_bits} bits may wrap within a slice of {slice}; ask for a \
                 shorter one"
            ),
        }
    }
}

impl std::error::Error for CountError {}

/// No event happens more often than this in a cycle, nor in an instruction.
const PER_CYCLE_MAX: u64 = 16;

impl CountAsk {
    /// Groups events on a machine. Each unit is one event or several that stay together; `boundary`
    /// ends slices of `slice` and is an anchor beside cycles and instructions.
    ///
    /// # Errors
    ///
    /// An event is not known, does not fit, or a slice is too long for the counters.
    pub fn new(
        model: ModelAsk,
        units: &[Vec<String>],
        boundary: &str,
        slice: u64,
        seed: u64,
        logs: PathBuf,
    ) -> Result<CountAsk, CountError> {
        let machine = Machine::load(&model.name, &model.machine, &[])
            .map_err(|error| CountError::Machine(error.to_string()))?;
        let asked = units.iter().flatten().map(String::as_str).chain([boundary]);
        if let Some(name) = asked.into_iter().find(|name| Event::named(name).is_none()) {
            let names = Event::ALL.iter().map(|event| event.name());
            let nearest = pmu::nearest(name, names).map(str::to_owned);
            return Err(CountError::Event { name: name.to_owned(), nearest });
        }
        let width_bits = machine.pmu.width_bits;
        if width_bits < 64 && slice.saturating_mul(PER_CYCLE_MAX) >> width_bits > 0 {
            return Err(CountError::Wraps { slice, width_bits });
        }
        let counters = model::pmu::counters(&machine.pmu);
        let anchors = ["cycles", "instructions", boundary];
        let grouping = pmu::group(&counters, &anchors, units).map_err(CountError::Group)?;
        let boundary = grouping.find(boundary).unwrap_or(0);
        let plan = Plan::even(grouping.groups.len(), slice, seed);
        Ok(CountAsk { model, grouping, plan, boundary, logs })
    }

    /// As text, the machine and the core left out.
    pub(crate) fn to_text(&self) -> String {
        let numbers =
            |list: &[usize]| list.iter().map(usize::to_string).collect::<Vec<String>>().join(",");
        let Plan { slice, opening, shares, order, adapts, early } = &self.plan;
        let order = match order {
            Order::Fixed => "fixed".to_owned(),
            Order::Permuted { seed } => seed.to_string(),
        };
        let widened =
            |shares: &[u32]| shares.iter().map(|&share| share as usize).collect::<Vec<_>>();
        let mut text = format!(
            "events {}\nanchors {}\nboundary {}\nslice {slice}\nopening {}\nshares {}\norder \
             {order}\nadapts {}\nlogs {}\n",
            self.grouping.events.join(","),
            self.grouping.anchors,
            self.boundary,
            opening.unwrap_or(0),
            numbers(&widened(shares)),
            u8::from(*adapts),
            self.logs.display()
        );
        if let Some(Early { until, shares }) = early {
            text.push_str(&format!("early {until},{}\n", numbers(&widened(shares))));
        }
        for group in &self.grouping.groups {
            text.push_str(&format!("group {}\n", numbers(&group.events)));
        }
        text
    }

    /// From such text and the core; `None` if it makes no sense.
    pub(crate) fn from_text(text: &str, model: ModelAsk) -> Option<CountAsk> {
        let value =
            |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let numbers = |list: &str| -> Option<Vec<usize>> {
            list.split(',').map(|number| number.parse().ok()).collect()
        };
        let number = |name: &str| value(name)?.parse::<u64>().ok();
        let group = |line: &str| -> Option<Option<Group>> {
            let list = line.strip_prefix("group ")?;
            Some(numbers(list).map(|events| Group { events, places: Vec::new() }))
        };
        let events: Vec<String> = value("events")?.split(',').map(str::to_owned).collect();
        let groups: Option<Vec<Group>> = text.lines().filter_map(group).collect();
        let groups = groups.filter(|list| {
            !list.is_empty() && list.iter().flat_map(|g| &g.events).all(|&e| e < events.len())
        })?;
        let narrowed =
            |shares: Vec<usize>| shares.into_iter().map(|share| share as u32).collect::<Vec<u32>>();
        let shares = narrowed(numbers(value("shares")?)?);
        let early = match value("early") {
            None => None,
            Some(list) => {
                let mut shares = numbers(list)?;
                let until = shares.remove(0) as u64;
                Some(Early { until, shares: narrowed(shares) })
            }
        };
        let order = match value("order")? {
            "fixed" => Order::Fixed,
            seed => Order::Permuted { seed: seed.parse().ok()? },
        };
        let opening = number("opening")?;
        let plan = Plan {
            slice: number("slice")?,
            opening: (opening > 0).then_some(opening),
            shares,
            order,
            adapts: number("adapts")? == 1,
            early,
        };
        let anchors = number("anchors")? as usize;
        let boundary = number("boundary")? as usize;
        let logs = PathBuf::from(value("logs")?);
        let grouping = Grouping { events, anchors, groups, is_fewest: false };
        (boundary < anchors).then_some(CountAsk { model, grouping, plan, boundary, logs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modelled::CoreAsk;

    fn model(name: &str) -> ModelAsk {
        let path = format!("{}/../../machines/{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let machine = std::fs::read_to_string(path).unwrap();
        let settings = model::core::Settings::default();
        ModelAsk { name: name.to_owned(), machine, core: CoreAsk::Fast, settings }
    }

    fn units(text: &str) -> Vec<Vec<String>> {
        text.split(' ').map(|unit| unit.split('+').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn an_ask_comes_back_and_odd_text_does_not() {
        let units = units("loads stores+branches l1d-load-misses");
        let logs = PathBuf::from("/tmp/some where");
        let mut ask = CountAsk::new(model("zen4"), &units, "branches", 9000, 7, logs).unwrap();
        ask.plan.shares = vec![2; ask.grouping.groups.len()];
        let shares = vec![5; ask.grouping.groups.len()];
        ask.plan.early = Some(Early { until: 3_000_000, shares });
        let back = CountAsk::from_text(&ask.to_text(), ask.model.clone()).unwrap();
        // Which counter has what, and whether fewer groups would do, the plugin need not know.
        assert_eq!((back.plan, back.boundary, back.logs), (ask.plan, 2, ask.logs));
        assert_eq!(back.grouping.events, ask.grouping.events);
        let events = |g: &Grouping| g.groups.iter().map(|g| g.events.clone()).collect::<Vec<_>>();
        assert_eq!(events(&back.grouping), events(&ask.grouping));
        for text in ["", "events a\n", "events a\nanchors 1\nboundary 4\n"] {
            assert_eq!(CountAsk::from_text(text, model("zen4")), None);
        }
    }

    #[test]
    fn what_cannot_be_counted_is_said() {
        let ask = |machine: &str, events: &str, slice| {
            let answer =
                CountAsk::new(model(machine), &units(events), "cycles", slice, 1, PathBuf::new());
            answer.map(|ask| ask.grouping.groups.len()).map_err(|error| error.to_string())
        };
        assert_eq!(ask("zen4", "loads stores branches", 5000), Ok(1));
        let slip = "the modelled core has no event 'laods'; did you mean 'loads'?";
        assert_eq!(ask("zen4", "laods", 5000), Err(slip.to_owned()));
        assert!(ask("alpha21164", "loads", 200_000).unwrap_err().contains("16 bits"));
        // Cycles have the only counter that could count issues.
        assert!(ask("alpha21164", "issues", 4000).unwrap_err().contains("counter 0 only"));
    }
}
