//! The hottest procedures, instruction by instruction.

use analyse::ProcedureTime;
use image::DebugInfo;
use vocab::Profile;

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
}

/// The code of the first procedures of the list.
pub(crate) fn listings(
    times: &[ProcedureTime],
    images: &Images,
    profile: &Profile,
    job: &RunJob,
) -> Vec<HotProcedure> {
    let hot = |(row, time): (usize, &ProcedureTime)| HotProcedure {
        row,
        code: listing(time, images, profile, job),
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
