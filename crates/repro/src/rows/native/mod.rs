//! The analysis on the machine itself: samples of native runs beside what the tracer counts and the
//! modelled core takes.
//!
//! ```text
//! native runs ─► whither record, cpu-clock ─► offsets of files ─┬─ freq-native   beside exact counts
//! the tracer  ─► exact counts, modelled time ───────────────────┴─ time-overlap  beside modelled time
//! ```
//!
//! AVX-512 is hidden from the native runs, since the processor that an engine shows has none and the C library
//! would choose other code.

mod frequency;
mod overlap;

pub(super) use frequency::run as run_frequency;
pub(super) use overlap::run as run_overlap;

use super::model_agreement::side_by_side;
use crate::context::Context;
use crate::native::{self, Sampled};
use crate::result::RowResult;
use crate::run::Task;

/// Samples every task natively, one after the other, then asks `other` of each under the tracer;
/// what failed is in the result.
fn both<T: Send>(
    context: &Context,
    quick: &[&str],
    result: &mut RowResult,
    other: impl Fn(&Task, &std::path::Path, usize) -> Result<T, String> + Sync,
) -> Result<Vec<(Task, Sampled, T)>, String> {
    let (tasks, wrong) = context.tasks(if context.quick { quick } else { &[] });
    result.wrong.extend(wrong);
    context.progress.start(2 * tasks.len() as u64);
    let mut sampled = Vec::new();
    for task in &tasks {
        context.progress.step(&task.name);
        sampled.push(native::sampled(context, task));
    }
    let root = context.work.streams()?;
    let others = side_by_side(&tasks, |place, task| {
        context.progress.step(&task.name);
        other(task, &root, place)
    });
    context.progress.finish();
    let mut found = Vec::new();
    for ((task, sampled), other) in tasks.into_iter().zip(sampled).zip(others) {
        match sampled.and_then(|sampled| Ok((sampled, other?))) {
            Ok((sampled, other)) => {
                result.remember(&task);
                found.push((task, sampled, other));
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    if context.quick && context.commands.is_empty() {
        result.notes.push(format!("quick: {} programs, shorter inputs", quick.len()));
    }
    Ok(found)
}
