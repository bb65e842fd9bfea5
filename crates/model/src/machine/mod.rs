//! Descriptions of cores: what a file in `machines/` says, checked once and then trusted.
//!
//! ```text
//! machines/zen4.toml --load--> Machine --tables--> cores, PMU, static schedules
//! ```

mod check;
mod class;
mod facts;
mod load;
mod rewrite;

pub use class::Class;
pub use facts::{
    BranchFacts, CacheFacts, Caches, Classes, Constraint, Direction, Execution, Front, Identity,
    Memory, Order, PmuFacts, Prefetch, Scheduler, TlbFacts, Tlbs, Window,
};
pub use load::MachineError;
pub use rewrite::rewritten;

use serde::Deserialize;

/// A core, as its file describes it.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The name by which it is asked for.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// Which hosts it describes.
    pub identity: Identity,
    /// Fetch.
    pub front: Front,
    /// Dispatch to retirement.
    pub window: Window,
    /// Where micro-ops wait.
    pub schedulers: Vec<Scheduler>,
    /// How they execute.
    pub classes: Classes,
    /// Caches.
    pub caches: Caches,
    /// Translation.
    pub tlbs: Tlbs,
    /// Memory.
    pub memory: Memory,
    /// Prefetchers.
    pub prefetch: Prefetch,
    /// Branch prediction.
    pub branch: BranchFacts,
    /// Counters.
    pub pmu: PmuFacts,
}

/// The files that travel with the tool: name and text.
const FILES: &[(&str, &str)] = &[
    ("alpha21164", include_str!("../../../../machines/alpha21164.toml")),
    ("goldencove", include_str!("../../../../machines/goldencove.toml")),
    ("icelake-server", include_str!("../../../../machines/icelake-server.toml")),
    ("icost-table6", include_str!("../../../../machines/icost-table6.toml")),
    ("ppc970", include_str!("../../../../machines/ppc970.toml")),
    ("zen3", include_str!("../../../../machines/zen3.toml")),
    ("zen4", include_str!("../../../../machines/zen4.toml")),
    ("zen5", include_str!("../../../../machines/zen5.toml")),
];

/// The names of the machines that travel with the tool, sorted.
pub fn machines() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

/// The text of a machine that travels with the tool.
pub fn text_of(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(held, _)| *held == name).map(|(_, text)| *text)
}

impl Machine {
    /// A machine that travels with the tool.
    pub fn named(name: &str) -> Result<Machine, MachineError> {
        let text = text_of(name).ok_or_else(|| MachineError::unknown(name))?;
        Machine::load(name, text, &[])
    }

    /// The machine that describes a host, if one does.
    pub fn matching(vendor: &str, family: u32, model: u32) -> Option<Machine> {
        machines().filter_map(|name| Machine::named(name).ok()).find(|machine| {
            let identity = &machine.identity;
            let in_range = |range: &[u32; 2]| (range[0]..=range[1]).contains(&model);
            identity.vendor == vendor
                && identity.family == family
                && identity.models.iter().any(in_range)
        })
    }

    /// How a class executes. Loading made sure that each is described.
    pub fn execution(&self, class: Class) -> Option<&Execution> {
        self.classes.of.get(&class)
    }

    /// The ports of all schedulers, in file order; a port's place here is its number.
    pub fn ports(&self) -> impl Iterator<Item = &str> {
        self.schedulers.iter().flat_map(|s| s.ports.iter().map(String::as_str))
    }
}

#[cfg(test)]
mod tests;
