//! Interaction costs: the paper's table 4, figure 3 and table 7.
//!
//! All follow from the program's instructions and the seed alone; no clock is read.

pub(super) mod accuracy;
pub(super) mod signs;
pub(super) mod window;

use serde_json::json;
use tracer::stream::{InstructionStream, Recorded};

use super::model_agreement::side_by_side;
use crate::context::Context;
use crate::hear::{self, Ask};
use crate::idealise::{Answer, Listeners, Question, Variant};
use crate::result::RowResult;
use crate::run::Task;

/// What a look runs.
const QUICK: &[&str] = &["art", "bzip2", "mcf"];
/// The traces that smoke replays and their instructions; suite/traces/README.md says what made
/// them.
const SMOKE: [(&str, u64); 2] = [("applu", 10_839_408), ("art", 9_128_375)];

/// Instructions in windows for detailed samples alone. Many short ones see more of a program than
/// few long ones.
const DETAIL_INSTRUCTIONS: u64 = 20_000;

/// What a row wants to know of every program.
struct Wanted {
    row: &'static str,
    variants: Vec<Variant>,
    windows: usize,
    window_instructions: u64,
    most: u32,
    really: bool,
    shotgun: Option<usize>,
}

impl Wanted {
    fn question(&self, context: &Context, instructions: u64) -> Question {
        Question {
            variants: self.variants.clone(),
            instructions,
            windows: self.windows,
            window_instructions: self.window_instructions,
            seed: context.seed,
            most: self.most,
            really: self.really,
            shotgun: self.shotgun,
            detail_instructions: DETAIL_INSTRUCTIONS,
        }
    }
}

/// The answers of programs by name; what failed is in the result.
type Found = (Vec<(String, Answer)>, RowResult);

fn answers(context: &Context, wanted: &Wanted) -> Result<Found, String> {
    let names = if context.quick { QUICK } else { &[] };
    let (tasks, wrong) = context.tasks(names);
    let version = hear::version(context)?;
    let root = context.work.streams()?;
    context.progress.start(tasks.len() as u64);
    let found = side_by_side(&tasks, |place, task| {
        let streams = hear::streams_of(&root, place);
        let answer = streams.and_then(|at| find_out(context, wanted, task, &version, &at));
        context.progress.step(&task.name);
        answer
    });
    context.progress.finish();
    let mut result = RowResult { wrong, ..RowResult::default() };
    let mut answers = Vec::new();
    for (task, answer) in tasks.iter().zip(found) {
        match answer {
            Ok(answer) if answer.variants.iter().all(|windows| !windows.is_empty()) => {
                result.remember(task);
                answers.push((task.name.clone(), answer));
            }
            Ok(_) => result.wrong.push(format!("{}: too short for a window; left out", task.name)),
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    if context.quick && context.commands.is_empty() {
        result.notes.push(format!("quick: {} programs, shorter inputs", QUICK.len()));
    }
    result.notes.push(format!(
        "{} windows of {} instructions a program",
        wanted.windows, wanted.window_instructions
    ));
    result.versions.insert("repro".to_owned(), json!(version));
    result.seeds.insert("windows".to_owned(), json!(context.seed));
    Ok((answers, result))
}

fn find_out(
    context: &Context,
    wanted: &Wanted,
    task: &Task,
    version: &str,
    streams: &std::path::Path,
) -> Result<Answer, String> {
    let mut key = context.key(wanted.row, task, &[version], wanted.windows);
    if let Some(key) = key.as_object_mut() {
        key.insert("window_instructions".to_owned(), json!(wanted.window_instructions));
    }
    if let Some(answer) = context.kept.find(&key) {
        return Ok(answer);
    }
    let instructions = length_of(context, task, version, streams)?;
    let ask = Ask::Idealise(wanted.question(context, steady(instructions)));
    let (answer, _) = hear::hear::<Answer>(task, &ask, streams)?;
    context.kept.put(&key, &answer)?;
    Ok(answer)
}

/// The instructions that a program runs. All rows ask, and one run answers them.
fn length_of(
    context: &Context,
    task: &Task,
    version: &str,
    streams: &std::path::Path,
) -> Result<u64, String> {
    let key = context.key("icost-length", task, &[version], 0);
    if let Some(instructions) = context.kept.find(&key) {
        return Ok(instructions);
    }
    let (instructions, _) = hear::hear::<u64>(task, &Ask::Instructions, streams)?;
    context.kept.put(&key, &instructions)?;
    Ok(instructions)
}

/// Leading bits that are kept of a number of instructions.
const STEADY_BITS: u32 = 8;

/// A number of instructions that is the same for runs that differ by little. Windows are laid over
/// it: a program that prints how long it took would otherwise have them elsewhere in every run.
fn steady(instructions: u64) -> u64 {
    let dropped = instructions.checked_ilog2().unwrap_or(0).saturating_sub(STEADY_BITS - 1);
    instructions >> dropped << dropped
}

/// The same on traces of the repository, so that no engine is needed.
fn recorded(context: &Context, wanted: &Wanted) -> Result<Found, String> {
    let mut answers = Vec::new();
    for (name, instructions) in SMOKE {
        let path = context.suite.data.join("traces").join(format!("{name}.trace"));
        let mut listeners = Listeners::new(wanted.question(context, instructions))?;
        let (replayed, ()) = Recorded { path }.play(&mut listeners).map_err(|e| e.to_string())?;
        if !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
            return Err(format!("the trace {name} is damaged"));
        }
        answers.push((name.to_owned(), listeners.answer()));
    }
    Ok((answers, RowResult::default()))
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_lie_over_nearly_all_of_a_program_and_do_not_move_with_its_last_digits() {
        assert_eq!(steady(123_456_789), steady(123_460_000));
        for instructions in [0, 1, 255, 256, 70_001, 123_456_789, 20_100_000_000] {
            let left_out = instructions - steady(instructions);
            assert!(left_out <= instructions / 128, "{instructions}: {left_out}");
        }
    }
}
