//! Microbenchmarks: cycles an iteration.

use std::path::Path;
use std::process::Command;

use super::{Asked, Line, Modelled};
use crate::native::{self, Kept};
use crate::result::RowResult;
use crate::run::{self, Task};
use crate::smoke;

/// The chain that the clock is told by cannot be scored by it.
const DEFINES_THE_CLOCK: &str = "chain-add";
/// What a look runs: one of each class.
const QUICK: [&str; 12] = [
    "chain-imul",
    "chain-addsd",
    "port-add",
    "port-load",
    "l1-chase",
    "l2-chase",
    "stream-sum",
    "branch-coin",
    "indirect-cycle",
    "return-deep",
    "forward-same",
    "divide-double",
];
/// Instructions of the shorter modelled run; the longer one has three times as many iterations.
const MODELLED_INSTRUCTIONS: u64 = 2_000_000;
/// A stream goes once round its arena before anything counts.
const STREAM_ITERATIONS: u64 = 600_000;
/// Cycles by which the longer native run is longer, at least.
const NATIVE_CYCLES: f64 = 3e8;

/// One loop as `micro --list` tells it.
#[derive(Debug, Clone, PartialEq)]
struct Micro {
    class: String,
    name: String,
    instructions: u64,
}

impl Micro {
    fn short(&self) -> u64 {
        let iterations = MODELLED_INSTRUCTIONS / self.instructions.max(1);
        if self.class == "streams" { iterations.max(STREAM_ITERATIONS) } else { iterations }
    }
}

pub(super) fn lines(asked: &Asked<'_>, result: &mut RowResult) -> Result<Vec<Line>, String> {
    let directory = asked.context.work.program("micro");
    let made = |e: std::io::Error| format!("{}: {e}", directory.display());
    std::fs::create_dir_all(&directory).map_err(made)?;
    smoke::compile(asked.context, "micro/micro.c", &directory)?;
    let mut micros = list(&directory.join("program"))?;
    if asked.context.quick {
        micros.retain(|micro| QUICK.contains(&micro.name.as_str()));
        let count = micros.len();
        result.notes.push(format!("quick: {count} microbenchmarks, few programs, short inputs"));
    }
    asked.context.progress.start(micros.len() as u64);
    let mut lines = Vec::new();
    for micro in &micros {
        asked.context.progress.step(&micro.name);
        match line(asked, micro, &directory) {
            Ok(line) => lines.push(line),
            Err(sentence) => result.wrong.push(format!("{sentence}; left out")),
        }
    }
    Ok(lines)
}

fn list(program: &Path) -> Result<Vec<Micro>, String> {
    let output = Command::new(program).arg("--list").output();
    let output = output.map_err(|e| format!("the microbenchmarks cannot be started: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(micro_of).collect())
}

fn micro_of(line: &str) -> Option<Micro> {
    let mut words = line.split(' ');
    let (class, name) = (words.next()?.to_owned(), words.next()?.to_owned());
    Some(Micro { class, name, instructions: words.next()?.parse().ok()? })
}

fn line(asked: &Asked<'_>, micro: &Micro, directory: &Path) -> Result<Line, String> {
    let task = |iterations: u64| -> Result<Task, String> {
        let command = format!("./program {} {iterations}", micro.name);
        let task = Task::from_command(&command, directory)?;
        let environment = Some(std::collections::BTreeMap::new());
        Ok(Task { name: micro.name.clone(), environment, ..task })
    };
    let short = micro.short();
    let (less, more) = (asked.model(&task(short)?)?, asked.model(&task(3 * short)?)?);
    let modelled = Modelled { cycles: (more.cycles - less.cycles) / (2 * short) as f64, ..more };
    let long = short + native_iterations(modelled.cycles);
    let native = native_cycles(asked, &task(short)?, &task(long)?, long - short)?;
    let is_clock = micro.name == DEFINES_THE_CLOCK;
    Ok(Line {
        kind: micro.class.clone(),
        name: micro.name.clone(),
        modelled,
        native,
        unscored: is_clock.then(|| "no: it is how the clock is told".to_owned()),
    })
}

/// Iterations by which the longer native run is longer: a power of two, so that a model that has
/// changed a little still finds what the machine took.
fn native_iterations(modelled_cycles: f64) -> u64 {
    ((NATIVE_CYCLES / modelled_cycles.max(0.1)) as u64).max(1).next_power_of_two()
}

/// Native cycles an iteration, from the CPU time by which the longer run takes longer: what the
/// kernel does for both is the same.
fn native_cycles(
    asked: &Asked<'_>,
    short: &Task,
    long: &Task,
    iterations: u64,
) -> Result<Kept, String> {
    let key = asked.native_key(long);
    if let Some(kept) = asked.context.kept.find(&key) {
        return Ok(kept);
    }
    let wrap = native::as_traced();
    let seconds = |task: &Task| -> Result<f64, String> {
        Ok(run::run(task, &wrap, &asked.context.work.streams()?)?.spent.cpu_seconds())
    };
    let kept = native::repeat(
        asked.pinned,
        asked.wanted,
        || -> Result<f64, String> { Ok(seconds(long)? - seconds(short)?) },
        |told| told.run * told.clock_hz / iterations as f64,
    )?;
    asked.context.kept.put(&key, &kept)?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_loop_is_read_and_streams_go_round_first() {
        let micro = micro_of("streams stream-page 6").unwrap();
        assert_eq!((micro.name.as_str(), micro.short()), ("stream-page", 600_000));
        assert_eq!(micro_of("chains chain-lea 18").unwrap().short(), 111_111);
        assert_eq!(micro_of("chains chain-lea"), None);
    }

    #[test]
    fn a_model_that_has_changed_a_little_asks_for_the_same_native_run() {
        assert_eq!(native_iterations(32.0), 1 << 24);
        assert_eq!(native_iterations(32.0), native_iterations(35.0));
        assert_eq!(native_iterations(1e12), 1);
    }
}
