//! What a reader must know to judge the numbers.

use metrology::{SKEW_RUNS_MIN, runs_needed};

use super::Report;
use crate::measure::experiment::Ended;
use crate::measure::findings::{reached, widening};
use crate::measure::view::percent;

impl Report<'_> {
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.choice.why_measurand.is_empty() {
            notes.push(capital(&self.choice.why_measurand));
        }
        notes.extend(self.target());
        notes.extend(self.disagreement());
        notes.extend(self.failures());
        notes.extend(self.skewed());
        notes.extend(self.steady());
        notes.extend(self.looking());
        notes.extend(self.excess());
        if self.job.model.is_some() {
            notes.push(
                "Counts are modelled, none is measured. Where things lie is the engine's choice: of \
                 what --vary names, only the size of the environment is drawn here."
                    .into(),
            );
        }
        notes
    }

    /// What was reached instead of what was asked for.
    fn target(&self) -> Option<String> {
        let reached = reached(self.choice, self.findings)?;
        if self.is_reached() || self.runs.ended == Ended::Fixed {
            return None;
        }
        let readings = self.runs.readings.len() as f64;
        let needed = runs_needed(reached * readings.sqrt(), self.job.uncertainty);
        Some(format!(
            "The uncertainty asked for ({}) was not reached: {} is what there is. About {needed} \
             readings like these would do.",
            percent(Some(self.job.uncertainty)),
            percent(Some(reached)),
        ))
    }

    fn disagreement(&self) -> Option<String> {
        let groups = self.findings.groups.as_ref().filter(|groups| groups.disagree())?;
        let worst = groups.comparison.worst?;
        Some(format!(
            "Groups {} and {} of the runs differ by {}: something changed between them, and their \
             mean describes neither. Repeat the measurement when the machine is quiet, or find out \
             what changed.",
            worst.first + 1,
            worst.second + 1,
            percent(Some(groups.difference.abs())),
        ))
    }

    fn failures(&self) -> Option<String> {
        if self.runs.failures.is_empty() {
            return None;
        }
        let each: Vec<String> =
            self.runs.failures.iter().map(|(how, count)| format!("{how} ({count}×)")).collect();
        Some(format!(
            "{} of {} executions failed and are in no mean: {}.",
            self.failed(),
            self.runs.started,
            each.join(", ")
        ))
    }

    fn skewed(&self) -> Option<String> {
        let skewed = self
            .choice
            .quantities
            .iter()
            .zip(&self.findings.direct)
            .filter(|(_, found)| found.as_ref().is_some_and(|found| found.summary.is_skewed()));
        let names: Vec<&str> = skewed.map(|(quantity, _)| quantity.name.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        Some(format!(
            "Readings lean to one side more than chance explains: {}. Their intervals are bent \
             towards the tail and, below some thirty readings, still hold less often than they say.",
            names.join(", ")
        ))
    }

    /// Few readings cannot show skew; equal ones show none.
    fn steady(&self) -> Option<String> {
        let found = self.findings.direct.get(self.choice.measurand)?.as_ref()?;
        if found.summary.estimate.standard_uncertainty == 0.0 {
            return Some(format!(
                "All {} readings of the measurand are equal: as far as they tell it does not vary.",
                found.readings
            ));
        }
        (found.readings < SKEW_RUNS_MIN).then(|| {
            format!(
                "{} readings are too few to tell whether they lean to one side.",
                found.readings
            )
        })
    }

    fn looking(&self) -> Option<String> {
        let widening = widening(self.job);
        (widening > 1.0).then(|| {
            format!(
                "Uncertainties are multiplied by {widening}: whoever looks after every run stops \
                 at a lucky one. --runs N makes so many and does not look."
            )
        })
    }

    fn excess(&self) -> Option<String> {
        let known = self
            .choice
            .quantities
            .iter()
            .zip(&self.findings.direct)
            .filter(|(_, found)| found.as_ref().is_some_and(|found| found.known > 0.0));
        let names: Vec<&str> = known.map(|(quantity, _)| quantity.name.as_str()).collect();
        let part = match self.job.model {
            Some(_) => "what sampling leaves uncertain",
            None => "what interruptions may add to the count",
        };
        (!names.is_empty())
            .then(|| format!("The uncertainty includes {part}: {}.", names.join(", ")))
    }
}

/// A part of a sentence as a sentence.
pub(crate) fn capital(part: &str) -> String {
    let mut letters = part.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>());
    format!("{}{}.", first.unwrap_or_default(), letters.as_str())
}
