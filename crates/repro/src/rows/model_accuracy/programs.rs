//! Programs: user cycles of the whole run.

use serde::{Deserialize, Serialize};

use super::{Asked, Line};
use crate::native::{self, Kept};
use crate::result::RowResult;
use crate::run::{self, Task};

/// What a look runs.
const QUICK: &[&str] = &["art", "bzip2", "mcf"];
/// A program with more of its time in the kernel, which is not modelled, is listed only.
const SYSTEM_SHARE_MAX: f64 = 0.05;

/// What the machine took.
#[derive(Debug, Serialize, Deserialize)]
struct Native {
    cycles: Kept,
    /// System time over all CPU time, all kept runs together.
    system_share: f64,
}

pub(super) fn lines(asked: &Asked<'_>, result: &mut RowResult) -> Vec<Line> {
    let names = if asked.context.quick { QUICK } else { &[] };
    let (tasks, wrong) = asked.context.tasks(names);
    result.wrong.extend(wrong);
    asked.context.progress.start(tasks.len() as u64);
    let mut lines = Vec::new();
    for task in &tasks {
        asked.context.progress.step(&task.name);
        match line(asked, task) {
            Ok(line) => {
                result.remember(task);
                lines.push(line);
            }
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    lines
}

fn line(asked: &Asked<'_>, task: &Task) -> Result<Line, String> {
    let modelled = asked.model(task)?;
    let native = native(asked, task)?;
    let share = native.system_share;
    let unscored = (share > SYSTEM_SHARE_MAX)
        .then(|| format!("no: {:.0} % of its time is the kernel's", 100.0 * share));
    let kind = "program".to_owned();
    Ok(Line { kind, name: task.name.clone(), modelled, native: native.cycles, unscored })
}

fn native(asked: &Asked<'_>, task: &Task) -> Result<Native, String> {
    let key = asked.native_key(task);
    if let Some(native) = asked.context.kept.find(&key) {
        return Ok(native);
    }
    let wrap = native::as_traced();
    let (mut system, mut all) = (0.0, 0.0);
    let cycles = native::repeat(
        asked.pinned,
        asked.wanted,
        || -> Result<f64, String> {
            let spent = run::run(task, &wrap, &asked.context.work.streams()?)?.spent;
            system += spent.system_seconds;
            all += spent.cpu_seconds();
            Ok(spent.user_seconds)
        },
        |told| told.run * told.clock_hz,
    )?;
    let native = Native { cycles, system_share: if all > 0.0 { system / all } else { 0.0 } };
    asked.context.kept.put(&key, &native)?;
    Ok(native)
}
