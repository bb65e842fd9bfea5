//! From text to a checked machine.

use std::fmt;

use super::{Machine, check};

/// Why a machine file was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MachineError {
    file: String,
    reason: String,
}

impl MachineError {
    pub(super) fn new(file: &str, reason: impl Into<String>) -> MachineError {
        MachineError { file: file.into(), reason: reason.into() }
    }

    pub(super) fn unknown(name: &str) -> MachineError {
        let known: Vec<&str> = super::machines().collect();
        MachineError::new(name, format!("no such machine; there are {}", known.join(", ")))
    }
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "machine {}: {}", self.file, self.reason)
    }
}

impl std::error::Error for MachineError {}

impl Machine {
    /// Reads a machine file. `file` names it in errors. Each override is a dotted key of the file
    /// and its new value, as in `("caches.l1d.latency_cycles", "4")`; the key must exist.
    pub fn load(
        file: &str,
        text: &str,
        overrides: &[(&str, &str)],
    ) -> Result<Machine, MachineError> {
        let refuse = |reason: String| MachineError::new(file, reason);
        let mut table: toml::Table =
            text.parse().map_err(|e: toml::de::Error| refuse(at_line(text, &e)))?;
        for (key, value) in overrides {
            set(&mut table, key, value).map_err(refuse)?;
        }
        let machine = read(file, table)?;
        check::check(&machine).map_err(refuse)?;
        Ok(machine)
    }
}

/// Reads the tables; an error names the table and the key.
fn read(file: &str, table: toml::Table) -> Result<Machine, MachineError> {
    let whole: Result<Machine, _> = table.clone().try_into();
    whole.map_err(|error| {
        let place = culprit(&table, error.message());
        MachineError::new(file, format!("{place}{}", one_line(&error)))
    })
}

/// Where the fault lies, as `[table] key: `: without what is at fault the complaint is another, or
/// none. A key that is missing or unknown stands in the complaint itself.
fn culprit(table: &toml::Table, complaint: &str) -> String {
    let names_its_key =
        complaint.starts_with("missing field") || complaint.starts_with("unknown field");
    let mut path: Vec<String> = Vec::new();
    while let Some(here) = inside(table, &path) {
        let guilty = here.iter().find(|(key, value)| {
            (value.is_table() || value.is_array() || !names_its_key)
                && complaint_without(table, &path, key).as_deref() != Some(complaint)
        });
        let Some((key, _)) = guilty else { break };
        path.push(key.clone());
    }
    let is_table = inside(table, &path).is_some();
    let last = if is_table { None } else { path.pop() };
    let place = if path.is_empty() { String::new() } else { format!("[{}] ", path.join(".")) };
    last.map(|key| format!("{place}{key}: ")).unwrap_or(place)
}

fn inside<'a>(table: &'a toml::Table, path: &[String]) -> Option<&'a toml::Table> {
    path.iter().try_fold(table, |table, key| table.get(key)?.as_table())
}

/// What is wrong with the file where one key is left out; none if nothing is.
fn complaint_without(table: &toml::Table, path: &[String], key: &str) -> Option<String> {
    let mut table = table.clone();
    let within = path.iter().try_fold(&mut table, |table, key| table.get_mut(key)?.as_table_mut());
    within?.remove(key);
    let again: Result<Machine, toml::de::Error> = table.try_into();
    again.err().map(|error| error.message().to_owned())
}

/// What is wrong with the text, and in which line.
fn at_line(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {}", before.matches('\n').count() + 1, one_line(error)),
        None => one_line(error),
    }
}

fn one_line(error: &toml::de::Error) -> String {
    let line = error.message().lines().collect::<Vec<_>>().join(" ");
    line.replace("expected u32", "expected a whole number, 0 or more")
}

fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), String> {
    let mut at = table;
    let mut parts = key.split('.').peekable();
    while let Some(part) = parts.next() {
        let slot = at.get_mut(part).ok_or_else(|| format!("override of unknown key {key}"))?;
        if parts.peek().is_none() {
            *slot = parse_value(value).ok_or_else(|| format!("{key}: {value} is no value"))?;
            return Ok(());
        }
        at = slot.as_table_mut().ok_or_else(|| format!("override of unknown key {key}"))?;
    }
    Err(format!("override of unknown key {key}"))
}

/// A value as it would stand in the file; what is no number, list or truth value is a string.
fn parse_value(value: &str) -> Option<toml::Value> {
    let parsed: Result<toml::Table, _> = format!("v = {value}").parse();
    let bare = parsed.ok().and_then(|mut table| table.remove("v"));
    bare.or_else(|| (!value.contains('\n')).then(|| toml::Value::String(value.into())))
}
