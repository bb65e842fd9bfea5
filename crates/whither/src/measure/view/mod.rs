//! The report of a measurement.

mod direct;
mod judged;
mod notes;

use show::{Body, Cell, Fact, Schema, Section, Unit, View};
use vocab::{Count, Source as Origin};

use super::experiment::{Ended, Runs};
use super::findings::{Findings, reached};
use super::groups::Turns;
use super::quantity::Choice;
use super::source::Source;
use crate::cli::MeasureJob;

pub(super) use direct::{estimate_cell, percent};
pub(super) use notes::capital;

/// What a report is made of.
pub(super) struct Report<'a> {
    pub(super) job: &'a MeasureJob,
    pub(super) choice: &'a Choice,
    pub(super) turns: &'a Turns,
    pub(super) runs: &'a Runs,
    pub(super) findings: &'a Findings,
}

pub(super) fn view(
    job: &MeasureJob,
    choice: &Choice,
    turns: &Turns,
    source: &Source<'_>,
    runs: &Runs,
    findings: &Findings,
) -> View {
    let report = Report { job, choice, turns, runs, findings };
    let mut sections = vec![report.summary(source.shown()), report.direct()];
    if !findings.derived.is_empty() {
        sections.push(report.derived());
    }
    sections.extend(report.levels());
    sections.push(report.groups());
    sections.push(report.spent());
    sections.push(Section {
        key: "notes",
        title: "WHAT TO KNOW".into(),
        caption: String::new(),
        body: Body::Prose(report.notes()),
    });
    View {
        schema: Schema { name: "measure", version: 1 },
        title: format!("whither measure: {}", source.shown()),
        sections,
    }
}

impl Report<'_> {
    fn summary(&self, command: String) -> Section {
        let measurand = self.choice.measurand().map_or("", |m| m.name.as_str());
        let facts = vec![
            Fact::new("command", "command", Cell::text(command)),
            Fact::new("source", "source", origin_cell(self.job)),
            Fact::new("measurand", "measurand", Cell::text(measurand)),
            Fact::new("asked", "asked for", share(Some(self.job.uncertainty))),
            Fact::new("reached", "reached", share(reached(self.choice, self.findings))),
            Fact::new("is_reached", "as asked", Cell::Flag(self.is_reached())),
            Fact::new("needed", "runs it needed", count(self.runs.needed as u64)),
            Fact::new("executions", "executions", count(self.runs.started)),
            Fact::new("warm_up", "left out as warm-up", count(self.runs.warm_up)),
            Fact::new("failed", "failed, left out", count(self.failed())),
            Fact::new("ended", "ended because", self.ended()),
            Fact::new(
                "elapsed_s",
                "took",
                Cell::Number(self.runs.elapsed.as_secs_f64(), Unit::Seconds),
            ),
        ];
        section("run", "", String::new(), Body::Facts(facts))
    }

    pub(super) fn is_reached(&self) -> bool {
        reached(self.choice, self.findings).is_some_and(|r| r <= self.job.uncertainty)
    }

    pub(super) fn failed(&self) -> u64 {
        self.runs.failures.values().sum()
    }

    fn ended(&self) -> Cell {
        let (key, text) = match self.runs.ended {
            Ended::Reached => ("reached", "it is known as well as was asked for"),
            Ended::Fixed => ("fixed", "the runs asked for were made"),
            Ended::OutOfTime => ("out_of_time", "the time was up"),
            Ended::OutOfRuns => ("out_of_runs", "no more runs were allowed"),
            Ended::Interrupted => ("interrupted", "it was interrupted"),
        };
        Cell::Word { key, text: text.into() }
    }
}

/// Where numbers come from.
pub(super) fn origin_cell(job: &MeasureJob) -> Cell {
    match &job.model {
        Some(model) => Cell::Word {
            key: Origin::Modelled.word(),
            text: format!("modelled on {}", model.machine.name),
        },
        None => Cell::text(Origin::Measured.word()),
    }
}

pub(super) fn section(key: &'static str, title: &str, caption: String, body: Body) -> Section {
    Section { key, title: title.into(), caption, body }
}

pub(super) fn count(count: u64) -> Cell {
    Cell::Count(Count(count))
}

/// A relative uncertainty; the text has as many digits as it takes.
pub(super) fn share(value: Option<f64>) -> Cell {
    value.map_or(Cell::NotCounted("the value is zero".into()), |v| Cell::Number(v, Unit::Share))
}
