//! Idealisation on the graph beside idealisation of the core itself, at random windows.
//!
//! ```text
//! stream ─► warmed before windows ─► window: its events are kept
//!                                       │
//!            for every machine: the reference core, its graph, and (where asked) the reference
//!            core once more for every set, really idealised
//! ```

mod listener;
mod shotgun;
mod times;

use std::sync::Arc;

use model::machine::{Machine, text_of};
use serde::{Deserialize, Serialize};
use tracer::results::ProcessKey;
use tracer::trace::Audience;

pub use listener::Listener;
use listener::Places;
pub use shotgun::Shot;
pub use times::{SetTimes, Times, by_set};

/// A machine with some of its facts changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variant {
    /// The machine.
    pub machine: String,
    /// Facts by dotted key.
    pub facts: Vec<(String, String)>,
}

impl Variant {
    /// The simulated processor of the interaction-cost paper, with some facts changed.
    pub fn table_6(facts: &[(&str, u32)]) -> Variant {
        let fact = |(key, value): &(&str, u32)| ((*key).to_owned(), value.to_string());
        Variant { machine: "icost-table6".to_owned(), facts: facts.iter().map(fact).collect() }
    }

    /// Whether both have the same caches, translation and predictors: all that is warmed.
    fn has_units_of(&self, other: &Variant) -> bool {
        let is_of_units = |fact: &&(String, String)| !fact.0.starts_with("window.");
        self.machine == other.machine
            && self.facts.iter().filter(is_of_units).eq(other.facts.iter().filter(is_of_units))
    }

    fn load(&self) -> Result<Machine, String> {
        let text = text_of(&self.machine).ok_or(format!("no machine {}", self.machine))?;
        let facts: Vec<(&str, &str)> =
            self.facts.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        Machine::load(&self.machine, text, &facts).map_err(|e| e.to_string())
    }
}

/// What is to be found out about a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// On which machines.
    pub variants: Vec<Variant>,
    /// Instructions that the program runs, about: windows are laid over them.
    pub instructions: u64,
    /// How many windows.
    pub windows: usize,
    /// Instructions in each.
    pub window_instructions: u64,
    /// Where they lie.
    pub seed: u64,
    /// Sets of at most so many of the eight categories are evaluated; 0 for the time alone.
    pub most: u32,
    /// Whether cores are really idealised too.
    pub really: bool,
    /// Windows for detailed samples, for each one that is compared; none for no shotgun profiler.
    pub shotgun: Option<usize>,
    /// Instructions in each of those, at most.
    pub detail_instructions: u64,
}

/// What was found out: by variant, by window.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    /// The windows of each variant, in the same order.
    pub variants: Vec<Vec<Times>>,
    /// The shotgun profiler's, on the first variant.
    pub shot: Option<Shot>,
}

/// Those who listen to a program to find it out.
#[derive(Debug)]
pub struct Listeners {
    machines: Vec<Arc<Machine>>,
    places: Arc<Places>,
}

impl Listeners {
    /// Nothing has been heard yet.
    ///
    /// # Errors
    ///
    /// A machine is not known, or has no such fact.
    pub fn new(question: Question) -> Result<Listeners, String> {
        let machines: Result<Vec<Arc<Machine>>, String> =
            question.variants.iter().map(|variant| Ok(Arc::new(variant.load()?))).collect();
        let machines = machines?;
        let places = Arc::new(Places::new(question, machines.first().map(AsRef::as_ref)));
        Ok(Listeners { machines, places })
    }

    /// The answer when the stream is over.
    pub fn answer(self) -> Answer {
        self.places.answer(&self.machines)
    }
}

impl Audience for Listeners {
    type Core = Listener;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Listener {
        Listener::new(&self.machines, self.places.clone())
    }

    fn ended(&mut self, _: ProcessKey, _: u32, _: Listener) {}
}
