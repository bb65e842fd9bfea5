//! What is known about a core beyond the kernel's generic names: its stall events, and how they
//! divide its time.

use serde::Deserialize;

use crate::schedule::Early;
use crate::{Breakdown, Dimension, Grouping, Metric, TableError};

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        &[$((
            concat!("events/cores/", $name, ".toml"),
            include_str!(concat!("../../../events/cores/", $name, ".toml")),
        )),+]
    };
}

/// File name and text; a core without a part number of its own comes last.
const CORES: &[(&str, &str)] = embedded![
    "icelake",
    "goldencove",
    "zen3",
    "zen4",
    "zen5",
    "neoverse-n1",
    "neoverse-v1",
    "neoverse-n2",
    "armv8-pmuv3",
];

const MODELLED: (&str, &str) =
    ("events/modelled.toml", include_str!("../../../events/modelled.toml"));

/// The processor as it names itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCore {
    /// `GenuineIntel`, or the implementer's number on Arm.
    pub vendor: String,
    /// On x86.
    pub family: Option<u32>,
    /// On x86.
    pub model: Option<u32>,
    /// On Arm, as `0xd0c`.
    pub part: String,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    vendor: String,
    #[serde(default)]
    family: Option<u32>,
    /// First and last of each range.
    #[serde(default)]
    models: Vec<(u32, u32)>,
    #[serde(default)]
    parts: Vec<String>,
    source: String,
}

/// One event of a core.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreEvent {
    /// The vendor's name.
    pub name: String,
    /// Terms of the core's PMU.
    pub code: String,
    /// What one count is.
    #[serde(default = "events")]
    pub unit: String,
    /// What is counted.
    pub counts: String,
    /// How the count misleads; empty where nothing is known.
    #[serde(default)]
    pub lies: String,
}

fn events() -> String {
    "events".to_owned()
}

/// A core's events and what they make together.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreEvents {
    /// A short name.
    pub name: String,
    /// For a person.
    pub title: String,
    /// Micro-ops that can be sent on in a cycle, where it is known: 1 / width is the ideal CPI.
    #[serde(default)]
    pub width: Option<u32>,
    /// The PMUs in sysfs that count these events, the first that is there.
    pub pmus: Vec<String>,
    /// Where the codes come from.
    pub source: String,
    /// What was checked, and what was not.
    pub checked: String,
    host: Host,
    /// Its events.
    pub event: Vec<CoreEvent>,
    /// How its time divides.
    pub breakdown: Vec<Breakdown>,
}

impl CoreEvents {
    /// Whether it describes this processor. A core without part numbers takes what no other does.
    fn describes(&self, here: &HostCore) -> bool {
        let of_part = |parts: &[String]| parts.is_empty() || parts.contains(&here.part);
        let host = &self.host;
        match (host.family, here.model) {
            (None, _) => host.vendor == here.vendor && of_part(&host.parts),
            (family, Some(model)) => {
                host.vendor == here.vendor
                    && family == here.family
                    && host.models.iter().any(|(first, last)| (*first..=*last).contains(&model))
            }
            (Some(_), None) => false,
        }
    }

    /// Whether it has an event of that name, in any case of letters.
    pub fn has(&self, name: &str) -> bool {
        self.event.iter().any(|event| event.name.eq_ignore_ascii_case(name))
    }

    /// Where the choice of processors comes from.
    pub fn host_source(&self) -> &str {
        &self.host.source
    }

    /// What an event of this core is measured in.
    pub fn dimension(&self, name: &str) -> Option<Dimension> {
        let event = self.event.iter().find(|event| event.name == name)?;
        Dimension::named(&event.unit).ok()
    }
}

/// Every core that is described.
pub fn cores() -> Result<Vec<CoreEvents>, TableError> {
    let parse = |&(file, text): &(&str, &str)| {
        toml::from_str(text)
            .map_err(|error| TableError { file: file.into(), why: error.to_string() })
    };
    CORES.iter().map(parse).collect()
}

/// The core of a processor, where one is described.
pub fn core_of(here: &HostCore) -> Result<Option<CoreEvents>, TableError> {
    Ok(cores()?.into_iter().find(|core| core.describes(here)))
}

/// Events that come in lumps, so that a slice in ten sees too few of them.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lumps {
    /// Turns in a round for a group of such events.
    pub share: u32,
    /// The same while caches are cold.
    pub cold_share: u32,
    /// Their names.
    pub events: Vec<String>,
}

/// What the modelled core's events make together.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelledEvents {
    /// Where the definitions come from.
    pub source: String,
    /// How long caches are cold when a program begins, in cycles.
    pub cold_cycles: u64,
    /// What comes in lumps, the largest first.
    pub lumps: Vec<Lumps>,
    /// Sets without a formula of their own.
    pub set: Vec<crate::EventSet>,
    /// How its time divides.
    pub breakdown: Vec<Breakdown>,
    /// Its measures.
    pub metric: Vec<Metric>,
}

impl ModelledEvents {
    /// Puts what comes in lumps first, so that groups hold events that are alike: only then can
    /// turns go where they are needed.
    pub fn order(&self, units: &mut [Vec<String>]) {
        let names: Vec<&String> = self.lumps.iter().flat_map(|lumps| &lumps.events).collect();
        let place = |name: &String| names.iter().position(|lump| *lump == name);
        let first = |unit: &Vec<String>| unit.iter().filter_map(place).min();
        units.sort_by_key(|unit| first(unit).unwrap_or(usize::MAX));
    }

    /// Turns in a round for each group: as many as at least half of its events have earned.
    pub fn shares(&self, grouping: &Grouping) -> Vec<u32> {
        self.earned(grouping, |lumps| lumps.share)
    }

    /// The same while caches are cold.
    pub fn early(&self, grouping: &Grouping) -> Early {
        Early { until: self.cold_cycles, shares: self.earned(grouping, |lumps| lumps.cold_share) }
    }

    fn earned(&self, grouping: &Grouping, share: fn(&Lumps) -> u32) -> Vec<u32> {
        let of_event = |name: &String| {
            let lumps = self.lumps.iter().find(|lumps| lumps.events.contains(name));
            lumps.map_or(1, |lumps| share(lumps).max(1))
        };
        let of_group = |group: &crate::Group| {
            let events = group.events.iter().filter(|&&event| event >= grouping.anchors);
            let names = events.filter_map(|&event| grouping.events.get(event));
            let mut earned: Vec<u32> = names.map(of_event).collect();
            earned.sort_unstable_by(|a, b| b.cmp(a));
            earned.get(earned.len().saturating_sub(1) / 2).copied().unwrap_or(1)
        };
        grouping.groups.iter().map(of_group).collect()
    }
}

/// The modelled core's.
pub fn modelled_events() -> Result<ModelledEvents, TableError> {
    let (file, text) = MODELLED;
    toml::from_str(text).map_err(|error| TableError { file: file.into(), why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventTable, constant};

    #[test]
    fn what_comes_in_lumps_shares_groups_and_has_more_turns() {
        let modelled = modelled_events().unwrap();
        let names = ["loads", "ssb-memory-cycles", "rob-full-cycles", "stall-code-cycles", "uops"];
        let mut units: Vec<Vec<String>> = names.iter().map(|n| vec![(*n).to_owned()]).collect();
        modelled.order(&mut units);
        let counters = crate::Counters::alike(3);
        let grouping = crate::group(&counters, &["cycles"], &units).unwrap();
        let group = |k: usize| -> Vec<&str> {
            grouping.groups[k].events.iter().map(|&e| grouping.events[e].as_str()).collect()
        };
        assert_eq!(group(0), ["cycles", "ssb-memory-cycles", "stall-code-cycles"]);
        assert_eq!(group(1), ["cycles", "rob-full-cycles", "loads"]);
        assert_eq!(group(2), ["cycles", "uops"]);
        // Half of the second group are waits, and none of the third.
        assert_eq!(modelled.shares(&grouping), [4, 3, 1]);
        assert_eq!(modelled.early(&grouping).shares, [6, 3, 1]);
    }

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/cores");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), CORES.len());
    }

    #[test]
    fn processors_find_their_core() {
        let x86 = |vendor: &str, family, model| {
            let here = HostCore {
                vendor: vendor.into(),
                family: Some(family),
                model: Some(model),
                ..HostCore::default()
            };
            core_of(&here).unwrap().map(|core| core.name)
        };
        assert_eq!(x86("GenuineIntel", 6, 0x6a).as_deref(), Some("icelake"));
        assert_eq!(x86("GenuineIntel", 6, 0x8f).as_deref(), Some("goldencove"));
        assert_eq!(x86("AuthenticAMD", 25, 0x01).as_deref(), Some("zen3"));
        assert_eq!(x86("AuthenticAMD", 25, 0x11).as_deref(), Some("zen4"));
        assert_eq!(x86("AuthenticAMD", 26, 0x02).as_deref(), Some("zen5"));
        assert_eq!(x86("AuthenticAMD", 23, 0x31), None);
        let arm = |part: &str| {
            let here = HostCore { vendor: "0x41".into(), part: part.into(), ..HostCore::default() };
            core_of(&here).unwrap().map(|core| core.name)
        };
        assert_eq!(arm("0xd0c").as_deref(), Some("neoverse-n1"));
        assert_eq!(arm("0xd07").as_deref(), Some("armv8-pmuv3"));
    }

    #[test]
    fn every_breakdown_adds_up_in_one_unit_of_events_that_exist() {
        let table = EventTable::embedded().unwrap();
        for core in cores().unwrap() {
            let of = |name: &str| {
                let generic = || table.get(name).map(crate::EventEntry::dimension);
                constant(name).or_else(|| core.dimension(name)).or_else(generic)
            };
            for breakdown in &core.breakdown {
                let whole = breakdown.whole.dimension(&of).unwrap();
                let parts = breakdown.cause.iter().map(|cause| &cause.amount);
                for part in parts.chain(&breakdown.stalls) {
                    let found = part.dimension(&of);
                    assert_eq!(found, Ok(whole), "{}: {}", core.name, part.text());
                }
            }
            assert!(
                core.breakdown.iter().any(|breakdown| breakdown.name == "ssb"),
                "{}",
                core.name
            );
        }
    }

    #[test]
    fn no_event_stands_for_nothing_and_none_stands_twice() {
        for core in cores().unwrap() {
            let mut codes: Vec<&str> = core.event.iter().map(|event| event.code.as_str()).collect();
            codes.sort_unstable();
            codes.dedup();
            assert_eq!(codes.len(), core.event.len(), "{}", core.name);
            for event in &core.event {
                assert!(Dimension::named(&event.unit).is_ok(), "{}", event.name);
                let uses = |formula: &crate::Formula| formula.names().contains(&event.name);
                let used = core.breakdown.iter().any(|breakdown| breakdown.formulas().any(uses));
                assert!(used, "{}: {} is in no formula", core.name, event.name);
            }
        }
    }
}
