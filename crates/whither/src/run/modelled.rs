//! The modelled half of a run's report.

use std::collections::HashMap;

use analyse::{ProcedureTime, by_procedure};
use show::{Body, Cell, Column, Row, Section, Table, Tone, Unit};
use vocab::{Count, ImageId, Offset};

use super::images::Images;
use super::report::Report;
use crate::cli::{IcostJob, ModelJob, check_machine};
use crate::failure::{Failure, RUN_FAILED};
use crate::icost::{Answer, Names, listen_and_time, together};
use crate::model::{CYCLES, ModelledRun, RUNS, notes, run_modelled, stack_section, summary};
use crate::progress::Progress;

/// A second run of the same program, on a modelled core.
pub(crate) struct Second<'a> {
    pub(crate) job: &'a ModelJob,
    pub(crate) run: ModelledRun,
    images: Images,
    /// What fixing would save; none where the machine has no graph or too little ran.
    answer: Option<Answer>,
}

/// What is said before a program is run twice.
pub(crate) fn announcement(job: &ModelJob, input_is_kept: bool) -> String {
    let input = match input_is_kept {
        true => "its input is replayed and its second output dropped",
        false => {
            "its second output is dropped, and it will find no input: a terminal cannot be \
                  replayed"
        }
    };
    format!(
        "whither: the program runs twice, natively and then on a modelled {}; {input}",
        job.machine.title
    )
}

/// Runs it.
pub(crate) fn second(job: &ModelJob, progress: bool) -> Result<Second<'_>, Failure> {
    let bar = Progress::clock("the second run, on the modelled core", progress);
    let kept = |failure: Failure| failure.kept("the native half is kept and follows without it");
    let (run, answer) = match check_machine(job) {
        Ok(()) => run_and_idealise(job).map_err(kept)?,
        Err(_) => (run_modelled(job).map_err(kept)?, None),
    };
    drop(bar);
    let images = Images::load(&run.profile, &collect::KernelLayout::default(), progress);
    Ok(Second { job, run, images, answer })
}

/// Windows of the same run say what fixing would save.
fn run_and_idealise(job: &ModelJob) -> Result<(ModelledRun, Option<Answer>), Failure> {
    let asked = IcostJob::beside(job);
    let heard = listen_and_time(&asked)?;
    let mut run = ModelledRun::of(heard.exit, &heard.processes, &job.machine);
    run.damage.extend(heard.damage.iter().cloned());
    if heard.sampled.windows.is_empty() {
        return Ok((run, None));
    }
    let answer = Answer::of(&asked, &heard.sampled, &Names::load(&heard, false)).ok();
    Ok((run, answer))
}

/// Standard input, kept for two runs.
pub(crate) fn keep_input() -> Result<perf::KeptInput, Failure> {
    perf::KeptInput::keep().map_err(|error| {
        Failure::new(RUN_FAILED, format!("standard input cannot be kept for two runs: {error}"))
            .kept("the program was not started")
    })
}

type Key = (String, Option<Offset>);

impl Second<'_> {
    /// What it adds to the report.
    pub(crate) fn sections(&self, report: &Report<'_>) -> Vec<Section> {
        let mut summary = summary(self.job, &self.run, report.program.shown());
        summary.key = "modelled";
        summary.title = "THE SAME ON A MODELLED CORE".into();
        summary.caption = format!("a second run, under {}", self.job.engine.name());
        let mut sections =
            vec![summary, stack_section(&self.run.totals, self.job), self.beside(report)];
        sections.extend(self.answer.as_ref().map(together));
        sections
    }

    /// What it cannot see.
    pub(crate) fn notes(&self) -> Vec<String> {
        notes(&self.run, &self.images)
    }

    /// Procedures: measured share beside modelled share.
    fn beside(&self, report: &Report<'_>) -> Section {
        let cycles = self.by_key(CYCLES);
        let runs = self.by_key(RUNS);
        let row = |time: &ProcedureTime| {
            let path = report.native.profile.image(time.image).map_or("?", |i| i.path.as_str());
            let key = (path.to_owned(), time.procedure.as_ref().map(|p| p.start));
            let modelled = cycles.get(&key).copied();
            let share = modelled.map_or(Cell::NotCounted("not seen".into()), |ticks| {
                Cell::Number(self.run.cycles_in(ticks) / self.run.cycles().max(1.0), Unit::Share)
            });
            let cpi = match (modelled, runs.get(&key)) {
                (Some(ticks), Some(runs)) => {
                    Cell::Number(self.run.cycles_in(ticks) / runs.as_f64().max(1.0), Unit::Number)
                }
                _ => Cell::Empty,
            };
            let name = Cell::text(report.procedure_name(time));
            let image = Cell::text(report.image_name(time.image));
            Row::Cells(Tone::Plain, vec![report.share_of(time.count), share, cpi, image, name])
        };
        let is_user = |time: &&ProcedureTime| {
            let image = report.native.profile.image(time.image);
            image.is_some_and(|image| image.kind == vocab::ImageKind::File)
        };
        Section {
            key: "measured_and_modelled",
            title: "MEASURED BESIDE MODELLED".into(),
            caption: "the kernel is left out: it is not modelled".into(),
            body: Body::Table(Table {
                columns: vec![
                    Column::number("measured_share", "measured"),
                    Column::number("modelled_share", "modelled"),
                    Column::number("modelled_cpi", "CPI"),
                    Column::text("image", "image"),
                    Column::text("procedure", "procedure"),
                ],
                rows: report.times.iter().filter(is_user).map(row).collect(),
                text_rows: Some(report.job.procedures.min(10)),
            }),
        }
    }

    /// The two runs number their images apart: a path and a start are the same in both.
    fn by_key(&self, event: vocab::EventId) -> HashMap<Key, Count> {
        let path = |id: ImageId| self.run.profile.image(id).map_or("?", |i| i.path.as_str());
        by_procedure(&self.run.profile, event, self.images.procedures())
            .iter()
            .map(|t| ((path(t.image).to_owned(), t.procedure.as_ref().map(|p| p.start)), t.count))
            .collect()
    }
}
