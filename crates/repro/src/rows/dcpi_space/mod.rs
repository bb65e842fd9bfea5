//! What collection takes: memory with many processes, and disk for a week.

mod processes;
mod simulated;
mod week;

use show::Table;

use crate::context::Context;
use crate::result::RowResult;

pub(super) fn run(context: &Context) -> Result<RowResult, String> {
    let mut result = RowResult {
        caption: "five hundred live processes, compilations beside them".to_owned(),
        detail: Table::default(),
        ..RowResult::default()
    };
    if let Err(why) = processes::measure(context, &mut result) {
        result.wrong.push(format!("the daemon's memory was not measured: {why}"));
    }
    // A quick week has a tenth of the samples and of the code.
    let scale = if context.quick { 0.1 } else { 1.0 };
    if let Err(why) = week::measure(context, scale, &mut result) {
        result.wrong.push(format!("the week was not measured: {why}"));
    }
    Ok(result)
}

/// A small week: it follows from its seed alone, and must meet its goals at any size.
pub(super) fn smoke(context: &Context) -> Result<RowResult, String> {
    let mut result = RowResult::default();
    week::measure(context, 0.02, &mut result)?;
    Ok(result)
}
