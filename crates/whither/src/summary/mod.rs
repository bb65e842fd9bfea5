//! `whither summary`: where the cycles of a whole program went.
//!
//! ```text
//! procedures, hottest first, until enough is covered ─► examined one by one ─► one table of causes
//! ```

mod view;

use analyse::{ProcedureReport, ProcedureTime, Summary};
use metrology::Estimate;
use vocab::Count;

use crate::cli::SummaryJob;
use crate::examined::{Examiner, combine, executed};
use crate::failure::{ERROR, Failure};
use crate::output::Output;
use crate::progress::Progress;
use crate::sampled::Sampled;

/// One procedure's part.
struct Part {
    time: ProcedureTime,
    summary: Summary,
    /// Instructions that ran.
    executed: Estimate,
}

impl Parts {
    /// Instructions that ran in all of them; what is known of one says nothing of another.
    fn executed(&self) -> Estimate {
        let value = self.parts.iter().map(|part| part.executed.value).sum();
        let of = |part: &Part| part.executed.standard_uncertainty.powi(2);
        Estimate::known(value, self.parts.iter().map(of).sum::<f64>().sqrt())
    }
}

/// What was examined, and what was not.
struct Parts {
    parts: Vec<Part>,
    whole: Summary,
    /// Samples of procedures that have no code to examine, and why the largest has none.
    without_code: Count,
    why: Option<String>,
    notes: Vec<String>,
}

/// Reads, examines, shows.
pub(crate) fn summary(job: &SummaryJob, output: &Output) -> Result<u8, Failure> {
    let mut sampled = Sampled::load(&job.selection)?;
    let times = sampled.procedures(!output.json);
    let examiner = Examiner::new(&sampled, job.machine.as_deref())?;
    let parts = examine(job, &sampled, &examiner, times, !output.json);
    if parts.parts.is_empty() {
        let why = parts.why.unwrap_or_else(|| "no sample lies in a known procedure".into());
        return Err(Failure::new(ERROR, format!("there is no code to examine: {why}"))
            .remedy("`whither prof` still counts the samples"));
    }
    output.write(&view::view(job, &sampled, &examiner, &parts))?;
    sampled.finish()
}

fn examine(
    job: &SummaryJob,
    sampled: &Sampled,
    examiner: &Examiner<'_>,
    times: Vec<ProcedureTime>,
    progress: bool,
) -> Parts {
    let enough = job.cover * sampled.whole().as_f64();
    let mut covered = 0.0;
    let wanted: Vec<ProcedureTime> = times
        .into_iter()
        .take_while(|time| {
            let is_wanted = covered < enough;
            covered += time.count.as_f64();
            is_wanted
        })
        .take(job.most)
        .collect();
    let bar = Progress::new("examining procedures", wanted.len(), progress);
    let mut callees = std::collections::HashMap::new();
    let mut parts = Vec::new();
    let (mut without_code, mut why) = (Count::ZERO, None);
    let mut notes: Vec<String> = Vec::new();
    for time in wanted {
        let around = callees.entry(time.image).or_insert_with(|| examiner.callees(time.image));
        let report = match around {
            Ok(around) => examiner.examine(&time, around).map(|examined| examined.report),
            Err(why) => Err(why.clone()),
        };
        match report {
            Ok(report) => {
                let executed = executed(&report);
                let ProcedureReport { summary, notes: said, .. } = report;
                let about = |note| format!("{}: {note}", sampled.name(&time));
                notes.extend(said.into_iter().map(about));
                parts.push(Part { time, summary, executed });
            }
            Err(reason) => {
                without_code += time.count;
                why = why.or(Some(reason));
            }
        }
        bar.step();
    }
    let whole = combine(parts.iter().map(|part| &part.summary));
    Parts { parts, whole, without_code, why, notes }
}
