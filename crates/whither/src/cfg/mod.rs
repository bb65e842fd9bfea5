//! `whither cfg`: a procedure's flow graph with frequencies and stalls.
//!
//! ```text
//! database ─► procedure ─► flow, samples ─► analyse ─► View (text, JSON) or Graph (SVG, dot)
//! ```

mod picture;
mod view;

use analyse::ProcedureTime;

use crate::cli::{CfgFormat, CfgJob};
use crate::examined::{Examined, Examiner};
use crate::failure::{ERROR, Failure};
use crate::listing::{Code, Listing};
use crate::output::Output;
use crate::sampled::Sampled;

/// A procedure as it is drawn.
struct Drawn {
    time: ProcedureTime,
    examined: Examined,
    listing: Listing,
}

/// Reads, examines, draws.
pub(crate) fn cfg(job: &CfgJob, output: &Output) -> Result<u8, Failure> {
    let mut sampled = Sampled::load(&job.selection)?;
    let time = sampled.find(job.procedure.as_deref())?;
    let examiner = Examiner::new(&sampled, job.machine.as_deref())?;
    let drawn = draw(job, &sampled, &examiner, time).map_err(|why| {
        Failure::new(ERROR, format!("there is no flow to draw: {why}"))
            .remedy("`whither prof` still counts its samples")
    })?;
    match job.format {
        CfgFormat::Text => output.write(&view::view(&sampled, &examiner.evidence(), &drawn))?,
        _ if output.json => output.write(&view::view(&sampled, &examiner.evidence(), &drawn))?,
        CfgFormat::Svg => {
            output.write_text(&show::render_graph_svg(&picture::graph(&sampled, &drawn)))?;
        }
        CfgFormat::Dot => {
            output.write_text(&show::render_graph_dot(&picture::graph(&sampled, &drawn)))?;
        }
    }
    sampled.finish()
}

fn draw(
    job: &CfgJob,
    sampled: &Sampled,
    examiner: &Examiner<'_>,
    time: ProcedureTime,
) -> Result<Drawn, String> {
    let callees = examiner.callees(time.image)?;
    let examined = examiner.examine(&time, &callees)?;
    let (binary, bytes) = sampled.images().code(time.image).ok_or("its code is not in a file")?;
    let image = sampled.image_name(time.image);
    let code = Code { binary, bytes, syntax: job.syntax, image, debug: None };
    let listing = code.flow_listing(&examined.graph, &time.offsets)?;
    Ok(Drawn { time, examined, listing })
}
