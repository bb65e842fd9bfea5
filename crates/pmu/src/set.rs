//! Sets of events that answer a question together.

use serde::Deserialize;

use crate::TableError;

macro_rules! embedded {
    ($($name:literal),+ $(,)?) => {
        &[$((
            concat!("events/sets/", $name, ".toml"),
            include_str!(concat!("../../../events/sets/", $name, ".toml")),
        )),+]
    };
}

/// File name and text of each embedded set.
const SETS: &[(&str, &str)] =
    embedded!["default", "software", "run", "basic", "memory", "detail-1", "detail-2", "detail-3",];

/// A named list of events.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventSet {
    /// What a user types.
    pub name: String,
    /// The question that it answers.
    pub what: String,
    /// The events, as a user would type them.
    pub events: Vec<String>,
}

/// The sets that travel with the program.
pub fn event_sets() -> Result<Vec<EventSet>, TableError> {
    let parse = |&(file, text): &(&str, &str)| {
        toml::from_str(text)
            .map_err(|error| TableError { file: file.into(), why: error.to_string() })
    };
    SETS.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventTable, parse_event};

    #[test]
    fn every_file_of_the_folder_is_embedded() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../events/sets");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), SETS.len());
    }

    #[test]
    fn every_set_names_events_that_exist_and_no_two_share_a_name() {
        let table = EventTable::embedded().unwrap();
        let sets = event_sets().unwrap();
        for event in sets.iter().flat_map(|set| &set.events) {
            assert!(parse_event(&table, event).is_ok(), "{event}");
        }
        let names: std::collections::BTreeSet<_> = sets.iter().map(|set| &set.name).collect();
        assert_eq!(names.len(), sets.len());
    }
}
