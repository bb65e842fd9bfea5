//! `whither calc`: cycles, frequencies and culprits of a procedure, instruction by instruction.
//!
//! ```text
//! database ─► procedure ─► flow, samples ─► analyse ─► listing with bubbles (the paper's figure 2)
//!                                                  └─► where the cycles went (figure 4)
//! ```

mod listing;
mod view;

use analyse::ProcedureTime;
use image::DebugInfo;

use crate::cli::CalcJob;
use crate::examined::{Examined, Examiner};
use crate::failure::{ERROR, Failure};
use crate::listing::{Code, Listing};
use crate::output::Output;
use crate::sampled::Sampled;

/// Everything that the view is made from.
struct Calculated {
    time: ProcedureTime,
    examined: Examined,
    listing: Listing,
}

/// Reads, examines, shows.
pub(crate) fn calc(job: &CalcJob, output: &Output) -> Result<u8, Failure> {
    let mut sampled = Sampled::load(&job.selection)?;
    let time = sampled.find(job.procedure.as_deref())?;
    let examiner = Examiner::new(&sampled, job.machine.as_deref())?;
    let calculated = calculate(job, &sampled, &examiner, time).map_err(|why| {
        Failure::new(ERROR, format!("there is no code to examine: {why}"))
            .remedy("`whither prof` still counts its samples")
    })?;
    output.write(&view::view(job, &sampled, &examiner, &calculated))?;
    sampled.finish()
}

fn calculate(
    job: &CalcJob,
    sampled: &Sampled,
    examiner: &Examiner<'_>,
    time: ProcedureTime,
) -> Result<Calculated, String> {
    let callees = examiner.callees(time.image)?;
    let examined = examiner.examine(&time, &callees)?;
    let (binary, bytes) = sampled.images().code(time.image).ok_or("its code is not in a file")?;
    let debug_bytes = sampled.images().debug_bytes(time.image);
    let debug = debug_bytes.as_deref().and_then(DebugInfo::read);
    let image = sampled.image_name(time.image);
    let code = Code { binary, bytes, syntax: job.syntax, image, debug: debug.as_ref() };
    let listing = code.flow_listing(&examined.graph, &time.offsets)?;
    Ok(Calculated { time, examined, listing })
}
