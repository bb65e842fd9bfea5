//! Running a task: start it, wait for it, count its time, check what it printed.
//!
//! A task is a program of the suite at one size, or any other command. Times are the kernel's own
//! account of the process and of the children it waited for; the check happens after the clock
//! has stopped.

mod check;
mod peak;
mod server;
mod spawn;
mod strip;
mod task;

pub use check::{Digest, digest_of, sha256_hex};
pub use spawn::Spent;
pub use strip::known as known_stripper;
pub use task::{Task, split_words};

use std::path::Path;

use spawn::Start;

/// What goes before a command.
#[derive(Debug, Clone, Default)]
pub struct Wrap {
    /// The words; none for a bare run.
    pub words: Vec<String>,
    /// The command follows as one word, quoted, not as several.
    pub joined: bool,
}

/// What a run left behind.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The time it took.
    pub spent: Spent,
    /// The sha256 of the output that is checked, when one is.
    pub output: Option<String>,
}

/// Runs `task` once under `wrap` and checks its output.
///
/// # Errors
///
/// A sentence: it did not start, failed, took too long, or printed something else.
pub fn run(task: &Task, wrap: &Wrap, streams: &Path) -> Result<Outcome, String> {
    check::clear_outputs(task)?;
    let start = Start::new(task, wrap, streams)?;
    let spent = if task.clients.is_empty() {
        start.spawn(&[])?.wait()?
    } else {
        server::serve(task, &start, streams)?
    };
    if !spent.success() {
        return Err(format!("{} {}", task.name, spent.ending(&start.stderr)));
    }
    let output = check::check(task, streams)?;
    // Only inputs stay: two work directories made from nothing are the same to the byte.
    check::clear_outputs(task)?;
    Ok(Outcome { spent, output })
}
