//! The hottest procedures, instruction by instruction.

use analyse::{ProcedureReport, ProcedureTime, Request, Samples};
use image::{Callees, DebugInfo};
use model::machine::Machine;
use vocab::Profile;

use super::SAMPLED;
use super::images::Images;
use crate::cli::RunJob;
use crate::listing::{Code, Listing, choose};

/// Lines of code a procedure: enough for a loop, short enough to read.
const LINES: usize = 24;

/// One procedure's code, or why there is none.
#[derive(Clone, Debug)]
pub(crate) struct HotProcedure {
    /// The place of the procedure in the list of procedures.
    pub(crate) row: usize,
    pub(crate) code: Result<Listing, String>,
    /// How often it ran, how long it took and why, where there is code and a core to hold it to.
    pub(crate) report: Option<ProcedureReport>,
}

/// What code is held to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'a> {
    pub(crate) machine: &'a Machine,
    /// How many of the event a sample stands for.
    pub(crate) period: f64,
}

/// The code of the first procedures of the list.
pub(crate) fn listings(
    times: &[ProcedureTime],
    images: &Images,
    profile: &Profile,
    job: &RunJob,
    held: Option<Held<'_>>,
) -> Vec<HotProcedure> {
    let hot = |(row, time): (usize, &ProcedureTime)| HotProcedure {
        row,
        code: listing(time, images, profile, job),
        report: held.and_then(|held| examined(time, images, profile, held)),
    };
    times.iter().enumerate().take(job.hottest).map(hot).collect()
}

fn listing(
    time: &ProcedureTime,
    images: &Images,
    profile: &Profile,
    job: &RunJob,
) -> Result<Listing, String> {
    let procedure = time.procedure.as_ref().ok_or("these samples lie in no known procedure")?;
    let (binary, bytes) = images.code(time.image).ok_or("its code is not in a file")?;
    let image = profile.image(time.image).map_or("", |image| image.short_name());
    let debug_bytes = images.debug_bytes(time.image);
    let debug = debug_bytes.as_deref().and_then(DebugInfo::read);
    let code = Code { binary, bytes, syntax: job.syntax, image, debug: debug.as_ref() };
    let mut listing = code.listing(procedure, &time.offsets)?;
    choose(&mut listing.lines, LINES);
    Ok(listing)
}

fn examined(
    time: &ProcedureTime,
    images: &Images,
    profile: &Profile,
    held: Held<'_>,
) -> Option<ProcedureReport> {
    let (binary, bytes) = images.code(time.image)?;
    let callees = Callees::new(binary, bytes);
    let (graph, parts) = callees.flow_and_parts_of(time.procedure.as_ref()?)?;
    let event = profile.events.get(usize::from(SAMPLED.0))?;
    let event = (SAMPLED, analyse::Sampled::named(&event.name)?);
    let samples = [Samples::of_profile(profile, (time.image, binary), event, held.period)];
    let report = analyse::examine(&Request {
        graph: &graph,
        parts: &parts,
        machine: held.machine,
        samples: &samples,
        branches: None,
        edge_samples: None,
        exact: None,
        all_samples: profile.tally.stored.0,
    });
    (!report.blocks.is_empty()).then_some(report)
}
