//! Modelled samples beside exact truth: one run of a program tells what a profiler would have seen
//! and what happened.
//!
//! ```text
//! stream ─► FastCore<Watch> ─┬─ Account: runs, time, misses           ─┐
//!           one a thread     ├─ Watch: stalls by cause                 ├─ by image and offset
//!                            ├─ Watch: samples, single and double      │   = Witness, a file
//!                            └─ ways between blocks, branch stacks    ─┘
//! Witness ─► procedures ─► analyse::examine ─► estimate beside truth        (rows)
//! ```
//!
//! Estimates and truth follow from one run, so a witness of an older core serves as well as a new
//! one.

mod blame;
mod code;
mod judge;
mod listen;
mod procedures;
mod watch;

use std::path::Path;

use metrology::Draws;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracer::stream::{InstructionStream, Recorded};

pub use blame::{Blamed, CodeStalls, correlation, culprit_of, judge_culprits};
pub use judge::{Frequencies, Within, judge_frequencies};
pub use listen::Witnesses;
pub use procedures::{Examined, Program, Use, load, of_clock};
pub use watch::{GAP_CYCLES, LINES, Line, STACK};

use crate::context::Context;
use crate::hear::{self, Ask};
use crate::run::Task;

/// What is to be witnessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The machine.
    pub machine: String,
    /// Mean periods.
    pub periods: Periods,
    /// A set of samples for each.
    pub seeds: Vec<u64>,
}

/// Mean periods of what is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Periods {
    /// Cycles.
    pub cycles: u64,
    /// Retired instructions.
    pub instructions: u64,
    /// Taken branches between two stacks.
    pub taken: u64,
    /// Misses and mispredicts.
    pub events: u64,
}

/// One instruction: offset, runs, ticks of exact time, exact misses of the instruction cache, stall
/// cycles by cause (the cause's number first), samples by seed and [`Line`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen(pub u64, pub u64, pub u64, pub u64, pub Vec<(u8, u64)>, pub Vec<u32>);

impl Seen {
    /// Where it is in its image.
    pub fn offset(&self) -> u64 {
        self.0
    }

    /// Samples of a seed.
    pub fn samples(&self, seed: usize, line: Line) -> u64 {
        self.5.get(seed * LINES + line as usize).map_or(0, |&count| u64::from(count))
    }
}

/// A way between two offsets and how often it was gone.
pub type Way = (u64, u64, u64);

/// What was seen of one image.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Image {
    /// Its file.
    pub path: String,
    /// Every instruction that ran, by offset.
    pub seen: Vec<Seen>,
    /// Ways from the last instruction of a block to the first of the next, calls and returns apart.
    pub ways: Vec<Way>,
    /// Taken branches in stacks, by seed.
    pub stacks: Vec<Vec<Way>>,
    /// Branches and jumps between double interrupts, by seed; those that ran straight on too.
    pub passed: Vec<Vec<Way>>,
    /// The bytes of every instruction that ran, by offset, where the file may not be at hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub code: Vec<(u64, Vec<u8>)>,
}

/// What was seen of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// What was asked.
    pub question: Question,
    /// Instructions of all threads.
    pub instructions: u64,
    /// Cycles of all threads.
    pub cycles: u64,
    /// Instructions that ran where no file is.
    pub unplaced: u64,
    /// By image.
    pub images: Vec<Image>,
}

/// How many samples of time a run should give: as many as a minute and a half of the paper's
/// collection gave.
pub const SAMPLES: u64 = 400_000;
/// The format of what is kept.
const FORMAT: u32 = 5;

/// Periods for a run of so many instructions. A counter of the 21164 has 16 bits.
fn periods(instructions: u64, is_in_order: bool) -> Periods {
    let cycles = if is_in_order { 2 * instructions } else { instructions / 2 };
    let most = if is_in_order { 60_000 } else { u64::MAX };
    let period = |count: u64, wanted: u64| (count / wanted).clamp(100, most);
    Periods {
        cycles: period(cycles, SAMPLES),
        instructions: period(instructions, SAMPLES),
        taken: period(instructions / 8, SAMPLES / 8),
        events: (instructions / 2_000_000).max(5),
    }
}

/// The witness of a task, kept from an earlier run or made now. Its number among the tasks under
/// way is `place`.
///
/// # Errors
///
/// The program's run, or what is wrong with its answer.
pub fn witnessed(
    context: &Context,
    task: &Task,
    machine: &str,
    seeds: usize,
    root: &Path,
    place: usize,
) -> Result<Witness, String> {
    let mut key = context.key("witness", task, &[machine], seeds);
    if let Some(key) = key.as_object_mut() {
        key.insert("format".to_owned(), json!(FORMAT));
    }
    if let Some(witness) = context.kept.find(&key) {
        return Ok(witness);
    }
    let streams = hear::streams_of(root, place)?;
    let (instructions, _) = hear::hear::<u64>(task, &Ask::Instructions, &streams)?;
    let mut draws = Draws::new(context.seed);
    let question = Question {
        machine: machine.to_owned(),
        periods: periods(instructions, machine == IN_ORDER),
        seeds: (0..seeds).map(|_| draws.bits()).collect(),
    };
    let (witness, _) = hear::hear::<Witness>(task, &Ask::Witness(question), &streams)?;
    context.kept.put(&key, &witness)?;
    Ok(witness)
}

/// The witness of a trace of the repository.
///
/// # Errors
///
/// The trace cannot be read.
pub fn replayed(context: &Context, name: &str, machine: &str) -> Result<Witness, String> {
    let path = context.suite.data.join("traces").join(format!("{name}.trace"));
    // The traces hold about ten million instructions each.
    let periods = periods(10_000_000, machine == IN_ORDER);
    let question =
        Question { machine: machine.to_owned(), periods, seeds: vec![context.seed, !context.seed] };
    let mut witnesses = Witnesses::new(question)?.with_code();
    let (replayed, ()) = Recorded { path }.play(&mut witnesses).map_err(|e| e.to_string())?;
    if !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
        return Err(format!("the trace {name} is damaged"));
    }
    Ok(witnesses.finish())
}

/// The core that issues in order.
pub const IN_ORDER: &str = "alpha21164";
/// The core that does not.
pub const OUT_OF_ORDER: &str = "zen4";
