//! `whither annotate`: source and assembly with the samples of each line.
//!
//! ```text
//! database ─► procedure ─► image, if it is still the one that ran ─► instructions, lines ─► View
//! ```

mod lines;
mod view;

use analyse::ProcedureTime;
use image::DebugInfo;
use vocab::Count;

use crate::cli::AnnotateJob;
use crate::failure::{ERROR, Failure};
use crate::listing::{Code, Listing, choose};
use crate::output::Output;
use crate::sampled::Sampled;

/// Instructions of a procedure that the text form shows unless all are asked for.
const LINES: usize = 160;
/// The same where every procedure is shown.
const LINES_OF_MANY: usize = 40;

/// A procedure with its code, or why there is none.
pub(crate) struct Annotated {
    pub(crate) time: ProcedureTime,
    pub(crate) code: Result<Listing, String>,
}

/// Reads and shows.
pub(crate) fn annotate(job: &AnnotateJob, output: &Output) -> Result<u8, Failure> {
    let mut sampled = Sampled::load(&job.selection)?;
    let mut times = match job.all {
        true => sampled.procedures(!output.json),
        false => vec![sampled.find(job.procedure.as_deref())?],
    };
    times.retain(|time| time.procedure.is_some());
    if times.is_empty() {
        return Err(nothing(&sampled));
    }
    let annotated = listings(job, &sampled, times);
    if let [Annotated { code: Err(why), .. }] = annotated.as_slice() {
        return Err(Failure::new(ERROR, format!("there is no code to show: {why}"))
            .remedy("`whither prof` still counts its samples"));
    }
    output.write(&view::view(job, &sampled, &annotated))?;
    sampled.finish()
}

fn nothing(sampled: &Sampled) -> Failure {
    let why = sampled.unread().unwrap_or_else(|| "no sample lies in a known procedure".into());
    Failure::new(ERROR, why)
}

/// Image by image, so that each one's debugging information is read once, and dropped before the
/// next.
fn listings(job: &AnnotateJob, sampled: &Sampled, times: Vec<ProcedureTime>) -> Vec<Annotated> {
    let lines = if job.all { LINES_OF_MANY } else { LINES };
    let mut order: Vec<(usize, ProcedureTime)> = times.into_iter().enumerate().collect();
    order.sort_by_key(|(_, time)| (time.image, time.procedure.as_ref().map(|p| p.start)));
    let mut made: Vec<(usize, Annotated)> = Vec::new();
    let mut rest = order.into_iter().peekable();
    while let Some(id) = rest.peek().map(|(_, time)| time.image) {
        let debug_bytes = sampled.images().debug_bytes(id);
        let debug = debug_bytes.as_deref().and_then(DebugInfo::read);
        while let Some((place, time)) = rest.next_if(|(_, time)| time.image == id) {
            let code = listing(job, sampled, &time, debug.as_ref()).map(|mut listing| {
                let all = if job.whole { usize::MAX } else { lines };
                if job.whole || listing.lines.len() <= lines {
                    listing.lines.iter_mut().for_each(|line| line.shown = true);
                }
                choose(&mut listing.lines, all);
                listing
            });
            made.push((place, Annotated { time, code }));
        }
    }
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, annotated)| annotated).collect()
}

fn listing(
    job: &AnnotateJob,
    sampled: &Sampled,
    time: &ProcedureTime,
    debug: Option<&DebugInfo<'_>>,
) -> Result<Listing, String> {
    let procedure = time.procedure.as_ref().ok_or("these samples lie in no known procedure")?;
    let (binary, bytes) = sampled.images().code(time.image).ok_or("its code is not in a file")?;
    let image = sampled.image_name(time.image);
    Code { binary, bytes, syntax: job.syntax, image, debug }.listing(procedure, &time.offsets)
}

/// The samples of all that is shown.
fn whole(annotated: &[Annotated]) -> Count {
    annotated.iter().map(|one| one.time.count).sum()
}
