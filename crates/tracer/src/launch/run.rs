//! Running a program under an engine and reading what it left.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt, fs, io, thread};

use super::engine::{EngineChoice, Engines, command_line, split_environment};
use super::interrupt::Shield;
use super::packer::Packer;
use super::probe::QemuError;
use super::scratch::Scratch;
use super::target;
use crate::limits::Limit;
use crate::modelled::ModelledThread;
use crate::results::{self, ProcessFile, ProcessKey, ResultsError};
use crate::settings::{Listener, Settings, SettingsError};
use crate::trace::{FILE_HEADER, leftovers};

/// The seed of a repeatable run; any number does.
const SEED: u64 = 1;
/// How often, and how long apart, an engine is tried that is still open for writing.
const BUSY_TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(5);

/// A program to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program's name or path.
    pub program: OsString,
    /// Its arguments, its name left out.
    pub arguments: Vec<OsString>,
    /// Who listens to it.
    pub listener: Listener,
    /// Whether what differs from run to run for no good reason is held fast: the environment, the
    /// addresses, and what the kernel and the engine make up. A single-threaded program that reads no
    /// clock then executes the same instructions every time.
    pub is_repeatable: bool,
    /// Whether what it writes to its standard streams is dropped.
    pub drops_output: bool,
    /// The file that its standard input comes from; ours if none is given.
    pub input: Option<PathBuf>,
    /// Assignments that its environment has beside those it would have.
    pub added_environment: Vec<(OsString, OsString)>,
    /// What runs it.
    pub engine: EngineChoice,
}

/// Why a program could not be run.
#[derive(Debug)]
pub enum LaunchError {
    /// There is no QEMU for it.
    Qemu(QemuError),
    /// The program cannot be traced.
    Target(target::TargetError),
    /// A limit leaves the engine no room.
    Limited(Limit),
    /// There is no place for the results.
    Scratch(io::Error),
    /// The engine could not be told what to do.
    Settings(SettingsError),
    /// The engine could not be started or waited for.
    Start(io::Error),
    /// The program ran but left nothing: QEMU did not load the plugin, or the engine could not begin.
    NoResults(ExitStatus),
    /// The results cannot be read.
    Results(ResultsError),
    /// The trace cannot be made or completed.
    Trace(io::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LaunchError::Qemu(why) => why.fmt(f),
            LaunchError::Target(why) => why.fmt(f),
            LaunchError::Limited(limit) => limit.fmt(f),
            LaunchError::Scratch(why) => write!(f, "no place for the tracer's results: {why}"),
            LaunchError::Settings(why) => why.fmt(f),
            LaunchError::Start(why) => write!(f, "the tracer's engine could not be run: {why}"),
            LaunchError::NoResults(status) => {
                write!(f, "the tracer's engine ended ({status}) without tracing the program")
            }
            LaunchError::Results(why) => why.fmt(f),
            LaunchError::Trace(why) => write!(f, "the trace cannot be written: {why}"),
        }
    }
}

impl std::error::Error for LaunchError {}

/// A program that ran.
#[derive(Debug)]
pub struct Finished {
    /// How the program ended.
    pub status: ExitStatus,
    /// What every process of it left, killed or not, but for what modelled cores tell of every
    /// instruction: [`Finished::modelled`] reads that, a process at a time.
    pub processes: BTreeMap<ProcessKey, ProcessFile>,
    /// The process that was started.
    pub main: ProcessKey,
    /// Where the results lie for as long as somebody may ask.
    scratch: Arc<Scratch>,
}

impl Finished {
    /// One sentence if the program died of an undefined instruction, which may be one that the engine
    /// lacks.
    pub fn missing_instruction(&self) -> Option<&'static str> {
        (self.status.signal() == Some(libc::SIGILL)).then_some(
            "The program died of a trap of its own, or of an instruction that the tracer does not have, \
             such as AVX-512; against the latter helps to rebuild it for x86-64-v3.",
        )
    }

    /// What the modelled cores of a process's threads counted, by instruction too.
    ///
    /// # Errors
    ///
    /// The results cannot be read any more.
    pub fn modelled(
        &self,
        process: ProcessKey,
    ) -> Result<BTreeMap<u32, ModelledThread>, ResultsError> {
        results::read(&self.scratch.path().join(process.file_name())).map(|file| file.modelled)
    }
}

impl Launch {
    /// A program whose blocks and accesses are counted.
    pub fn new(program: impl Into<OsString>) -> Launch {
        Launch {
            program: program.into(),
            arguments: Vec::new(),
            listener: Listener::Tally { counts_accesses: true },
            is_repeatable: false,
            drops_output: false,
            input: None,
            added_environment: Vec::new(),
            engine: EngineChoice::default(),
        }
    }

    /// Runs the program to its end with the engine of those that are given. Its streams are ours.
    pub fn run(&self, engines: &Engines<'_>) -> Result<Finished, LaunchError> {
        let scratch = Scratch::new().map_err(LaunchError::Scratch)?;
        self.start_in(scratch, engines)?.wait()
    }

    /// Starts the program with its results in a directory.
    pub(crate) fn start_in(
        &self,
        scratch: Scratch,
        engines: &Engines<'_>,
    ) -> Result<Running, LaunchError> {
        let engine = self.engine.find().map_err(LaunchError::Qemu)?;
        if let Some(limit) = Limit::in_the_way_of(&engine) {
            return Err(LaunchError::Limited(limit));
        }
        let path = target::find(&self.program).map_err(LaunchError::Target)?;
        let target = target::inspect(&path).map_err(LaunchError::Target)?;
        target::check_libraries(&target).map_err(LaunchError::Target)?;
        let dir = scratch.path();
        engines.write(&engine, dir).map_err(LaunchError::Scratch)?;
        let settings = Settings {
            engine,
            seed: self.is_repeatable.then_some(SEED),
            listener: begin_trace(&self.listener).map_err(LaunchError::Trace)?,
        };
        settings.write(dir).map_err(LaunchError::Settings)?;
        let (host, guest_only) = split_environment(&settings.engine, self.environment());
        let mut arguments = vec![self.program.clone()];
        arguments.extend(self.arguments.iter().cloned());
        let (engine, words) = command_line(&settings, dir, &target, &guest_only, &arguments);
        let mut command = Command::new(engine);
        command.args(words);
        set_environment(&mut command, host);
        if self.is_repeatable {
            fix_addresses(&mut command);
        }
        if let Some(path) = &self.input {
            command.stdin(File::open(path).map_err(LaunchError::Start)?);
        }
        if self.drops_output {
            command.stdout(Stdio::null()).stderr(Stdio::null());
        }
        let shield = Shield::raise();
        let child = spawn(&mut command).map_err(LaunchError::Start)?;
        let scratch = Arc::new(scratch);
        Ok(Running { child, scratch, listener: settings.listener, _shield: shield })
    }

    /// The program's environment as assignments.
    fn environment(&self) -> Vec<OsString> {
        // What decides what a program does stays; what only describes the session goes. The seeds
        // are those of interpreters that would otherwise order their tables at random.
        const KEPT: [&str; 8] =
            ["HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "TMPDIR", "TZ"];
        let assign = |(name, value): (OsString, OsString)| {
            let mut all = name.into_vec();
            all.push(b'=');
            all.extend(value.into_vec());
            OsString::from_vec(all)
        };
        let added = self.added_environment.iter().cloned().map(assign);
        if !self.is_repeatable {
            return env::vars_os().map(assign).chain(added).collect();
        }
        let kept = KEPT.iter().filter_map(|name| Some(((*name).into(), env::var_os(name)?)));
        let fixed = ["PERL_HASH_SEED=0", "PYTHONHASHSEED=0"].map(OsString::from);
        kept.map(assign).chain(fixed).chain(added).collect()
    }
}

fn set_environment(command: &mut Command, assignments: Vec<OsString>) {
    command.env_clear();
    for assignment in assignments {
        let bytes = assignment.as_bytes();
        // A name may begin with an equals sign.
        let equals = bytes.iter().skip(1).position(|byte| *byte == b'=').map(|at| at + 1);
        if let Some((name, value)) = equals.and_then(|at| bytes.split_at_checked(at)) {
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            command.env(text(name), text(value.get(1..).unwrap_or_default()));
        }
    }
}

/// Starts the engine.
///
/// While it was written another thread of ours may have started a program, whose process holds the
/// file open for writing until it becomes that program; the kernel refuses to run it for so long.
fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(why) if why.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(PAUSE),
            result => return result,
        }
    }
    command.spawn()
}

/// Turns off the kernel's address randomisation for the program.
fn fix_addresses(command: &mut Command) {
    const ADDR_NO_RANDOMIZE: libc::c_ulong = 0x0004_0000;
    let fix = || {
        // SAFETY: a system call with a number; nothing is touched.
        match unsafe { libc::personality(ADDR_NO_RANDOMIZE) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    };
    // SAFETY: between fork and exec the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(fix) };
}

/// A program that runs.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    scratch: Arc<Scratch>,
    listener: Listener,
    _shield: Shield,
}

impl Running {
    /// Where its results are.
    pub(crate) fn dir(&self) -> &Path {
        self.scratch.path()
    }

    /// Waits for the program and reads what it left.
    pub(crate) fn wait(&mut self) -> Result<Finished, LaunchError> {
        let packer = Packer::start(&self.scratch);
        let status = self.child.wait().map_err(LaunchError::Start)?;
        drop(packer);
        let main = ProcessKey { pid: self.child.id(), sequence: 0 };
        let processes = read_all(self.dir())?;
        if !processes.contains_key(&main) {
            return Err(LaunchError::NoResults(status));
        }
        if let Listener::Trace(path) = &self.listener {
            complete_trace(path, &processes).map_err(LaunchError::Trace)?;
        }
        Ok(Finished { status, processes, main, scratch: Arc::clone(&self.scratch) })
    }
}

/// Makes the trace file, if there is to be one, and says where it is wherever the program goes.
fn begin_trace(listener: &Listener) -> io::Result<Listener> {
    let Listener::Trace(path) = listener else { return Ok(listener.clone()) };
    fs::write(path, FILE_HEADER)?;
    fs::canonicalize(path).map(Listener::Trace)
}

/// Appends what the processes could not write any more.
fn complete_trace(path: &Path, processes: &BTreeMap<ProcessKey, ProcessFile>) -> io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(path)?;
    for chunk in processes.values().flat_map(leftovers) {
        file.write_all(&chunk.encode())?;
    }
    Ok(())
}

/// Reads every results file in a directory.
fn read_all(dir: &Path) -> Result<BTreeMap<ProcessKey, ProcessFile>, LaunchError> {
    let mut processes = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(LaunchError::Scratch)? {
        let path = entry.map_err(LaunchError::Scratch)?.path();
        if path.extension().is_some_and(|extension| extension == "results") {
            match results::read_outline(&path) {
                Ok(file) => drop(processes.insert(file.key, file)),
                // A process that died while it made its file has counted nothing.
                Err(ResultsError::Foreign(_)) => {}
                Err(why) => return Err(LaunchError::Results(why)),
            }
        }
    }
    Ok(processes)
}
