//! `whither count`: exact execution counts through the tracer.
//!
//! ```text
//! program under an engine ─► tallies by block ─► runs by image and offset ─► procedures, blocks, code
//! ```

mod blocks;
mod tally;
mod view;

use std::os::unix::process::ExitStatusExt;

use collect::KernelLayout;
use image::DebugInfo;
use tracer::launch::Launch;
use tracer::settings::Listener;

use crate::cli::CountJob;
use crate::failure::{Failure, RUN_FAILED, passed_on};
use crate::listing::{Code, Listing, choose};
use crate::model::{ENGINES, failure};
use crate::output::Output;
use crate::run::Images;
use tally::{Counted, RUNS};

/// Lines of code a procedure.
const LINES: usize = 40;

/// Runs the program, counts, reports; returns the program's own status.
pub(crate) fn count(job: &CountJob, output: &Output) -> Result<u8, Failure> {
    output.check_file()?;
    let Some((name, arguments)) = job.program.split_first() else {
        return Err(Failure::new(RUN_FAILED, "no program was named"));
    };
    let launch = Launch {
        program: name.clone(),
        arguments: arguments.to_vec(),
        listener: Listener::Tally { counts_accesses: job.counts_accesses },
        engine: job.engine.clone(),
        ..Launch::new("")
    };
    let finished = launch.run(&ENGINES).map_err(failure)?;
    let counted = Counted::read(&finished);
    let images = Images::load(&counted.profile, &KernelLayout::default(), !output.json);
    let times = analyse::by_procedure(&counted.profile, RUNS, images.procedures());
    let hottest: Vec<(usize, Result<Listing, String>)> = (0..times.len().min(job.hottest))
        .map(|row| (row, listing(job, &counted, &images, &times[row])))
        .collect();
    let blocks = blocks::blocks(&counted.profile, &images, &times);
    output.write(&view::view(&view::Report {
        job,
        finished: &finished,
        counted: &counted,
        images: &images,
        times: &times,
        hottest: &hottest,
        blocks: &blocks,
    }))?;
    Ok(passed_on(finished.status.code(), finished.status.signal()))
}

fn listing(
    job: &CountJob,
    counted: &Counted,
    images: &Images,
    time: &analyse::ProcedureTime,
) -> Result<Listing, String> {
    let procedure = time.procedure.as_ref().ok_or("this code lies in no known procedure")?;
    let (binary, bytes) = images.code(time.image).ok_or("its code is not in a file")?;
    let image = counted.profile.image(time.image).map_or("", |image| image.short_name());
    let debug_bytes = images.debug_bytes(time.image);
    let debug = debug_bytes.as_deref().and_then(DebugInfo::read);
    let code = Code { binary, bytes, syntax: job.syntax, image, debug: debug.as_ref() };
    let mut listing = code.listing(procedure, &time.offsets)?;
    choose(&mut listing.lines, LINES);
    Ok(listing)
}
