//! Exact counts of a command, through the tracer as `whither count` has them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracer::launch::Finished;

use crate::context::Context;
use crate::hear::{self, Ask};
use crate::run::Task;

/// How often every instruction ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counted {
    /// (offset, runs) by the file's path.
    pub images: BTreeMap<String, Vec<(u64, u64)>>,
    /// Instructions that ran where no file is.
    pub unplaced: u64,
    /// What was not followed, a sentence each.
    pub notes: Vec<String>,
}

impl Counted {
    /// All processes of a run together.
    pub fn of(finished: &Finished) -> Counted {
        let mut sums: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        let mut counted = Counted::default();
        counted.notes.extend(finished.missing_instruction().map(str::to_owned));
        for process in tracer::counts::counts(&finished.processes) {
            for (spot, runs) in process.instructions() {
                let path = spot.place.and_then(|at| process.images.get(at.image as usize));
                let Some((path, at)) = path.zip(spot.place) else {
                    counted.unplaced += runs;
                    continue;
                };
                *sums.entry(path.clone()).or_default().entry(at.offset).or_default() += runs;
            }
            if !process.is_complete {
                counted.notes.push(format!("process {} left counts out", process.key.pid));
            }
            let lost = process.execs.iter().filter(|(_, is_followed)| !is_followed);
            counted.notes.extend(lost.map(|(path, _)| format!("{path} was not followed")));
        }
        let list = |(path, runs): (String, BTreeMap<u64, u64>)| (path, runs.into_iter().collect());
        counted.images = sums.into_iter().map(list).collect();
        counted
    }
}

/// The counts of a task, kept from an earlier run or made now. Its number among the tasks under way
/// is `place`.
///
/// # Errors
///
/// The program's run, or what is wrong with its answer.
pub fn counted(
    context: &Context,
    task: &Task,
    root: &std::path::Path,
    place: usize,
) -> Result<Counted, String> {
    let key = context.key("exact-counts", task, &[], 1);
    if let Some(counted) = context.kept.find(&key) {
        return Ok(counted);
    }
    let streams = hear::streams_of(root, place)?;
    let (counted, _) = hear::hear::<Counted>(task, &Ask::Counts, &streams)?;
    context.kept.put(&key, &counted)?;
    Ok(counted)
}
