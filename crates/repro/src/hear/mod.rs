//! `repro hear ASK OUT -- PROGRAM ARGS`: runs a program under the tracer and writes what was asked.
//!
//! Rows start this around a task, as they start any peer, so that the task's directory,
//! environment, input and clients are the same under everything. ASK is JSON; the answer goes to
//! OUT; the program's own status comes back.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tracer::launch::{Engines, Finished, Launch};
use tracer::settings::Listener;
use tracer::stream::{InstructionStream, Live};
use tracer::trace::Audience;

use crate::agreement::{Listeners, Question};
use crate::context::Context;
use crate::mux::truth::Loggers;
use crate::native::Counted;
use crate::run::{self, Outcome, Task, Wrap};
use crate::witness::Witnesses;

/// The word for it on the command line.
pub const VERB: &str = "hear";
/// The tracer's own failure, as `env` has it.
const FAILED: u8 = 125;

/// The tracer's engines, built beside this program.
pub(crate) static ENGINES: Engines<'static> = Engines {
    plugin: include_bytes!(env!("WHITHER_PLUGIN")),
    native: include_bytes!(env!("WHITHER_NATIVE")),
};

/// What is asked of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Ask {
    /// How many instructions it runs: a number.
    Instructions,
    /// How often every instruction ran: a `native::Counted`.
    Counts,
    /// How the cores agree on it: an `agreement::Answer`.
    Agreement(Question),
    /// What idealising saves on the graph and really: an `idealise::Answer`.
    Idealise(crate::idealise::Question),
    /// Every event of its busiest thread, slice by slice, into a file: that thread's instructions.
    Slices(crate::mux::truth::Question),
    /// Modelled samples beside exact truth: a `witness::Witness`.
    Witness(crate::witness::Question),
    /// Its instructions into this trace file; the answer says nothing.
    Trace(std::path::PathBuf),
}

/// Runs `task` with `ask`; files lie under `streams`.
///
/// # Errors
///
/// The run's sentence, or that it left no answer.
pub fn hear<T: DeserializeOwned>(
    task: &Task,
    ask: &Ask,
    streams: &Path,
) -> Result<(T, Outcome), String> {
    let here = std::env::current_exe().map_err(|e| format!("this executable: {e}"))?;
    let (question, answer) = (streams.join("ask"), streams.join("answer"));
    let wrong = |e: std::io::Error| format!("{}: {e}", task.name);
    let text = serde_json::to_string(ask).map_err(|e| e.to_string())?;
    fs::write(&question, text).map_err(wrong)?;
    let word = |path: &Path| path.to_string_lossy().into_owned();
    let words = vec![word(&here), VERB.to_owned(), word(&question), word(&answer), "--".to_owned()];
    let outcome = run::run(task, &Wrap { words, joined: false }, streams)?;
    let text = fs::read_to_string(&answer).map_err(wrong)?;
    let answer = serde_json::from_str(&text)
        .map_err(|e| format!("{}: its answer cannot be read: {e}", task.name))?;
    Ok((answer, outcome))
}

/// A directory for one task's run beside others of this process that are under way.
///
/// # Errors
///
/// It cannot be made.
pub fn streams_of(root: &Path, place: usize) -> Result<std::path::PathBuf, String> {
    let path = root.join(place.to_string());
    fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// What tells one build of this program, and so of the cores in it, from another.
///
/// # Errors
///
/// The executable cannot be read.
pub fn version(_: &Context) -> Result<String, String> {
    let here = std::env::current_exe().map_err(|e| format!("this executable: {e}"))?;
    let bytes = fs::read(here).map_err(|e| format!("this executable: {e}"))?;
    let hash = run::sha256_hex(&bytes);
    Ok(format!("{} ({})", env!("CARGO_PKG_VERSION"), hash.get(..8).unwrap_or(&hash)))
}

/// Runs the verb with what follows it; the exit status comes back.
pub fn main(arguments: &[OsString]) -> u8 {
    match act(arguments) {
        Ok(status) => passed(status),
        Err(sentence) => {
            eprintln!("repro: {sentence}");
            FAILED
        }
    }
}

/// The program's status as a shell would have it.
fn passed(status: ExitStatus) -> u8 {
    let signal = || 128_u8.saturating_add(status.signal().unwrap_or(0) as u8);
    status.code().map_or_else(signal, |code| code as u8)
}

fn act(arguments: &[OsString]) -> Result<ExitStatus, String> {
    let [ask, out, dashes, program, rest @ ..] = arguments else {
        return Err("hear: ASK OUT -- PROGRAM ARGS".to_owned());
    };
    if dashes != "--" {
        return Err("hear: the program comes after --".to_owned());
    }
    let text = fs::read_to_string(ask).map_err(|e| format!("hear: {e}"))?;
    let ask: Ask = serde_json::from_str(&text).map_err(|e| format!("hear: {e}"))?;
    let launch =
        Launch { arguments: rest.to_vec(), is_repeatable: true, ..Launch::new(program.clone()) };
    let (answer, status) = answer(ask, launch)?;
    fs::write(out, answer).map_err(|e| format!("hear: {e}"))?;
    Ok(status)
}

fn answer(ask: Ask, launch: Launch) -> Result<(String, ExitStatus), String> {
    let said = |e: serde_json::Error| e.to_string();
    match ask {
        Ask::Instructions => {
            let listener = Listener::Tally { counts_accesses: false };
            let finished = launched(Launch { listener, ..launch })?;
            let count: u64 = instructions(&finished);
            Ok((count.to_string(), finished.status))
        }
        Ask::Counts => {
            let listener = Listener::Tally { counts_accesses: false };
            let finished = launched(Launch { listener, ..launch })?;
            let text = serde_json::to_string(&Counted::of(&finished)).map_err(said)?;
            Ok((text, finished.status))
        }
        Ask::Trace(path) => {
            let finished = launched(Launch { listener: Listener::Trace(path), ..launch })?;
            Ok(("null".to_owned(), finished.status))
        }
        Ask::Slices(question) => {
            let mut loggers = Loggers::new(question)?;
            let finished = listened(launch, &mut loggers)?;
            Ok((loggers.finish()?.to_string(), finished.status))
        }
        Ask::Witness(question) => {
            let mut witnesses = Witnesses::new(question)?;
            let live = Live { launch, engines: ENGINES };
            let (replayed, finished) = live.play(&mut witnesses).map_err(|e| e.to_string())?;
            if !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
                return Err("a part of the program's instructions was lost".to_owned());
            }
            let text = serde_json::to_string(&witnesses.finish()).map_err(said)?;
            Ok((text, finished.status))
        }
        Ask::Agreement(question) => {
            let mut listeners = Listeners::new(question)?;
            let finished = listened(launch, &mut listeners)?;
            Ok((serde_json::to_string(&listeners.answer()).map_err(said)?, finished.status))
        }
        Ask::Idealise(question) => {
            let mut listeners = crate::idealise::Listeners::new(question)?;
            let finished = listened(launch, &mut listeners)?;
            Ok((serde_json::to_string(&listeners.answer()).map_err(said)?, finished.status))
        }
    }
}

/// Plays a running program to an audience.
fn listened<A: Audience>(launch: Launch, audience: &mut A) -> Result<Finished, String> {
    let live = Live { launch, engines: ENGINES };
    let (replayed, finished) = live.play(audience).map_err(|e| e.to_string())?;
    if !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
        return Err("a part of the program's instructions was lost".to_owned());
    }
    Ok(finished)
}

fn launched(launch: Launch) -> Result<Finished, String> {
    launch.run(&ENGINES).map_err(|e| e.to_string())
}

fn instructions(finished: &Finished) -> u64 {
    let counts = tracer::counts::counts(&finished.processes);
    counts.iter().map(|process| process.totals().instructions).sum()
}
