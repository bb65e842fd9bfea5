//! Measures that are computed from counts, as data.

use serde::Deserialize;

use crate::{Dimension, Formula, TableError};

const METRICS: &str = include_str!("../../../events/metrics.toml");

/// A derived measure.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// What a reader calls it.
    pub name: String,
    /// The event that it is printed beside, as perf does.
    #[serde(default)]
    pub beside: Option<String>,
    /// What is computed.
    pub formula: Formula,
    /// What it is measured in; `1` is written as a percentage.
    pub unit: String,
    /// perf's words for it; where perf has none, the unit.
    #[serde(default)]
    pub label: Option<String>,
    /// A plain number although its unit is 1.
    #[serde(default)]
    pub plain: bool,
    /// What it says.
    pub what: String,
    /// When it misleads; empty where nothing is known.
    #[serde(default)]
    pub lies: String,
}

impl Metric {
    /// Whether it is written as a percentage.
    pub fn is_share(&self) -> bool {
        self.unit == "1" && !self.plain
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricFile {
    #[expect(dead_code, reason = "for the reader of the file")]
    source: String,
    metric: Vec<Metric>,
}

/// Those that need the kernel's names alone.
pub fn metrics() -> Result<Vec<Metric>, TableError> {
    let file: MetricFile = toml::from_str(METRICS).map_err(|error| TableError {
        file: "events/metrics.toml".into(),
        why: error.to_string(),
    })?;
    Ok(file.metric)
}

/// What the constants of formulas are measured in.
pub fn constant(name: &str) -> Option<Dimension> {
    let unit = match name {
        "seconds" => "s",
        "bytes" => "B/event",
        "line-bytes" => "B/event",
        "clock" => "cycles/s",
        "width" => "slots/cycle",
        _ => return None,
    };
    Dimension::named(unit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventTable;

    #[test]
    fn every_formula_is_of_the_unit_that_it_claims() {
        let table = EventTable::embedded().unwrap();
        let unit = |name: &str| table.get(name).map(crate::EventEntry::dimension);
        for metric in metrics().unwrap() {
            let found = metric.formula.dimension(&|name| constant(name).or_else(|| unit(name)));
            let claimed = Dimension::named(&metric.unit).unwrap();
            assert_eq!(found.unwrap(), claimed, "{}", metric.name);
            if let Some(name) = metric.beside {
                assert!(table.get(&name).is_some(), "{name}");
                assert!(metric.formula.names().contains(&name), "{name}");
            }
        }
    }
}
