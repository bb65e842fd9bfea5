//! What collection takes: memory with many processes, and disk for a week.

mod processes;

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
    Ok(result)
}
