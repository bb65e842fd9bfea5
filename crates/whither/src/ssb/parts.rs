//! The parts of CPI in an interval: what is counted becomes what is shown.

use metrology::Estimate;
use pmu::{Breakdown, CpiParts, Grouping};

use crate::stat::{Constants, CountRow, Given, Part, Slices, Total, modifiers};

/// A division of CPI, with what its formulas need.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    pub(crate) breakdown: Breakdown,
    formulas: CpiParts,
    pub(crate) constants: Constants,
    /// What the events carry: `u`, `k` or nothing.
    modifiers: String,
}

/// What an interval came to.
#[derive(Clone, Debug)]
pub(crate) struct Parts {
    pub(crate) cycles: f64,
    pub(crate) instructions: f64,
    pub(crate) cpi: Result<Estimate, String>,
    /// In the order of the breakdown's causes.
    pub(crate) causes: Vec<Result<Estimate, String>>,
    pub(crate) rest: Result<Estimate, String>,
    /// Stalls that no cause claims, which are in the rest.
    pub(crate) unclaimed: Option<Result<Estimate, String>>,
}

/// Each event's total over some time, in the grouping's order; none where it was not counted.
pub(crate) type Totals = Vec<Option<Estimate>>;

impl Division {
    /// The division of a log's or session's events.
    pub(crate) fn new(
        breakdown: Breakdown,
        constants: Constants,
        grouping: &Grouping,
    ) -> Result<Division, pmu::FormulaError> {
        let formulas = breakdown.cpi_parts()?;
        let typed = grouping.events.iter().find(|name| plain(name) == "instructions");
        let modifiers = typed.map_or(String::new(), |name| modifiers(name).to_owned());
        Ok(Division { breakdown, formulas, constants, modifiers })
    }

    /// The parts; `slices` say what varied together.
    pub(crate) fn parts(&self, grouping: &Grouping, totals: &Totals, slices: &Slices) -> Parts {
        let rows: Vec<CountRow> = grouping.events.iter().zip(totals).map(row).collect();
        let given =
            Given { rows: &rows, constants: &self.constants, modifiers: &self.modifiers, slices };
        let value = |formula: &pmu::Formula| formula.evaluate(&given).map_err(|e| e.to_string());
        let count = |name: &str| pmu::Inputs::value(&given, name).map_or(0.0, |total| total.value);
        Parts {
            cycles: count("cycles"),
            instructions: count("instructions"),
            cpi: value(&self.formulas.cpi),
            causes: self.formulas.causes.iter().map(value).collect(),
            rest: value(&self.formulas.rest),
            unclaimed: self.formulas.unclaimed.as_ref().map(value),
        }
    }
}

fn plain(typed: &str) -> &str {
    typed.strip_suffix(":u").or_else(|| typed.strip_suffix(":k")).unwrap_or(typed)
}

fn row((typed, total): (&String, &Option<Estimate>)) -> CountRow {
    CountRow {
        part: Part::default(),
        typed: typed.clone(),
        name: plain(typed).to_owned(),
        is_clock: false,
        total: total.map(Total::plain).ok_or_else(|| crate::stat::Missing {
            is_supported: true,
            why: "its turn did not come".into(),
        }),
    }
}
