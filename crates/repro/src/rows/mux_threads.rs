//! MPX's figure 4: the loops of `mux-loops` in four threads, each with turns of its own.

use super::mux_loops::measure;
use crate::context::Context;
use crate::result::RowResult;

/// As many as MPX's node had processors.
const THREADS: usize = 4;

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let mut result = measure(context, THREADS)?;
    result.notes.push(
        "estimates and truths are summed over the threads; each is on a modelled core of its own, \
         so that threads do not disturb each other as they did on MPX's machine"
            .to_owned(),
    );
    Ok(result)
}
