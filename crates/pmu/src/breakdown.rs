//! A whole divided by cause: CPI = Σ stallᵢ + CPI of the rest.

use serde::Deserialize;

use crate::Formula;

/// One cause and how much of the whole it has.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// In JSON.
    pub key: String,
    /// For a person.
    pub title: String,
    /// In the unit of the whole.
    pub amount: Formula,
}

/// A whole and its causes; what no cause claims is the rest.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// What a user types.
    pub name: String,
    /// The question that it answers.
    pub what: String,
    /// What is divided, in cycles or in slots.
    pub whole: Formula,
    /// All of it in which nothing retired, where the core can tell.
    #[serde(default)]
    pub stalls: Option<Formula>,
    /// Where the division comes from.
    pub source: String,
    /// How it misleads; empty where nothing is known.
    #[serde(default)]
    pub lies: String,
    /// The causes.
    pub cause: Vec<Cause>,
}

/// The parts of CPI, each a formula of its own: what is printed is what is computed.
#[derive(Clone, PartialEq, Debug)]
pub struct CpiParts {
    /// Cycles for an instruction.
    pub cpi: Formula,
    /// One a cause, in order.
    pub causes: Vec<Formula>,
    /// What is left.
    pub rest: Formula,
    /// Stalls that no cause claims, where the core counts all stalls.
    pub unclaimed: Option<Formula>,
}

impl Breakdown {
    /// Every formula in it.
    pub fn formulas(&self) -> impl Iterator<Item = &Formula> {
        let causes = self.cause.iter().map(|cause| &cause.amount);
        causes.chain(std::iter::once(&self.whole)).chain(&self.stalls)
    }

    /// The events that it needs, each once; cycles and instructions first.
    pub fn events(&self) -> Vec<String> {
        let mut events = vec!["cycles".to_owned(), "instructions".to_owned()];
        let needed = self.formulas().flat_map(Formula::names);
        for name in needed.filter(|name| crate::constant(name).is_none()) {
            if !events.contains(name) {
                events.push(name.clone());
            }
        }
        events
    }

    /// The parts of CPI: a cause's share of the whole is its share of the cycles.
    pub fn cpi_parts(&self) -> Result<CpiParts, crate::FormulaError> {
        let per_instruction = |amount: &str| {
            let whole = self.whole.text();
            Formula::parse(&match whole {
                "cycles" => format!("({amount}) / instructions"),
                whole => format!("({amount}) / ({whole}) * cycles / instructions"),
            })
        };
        let claimed: Vec<String> =
            self.cause.iter().map(|cause| format!("({})", cause.amount.text())).collect();
        let claimed = claimed.join(" + ");
        let causes = self.cause.iter().map(|cause| per_instruction(cause.amount.text()));
        let unclaimed = self
            .stalls
            .as_ref()
            .map(|all| per_instruction(&format!("{} - ({claimed})", all.text())));
        Ok(CpiParts {
            cpi: Formula::parse("cycles / instructions")?,
            causes: causes.collect::<Result<_, _>>()?,
            rest: per_instruction(&format!("{} - ({claimed})", self.whole.text()))?,
            unclaimed: unclaimed.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Inputs, cores, modelled_events};
    use metrology::Estimate;

    /// Any event is worth something that follows from its name.
    struct Made;

    impl Inputs for Made {
        fn value(&self, name: &str) -> Option<Estimate> {
            let sum: u32 = name.bytes().map(u32::from).sum();
            let value = if name == "width" { 4.0 } else { 1000.0 + f64::from(sum % 97) };
            Some(Estimate::known(value, 3.0))
        }
    }

    #[test]
    fn causes_and_the_rest_add_up_to_the_cpi_for_every_core() {
        let cores = cores().unwrap();
        let modelled = modelled_events().unwrap();
        let all = cores.iter().flat_map(|core| &core.breakdown).chain(&modelled.breakdown);
        let mut tried = 0;
        for breakdown in all {
            let parts = breakdown.cpi_parts().unwrap();
            let value = |formula: &Formula| formula.evaluate(&Made).unwrap().value;
            let sum: f64 = parts.causes.iter().map(value).sum::<f64>() + value(&parts.rest);
            assert!((sum - value(&parts.cpi)).abs() < 1e-9, "{}", breakdown.what);
            tried += 1;
        }
        assert!(tried > 12, "{tried}");
    }

    #[test]
    fn the_events_of_a_breakdown_leave_constants_out() {
        let cores = cores().unwrap();
        let zen4 = cores.iter().find(|core| core.name == "zen4").unwrap();
        let topdown = zen4.breakdown.iter().find(|b| b.name == "topdown").unwrap();
        let events = topdown.events();
        assert_eq!(events[..2], ["cycles", "instructions"]);
        assert!(!events.contains(&"width".to_owned()) && events.contains(&"ex_ret_ops".to_owned()));
    }
}
