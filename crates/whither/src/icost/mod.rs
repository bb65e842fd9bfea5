//! `whither icost`: what fixing this, that or both would save.
//!
//! ```text
//! IcostJob ─► tracer (an engine, or a trace) ─► icost::sample: windows of labelled steps
//!                                                     │
//!   View ◄─ words ◄─ answer: costs by category, by ◄──┘
//!                    procedure, line or instruction
//! ```

mod answer;
mod listen;
mod naming;
mod play;
mod players;
mod view;
mod words;

pub(crate) use answer::{Answer, Asked};
use listen::listen;
pub(crate) use listen::{Heard, listen_and_time};
pub(crate) use naming::Names;
pub(crate) use play::{Played, play, what_played};
pub(crate) use view::{breakdown, costs, estimate, interactions, together};

use crate::cli::{IcostBy, IcostJob};
use crate::failure::{Failure, RUN_FAILED};
use crate::output::Output;
use crate::progress::Progress;

/// Runs the program and reports; returns the program's own status.
pub(crate) fn icost(job: &IcostJob, output: &Output) -> Result<u8, Failure> {
    output.check_file()?;
    let heard = listen(job)?;
    check(job, &heard)?;
    let mut names = Names::load(&heard, !output.json);
    if job.by == IcostBy::Line {
        names.read_lines();
    }
    let bar = Progress::clock("idealising", !output.json);
    let answer = Answer::of(job, &heard.sampled, &names)?;
    drop(bar);
    output.write(&view::view(job, &heard, &answer, &names))?;
    Ok(heard.status())
}

/// Whether there is anything to speak about.
pub(crate) fn check(job: &IcostJob, heard: &Heard) -> Result<(), Failure> {
    if !heard.sampled.windows.is_empty() {
        return Ok(());
    }
    let what = format!(
        "the program ran {} instructions, fewer than the {} of a window",
        heard.sampled.instructions, job.plan.window_instructions
    );
    Err(Failure::new(RUN_FAILED, what).remedy("give a shorter --window, or more to do"))
}
