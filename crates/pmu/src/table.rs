//! The event table, from its file.

use std::fmt;

use serde::Deserialize;
use vocab::EventCode;

use crate::Dimension;

const GENERIC: &str = include_str!("../../../events/generic.toml");

/// The kernel's kinds of event that have names of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// Counted by the PMU.
    Hardware,
    /// Counted by the kernel.
    Software,
    /// Counted by the PMU: cache, operation, result.
    Cache,
}

impl EventKind {
    /// The kernel's `perf_type_id`.
    pub fn number(self) -> u32 {
        match self {
            EventKind::Hardware => 0,
            EventKind::Software => 1,
            EventKind::Cache => 3,
        }
    }

    /// For a person.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::Hardware => "hardware",
            EventKind::Software => "software",
            EventKind::Cache => "cache",
        }
    }
}

/// One event of the table.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventEntry {
    /// What a user types.
    pub name: String,
    /// Other spellings.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// The kernel's kind.
    pub kind: EventKind,
    /// The kernel's number within the kind.
    pub code: u64,
    /// What one count is, in formulas.
    #[serde(default)]
    pub unit: Option<String>,
    /// What is counted.
    pub counts: String,
    /// How the count misleads; empty where nothing is known.
    #[serde(default)]
    pub lies: String,
    /// How much an interruption of the program (a timer's tick, a page fault) may add to the
    /// count; 0 where nothing is known.
    #[serde(default)]
    pub extra_per_interruption: u32,
}

impl EventEntry {
    /// What the kernel is asked for.
    pub fn code(&self) -> EventCode {
        EventCode::new(self.kind.number(), self.code)
    }

    /// What it is measured in; a unit that is none is found by a test, and counts as events.
    pub fn dimension(&self) -> Dimension {
        let unit = self.unit.as_deref().unwrap_or("events");
        Dimension::named(unit).unwrap_or_default()
    }

    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// All events that have names.
#[derive(Clone, Debug)]
pub struct EventTable {
    /// In the order of the file.
    pub entries: Vec<EventEntry>,
    /// Where the codes come from.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EventFile {
    source: String,
    event: Vec<EventEntry>,
}

/// A table that cannot be read, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableError {
    pub(crate) file: String,
    pub(crate) why: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

impl std::error::Error for TableError {}

impl EventTable {
    /// The table that travels with the program.
    pub fn embedded() -> Result<EventTable, TableError> {
        EventTable::parse("events/generic.toml", GENERIC)
    }

    /// A table from its text; `file` is named in errors.
    pub fn parse(file: &str, text: &str) -> Result<EventTable, TableError> {
        let parsed: EventFile = toml::from_str(text)
            .map_err(|error| TableError { file: file.into(), why: error.to_string() })?;
        Ok(EventTable { entries: parsed.event, source: parsed.source })
    }

    /// The entry of that name or alias.
    pub fn get(&self, name: &str) -> Option<&EventEntry> {
        self.entries.iter().find(|entry| entry.is_called(name))
    }

    /// Every name and alias.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries
            .iter()
            .flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases))
            .map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_name_stands_for_two_events() {
        let table = EventTable::embedded().unwrap();
        let distinct: BTreeSet<&str> = table.names().collect();
        assert_eq!(distinct.len(), table.names().count());
    }

    #[test]
    fn every_unit_exists() {
        let table = EventTable::embedded().unwrap();
        for unit in table.entries.iter().filter_map(|entry| entry.unit.as_ref()) {
            assert!(Dimension::named(unit).is_ok(), "{unit}");
        }
    }

    #[test]
    fn cache_codes_are_cache_operation_and_result() {
        let table = EventTable::embedded().unwrap();
        // L1D = 0, LL = 2, DTLB = 3; read = 0, write = 1, prefetch = 2; access = 0, miss = 1.
        let code = |name: &str| table.get(name).unwrap().code();
        assert_eq!(code("L1-dcache-load-misses"), EventCode::new(3, 0x1_0000));
        assert_eq!(code("LLC-store-misses"), EventCode::new(3, 0x1_0102));
        assert_eq!(code("dTLB-prefetches"), EventCode::new(3, 0x0203));
    }

    #[test]
    fn an_unknown_key_names_the_file_and_the_key() {
        let text = "source = 'x'\n[[event]]\nname='a'\nkind='software'\ncode=1\ncounts='c'\nodd=1";
        let error = EventTable::parse("mine.toml", text).unwrap_err().to_string();
        assert!(error.contains("mine.toml") && error.contains("odd"), "{error}");
    }
}
