//! Whether a program can run under an engine, found out before it is tried.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt};

mod elf;

/// How deep scripts may name scripts as their interpreter, as in the kernel.
const SCRIPT_DEPTH: usize = 5;
/// How much of a script's first line the kernel looks at.
const SHEBANG_BYTES: usize = 256;

/// A program that can be traced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The executable: the program itself, or the interpreter of a script.
    pub executable: PathBuf,
    /// What comes before the program's own arguments: the script and its interpreter's options.
    /// Empty for an executable.
    pub leading: Vec<OsString>,
    /// The dynamic linker that the executable names; none if it is static.
    pub linker: Option<PathBuf>,
}

impl Target {
    /// What the executable is called with, its name first, where the program was called with
    /// `arguments`, its name first.
    pub fn arguments(&self, arguments: &[OsString]) -> Vec<OsString> {
        let name = match self.leading.is_empty() {
            true => arguments.first().cloned().unwrap_or_default(),
            // A script's interpreter is called by its own name, as the kernel does.
            false => self.executable.clone().into(),
        };
        let rest = arguments.iter().skip(1);
        std::iter::once(&name).chain(&self.leading).chain(rest).cloned().collect()
    }
}

/// Why a program cannot be traced.
#[derive(Debug)]
pub enum TargetError {
    /// No such program.
    NotFound(OsString),
    /// There is such a file, but it may not be executed.
    NotExecutable(PathBuf),
    /// It is a directory, a socket or the like.
    NotAFile(PathBuf),
    /// The file could not be read.
    Unreadable(PathBuf, io::Error),
    /// It is no ELF file and no script.
    UnknownFormat(PathBuf),
    /// It is an ELF file for another machine.
    OtherMachine(PathBuf, u16),
    /// It is a 32-bit program.
    Narrow(PathBuf),
    /// The ELF file is cut short or contradicts itself.
    Malformed(PathBuf),
    /// It says that it needs AVX-512.
    NeedsAvx512(PathBuf),
    /// The interpreter that a script or executable names does not exist.
    NoInterpreter(PathBuf, PathBuf),
    /// Shared libraries that it needs are not there.
    MissingLibraries(PathBuf, Vec<String>),
    /// Scripts name each other as interpreter.
    TooDeep(PathBuf),
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TargetError as E;
        match self {
            E::NotFound(name) => write!(f, "{}: no such program", name.display()),
            E::NotExecutable(path) => write!(f, "{} may not be executed", path.display()),
            E::NotAFile(path) => {
                write!(f, "{} is not a program but a directory or device", path.display())
            }
            E::Unreadable(path, why) => write!(f, "{} cannot be read: {why}", path.display()),
            E::UnknownFormat(path) => {
                write!(
                    f,
                    "{} is neither an ELF executable nor a script with a #! line",
                    path.display()
                )
            }
            E::OtherMachine(path, machine) => {
                write!(
                    f,
                    "{} is for another processor (ELF machine {machine}); only x86-64 can be traced",
                    path.display()
                )
            }
            E::Narrow(path) => {
                write!(f, "{} is a 32-bit program; only 64-bit x86 can be traced", path.display())
            }
            E::Malformed(path) => write!(f, "{} is a damaged ELF file", path.display()),
            E::NeedsAvx512(path) => {
                write!(
                    f,
                    "{} is built for AVX-512 (x86-64-v4), which the tracer does not offer; rebuild it for x86-64-v3 to trace it",
                    path.display()
                )
            }
            E::NoInterpreter(path, interpreter) => {
                write!(
                    f,
                    "{} needs the interpreter {}, which is not there",
                    path.display(),
                    interpreter.display()
                )
            }
            E::MissingLibraries(path, names) => {
                let names = names.join(", ");
                write!(f, "{} needs shared libraries that are not there: {names}", path.display())
            }
            E::TooDeep(path) => write!(f, "{} has too many interpreters in a row", path.display()),
        }
    }
}

impl std::error::Error for TargetError {}

impl TargetError {
    /// The exit status that `env` gives: 127 if there is no such program, else 126.
    pub fn exit_status(&self) -> u8 {
        match self {
            TargetError::NotFound(_)
            | TargetError::NoInterpreter(..)
            | TargetError::MissingLibraries(..) => 127,
            _ => 126,
        }
    }
}

/// Finds a program as a shell does: by PATH unless it has a slash.
pub fn find(program: &OsStr) -> Result<PathBuf, TargetError> {
    if program.as_bytes().contains(&b'/') {
        return Ok(program.into());
    }
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let candidates = || env::split_paths(&path).map(|dir| dir.join(program));
    let found = candidates().find(|candidate| is_executable(candidate));
    let found = found.or_else(|| candidates().find(|candidate| candidate.is_file()));
    found.ok_or_else(|| TargetError::NotFound(program.into()))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Looks at a program and, if it is a script, at its interpreter.
pub fn inspect(program: &Path) -> Result<Target, TargetError> {
    let mut target = Target { executable: program.into(), leading: Vec::new(), linker: None };
    for _ in 0..SCRIPT_DEPTH {
        let file = open(&target.executable)?;
        let mut start = Vec::new();
        let read = file.by_ref_take(SHEBANG_BYTES as u64).read_to_end(&mut start);
        read.map_err(|why| TargetError::Unreadable(target.executable.clone(), why))?;
        if !start.starts_with(b"#!") {
            target.linker = elf::check(&target.executable, &file, &start)?;
            return Ok(target);
        }
        let (interpreter, option) =
            shebang(&start).ok_or_else(|| TargetError::UnknownFormat(target.executable.clone()))?;
        if !interpreter.exists() {
            return Err(TargetError::NoInterpreter(target.executable, interpreter));
        }
        target.leading.insert(0, target.executable.into_os_string());
        if let Some(option) = option {
            target.leading.insert(0, option);
        }
        target.executable = interpreter;
    }
    Err(TargetError::TooDeep(program.into()))
}

/// Asks the dynamic linker which shared libraries it cannot find. The program itself does not run.
///
/// Linkers other than glibc's are not asked: they might run it.
pub fn check_libraries(target: &Target) -> Result<(), TargetError> {
    let Some(linker) = target.linker.as_ref().filter(|linker| is_glibc(linker)) else {
        return Ok(());
    };
    // Libraries beside a program are looked for beside the file itself, not beside a link to it: the
    // linker that is started by hand goes by the name that it is given.
    let file = fs::canonicalize(&target.executable).unwrap_or_else(|_| target.executable.clone());
    let mut ask = Command::new(linker);
    ask.arg(file).env("LD_TRACE_LOADED_OBJECTS", "1").stdin(Stdio::null());
    // A linker that cannot be asked says nothing; the program will.
    let Ok(output) = ask.output() else { return Ok(()) };
    let text = String::from_utf8_lossy(&output.stdout);
    let missing = text.lines().filter_map(|line| line.trim().strip_suffix(" => not found"));
    let missing: Vec<String> = missing.map(str::to_owned).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(TargetError::MissingLibraries(target.executable.clone(), missing)),
    }
}

fn is_glibc(linker: &Path) -> bool {
    linker.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-linux"))
}

/// Reading the front of a borrowed file.
trait ByRefTake {
    fn by_ref_take(&self, limit: u64) -> io::Take<&Self>;
}

impl ByRefTake for File {
    fn by_ref_take(&self, limit: u64) -> io::Take<&File> {
        self.take(limit)
    }
}

fn open(path: &Path) -> Result<File, TargetError> {
    let meta = fs::metadata(path).map_err(|why| match why.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            TargetError::NotFound(path.into())
        }
        _ => TargetError::Unreadable(path.into(), why),
    })?;
    if !meta.is_file() {
        return Err(TargetError::NotAFile(path.into()));
    }
    if !is_executable(path) {
        return Err(TargetError::NotExecutable(path.into()));
    }
    File::open(path).map_err(|why| TargetError::Unreadable(path.into(), why))
}

/// What the kernel skips in that line. A carriage return is part of a name to it.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_blank(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_blank(*byte)).map_or(start, |last| last + 1);
    text.get(start..end).unwrap_or_default()
}

/// The interpreter and its one option, as the kernel splits the line.
fn shebang(start: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let line = trim(start.get(2..)?.split(|byte| *byte == b'\n').next()?);
    let end = line.iter().position(|byte| is_blank(*byte)).unwrap_or(line.len());
    let (interpreter, option) = line.split_at_checked(end)?;
    let option = trim(option);
    let option = (!option.is_empty()).then(|| OsStr::from_bytes(option).into());
    (!interpreter.is_empty()).then(|| (PathBuf::from(OsStr::from_bytes(interpreter)), option))
}

#[cfg(test)]
mod tests;
