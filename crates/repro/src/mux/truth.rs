//! One pass that logs every event, slice by slice. Everything else replays that log.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::core::{Mode, Settings};
use model::event::Event;
use model::fast::FastCore;
use model::machine::Machine;
use model::slices::Sliced;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use pmu::schedule::OPENING_CYCLES_MIN;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tracer::results::ProcessKey;
use tracer::stream::{InstructionStream, Recorded};
use tracer::trace::Audience;

use super::columns::{self, Columns, Writer};
use crate::context::Context;
use crate::hear::{self, Ask};
use crate::run::{Task, sha256_hex};

/// The slice of the log, in cycles.
pub const LOG_CYCLES: u64 = 5_000;
/// As long as an opening may last, the log is as fine as its slices.
const OPENING_CYCLES: u64 = 12_000_000;

/// Raised when an event comes to count something else, or slices change: older logs are then of no
/// use.
const DEFINITIONS: u32 = 3;

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The machine.
    pub machine: String,
    /// How it runs: `native`, `single` or `in-order`.
    pub mode: String,
    /// The event that ends a slice, by name.
    pub boundary: String,
    /// How many of it.
    pub slice: u64,
    /// The file.
    pub path: PathBuf,
}

impl Question {
    /// Every 5,000 cycles of a machine that runs as it is.
    pub fn by_cycles(machine: &str) -> Question {
        Question {
            machine: machine.to_owned(),
            mode: "native".to_owned(),
            boundary: Event::Cycles.name().to_owned(),
            slice: LOG_CYCLES,
            path: PathBuf::new(),
        }
    }
}

fn mode(name: &str) -> Option<Mode> {
    match name {
        "native" => Some(Mode::Native),
        "single" => Some(Mode::Single),
        "in-order" => Some(Mode::InOrder),
        _ => None,
    }
}

/// Those who log a program's threads. The busiest one's log is kept.
#[derive(Debug)]
pub struct Loggers {
    machine: Arc<Machine>,
    settings: Settings,
    boundary: Event,
    slice: u64,
    path: PathBuf,
    threads: usize,
    busiest: Option<(u64, PathBuf)>,
    wrong: Option<String>,
}

impl Loggers {
    /// Nothing has been heard yet.
    ///
    /// # Errors
    ///
    /// The machine, the mode or the event is not known.
    pub fn new(question: Question) -> Result<Loggers, String> {
        let machine = Machine::named(&question.machine).map_err(|e| e.to_string())?;
        let mode = mode(&question.mode).ok_or("no mode of that name")?;
        let boundary = Event::named(&question.boundary).ok_or("no event of that name")?;
        Ok(Loggers {
            machine: Arc::new(machine),
            settings: Settings { mode, ..Settings::default() },
            boundary,
            slice: question.slice,
            path: question.path,
            threads: 0,
            busiest: None,
            wrong: None,
        })
    }

    /// Puts the busiest thread's log in its place; its instructions come back.
    ///
    /// # Errors
    ///
    /// Nothing ran, or a log could not be written.
    pub fn finish(self) -> Result<u64, String> {
        if let Some(sentence) = self.wrong {
            return Err(sentence);
        }
        let (instructions, path) = self.busiest.ok_or("nothing ran")?;
        std::fs::rename(path, &self.path).map_err(|e| format!("{}: {e}", self.path.display()))?;
        Ok(instructions)
    }
}

impl Audience for Loggers {
    type Core = Logger;

    fn thread(&mut self, _: ProcessKey, _: u32) -> Logger {
        let path = self.path.with_extension(format!("thread{}", self.threads));
        self.threads += 1;
        let core = FastCore::new(&self.machine, self.settings);
        let file = File::create(&path).and_then(|file| Writer::new(BufWriter::new(file)));
        let mut sliced = Sliced::by(core, self.boundary, self.slice);
        if self.boundary == Event::Cycles {
            sliced = sliced.opening(self.slice.min(OPENING_CYCLES_MIN), OPENING_CYCLES);
        }
        Logger { sliced, file: file.map_err(|e| e.to_string()), path }
    }

    fn ended(&mut self, _: ProcessKey, _: u32, mut core: Logger) {
        core.sliced.finish();
        core.write();
        if let Ok(file) = &mut core.file
            && let Err(error) = file.flush()
        {
            core.file = Err(error.to_string());
        }
        if let Err(sentence) = &core.file {
            self.wrong = Some(format!("{}: {sentence}", core.path.display()));
        }
        let instructions = core.sliced.core().counts()[Event::Instructions];
        let best = self.busiest.as_ref().map_or(0, |(best, _)| *best);
        let loser = if instructions > best {
            self.busiest.replace((instructions, core.path)).map(|(_, path)| path)
        } else {
            Some(core.path)
        };
        if let Some(path) = loser {
            // A file that stays is in nobody's way.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The listener of one thread.
#[derive(Debug)]
pub struct Logger {
    sliced: Sliced,
    file: Result<Writer<BufWriter<File>>, String>,
    path: PathBuf,
}

impl Logger {
    fn write(&mut self) {
        for slice in self.sliced.take() {
            if let Ok(file) = &mut self.file
                && let Err(error) = file.push(&slice)
            {
                self.file = Err(error.to_string());
            }
        }
    }
}

impl CoreListener for Logger {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.sliced.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.sliced.executed(id, ran, accesses);
        if self.sliced.slices().len() >= 64 {
            self.write();
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.sliced.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.sliced.interrupted();
    }
}

/// The log of a task, kept from an earlier run or made now. Its number among the tasks under way
/// is `place`.
///
/// Estimates and truth both follow from one log, so a log of an older core serves as well: the key
/// leaves the core's version out.
///
/// # Errors
///
/// The program's run, or what is wrong with the file.
pub fn logged(
    context: &Context,
    task: &Task,
    question: Question,
    root: &Path,
    place: usize,
) -> Result<Columns, String> {
    let mut key = context.key("mux-log", task, &[&question.machine, &question.mode], 1);
    if let Some(key) = key.as_object_mut() {
        key.insert("slice".to_owned(), json!([question.boundary, question.slice]));
        key.insert("definitions".to_owned(), json!(DEFINITIONS));
        key.remove("seed");
    }
    let hash = sha256_hex(key.to_string().as_bytes());
    let directory = context.work.kept();
    std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let path = directory.join(format!("{}.slices", hash.get(..32).unwrap_or(&hash)));
    let found: Option<u64> = context.kept.find(&key);
    if found.is_some()
        && let Some(columns) = File::open(&path).ok().and_then(columns::read)
    {
        return Ok(columns);
    }
    let streams = hear::streams_of(root, place)?;
    let question = Question { path: path.clone(), ..question };
    let (instructions, _) = hear::hear::<u64>(task, &Ask::Slices(question), &streams)?;
    context.kept.put(&key, &instructions)?;
    let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    columns::read(file).ok_or_else(|| format!("{}: the log is damaged", path.display()))
}

/// The log of a trace of the repository.
///
/// # Errors
///
/// The trace cannot be read, or the log not written.
pub fn replayed(context: &Context, name: &str, question: Question) -> Result<Columns, String> {
    let trace = context.suite.data.join("traces").join(format!("{name}.trace"));
    let path = context.work.streams()?.join("slices");
    let mut loggers = Loggers::new(Question { path: path.clone(), ..question })?;
    let (replayed, ()) = Recorded { path: trace }.play(&mut loggers).map_err(|e| e.to_string())?;
    if !replayed.broken.is_empty() || replayed.skipped_bytes > 0 {
        return Err(format!("the trace {name} is damaged"));
    }
    loggers.finish()?;
    let file = File::open(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    columns::read(file).ok_or_else(|| format!("{name}: the log is damaged"))
}
