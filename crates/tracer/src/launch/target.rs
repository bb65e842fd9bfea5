//! Whether a program can run under QEMU, found out before it is tried.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fmt};

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
                    "{} is built for AVX-512 (x86-64-v4), which QEMU does not offer; rebuild it for x86-64-v3 to trace it",
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
            target.linker = elf(&target.executable, &file, &start)?;
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
    let mut ask = Command::new(linker);
    ask.arg(&target.executable).env("LD_TRACE_LOADED_OBJECTS", "1").stdin(Stdio::null());
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

/// The interpreter and its one option, as the kernel splits the line.
fn shebang(start: &[u8]) -> Option<(PathBuf, Option<OsString>)> {
    let line = start.get(2..)?.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let end = line.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(line.len());
    let (interpreter, option) = line.split_at_checked(end)?;
    let option = option.trim_ascii();
    let option = (!option.is_empty()).then(|| OsStr::from_bytes(option).into());
    (!interpreter.is_empty()).then(|| (PathBuf::from(OsStr::from_bytes(interpreter)), option))
}

/// Checks an ELF file as far as running it needs, and gives its dynamic linker.
fn elf(path: &Path, file: &File, start: &[u8]) -> Result<Option<PathBuf>, TargetError> {
    const EM_X86_64: u16 = 62;
    if !start.starts_with(b"\x7fELF") {
        return Err(TargetError::UnknownFormat(path.into()));
    }
    let malformed = || TargetError::Malformed(path.into());
    let machine = number(start, 18, 2).ok_or_else(malformed)? as u16;
    if machine != EM_X86_64 {
        let narrow = start.get(4) == Some(&1) && machine == 3;
        let other = TargetError::OtherMachine(path.into(), machine);
        return Err(if narrow { TargetError::Narrow(path.into()) } else { other });
    }
    if start.get(4) != Some(&2) {
        return Err(TargetError::Narrow(path.into()));
    }
    let kind = number(start, 16, 2).ok_or_else(malformed)?;
    if !matches!(kind, 2 | 3) {
        return Err(TargetError::UnknownFormat(path.into()));
    }
    let segments = number(start, 32, 8).ok_or_else(malformed)?;
    let count = number(start, 56, 2).ok_or_else(malformed)?;
    let mut table = vec![0; count as usize * 56];
    file.read_exact_at(&mut table, segments).map_err(|_| malformed())?;
    let mut linker = None;
    for segment in table.chunks_exact(56) {
        linker = check_segment(path, file, segment)?.or(linker);
    }
    Ok(linker)
}

/// Checks a segment; if it is the one that names the dynamic linker, gives that.
fn check_segment(path: &Path, file: &File, segment: &[u8]) -> Result<Option<PathBuf>, TargetError> {
    const PT_INTERP: u64 = 3;
    const PT_GNU_PROPERTY: u64 = 0x6474_e553;
    const MOST_BYTES: u64 = 1 << 16;
    let malformed = || TargetError::Malformed(path.into());
    let field = |at, len| number(segment, at, len).ok_or_else(malformed);
    let (kind, offset, len) = (field(0, 4)?, field(8, 8)?, field(32, 8)?.min(MOST_BYTES));
    if kind != PT_INTERP && kind != PT_GNU_PROPERTY {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, offset).map_err(|_| malformed())?;
    if kind == PT_GNU_PROPERTY {
        let needs = properties_need_avx512(&bytes);
        return if needs { Err(TargetError::NeedsAvx512(path.into())) } else { Ok(None) };
    }
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let interpreter = PathBuf::from(OsStr::from_bytes(name));
    match interpreter.exists() {
        true => Ok(Some(interpreter)),
        false => Err(TargetError::NoInterpreter(path.into(), interpreter)),
    }
}

/// Whether a `.note.gnu.property` says that the fourth level of x86-64 is needed.
fn properties_need_avx512(note: &[u8]) -> bool {
    const X86_ISA_1_NEEDED: u64 = 0xc000_8002;
    const LEVEL_4: u64 = 1 << 3;
    // The name "GNU\0" and the sizes before it take 16 bytes; properties are aligned to 8.
    let mut rest = note.get(16..).unwrap_or_default();
    while let (Some(kind), Some(len)) = (number(rest, 0, 4), number(rest, 4, 4)) {
        if kind == X86_ISA_1_NEEDED {
            return number(rest, 8, 4).is_some_and(|levels| levels & LEVEL_4 != 0);
        }
        let next = 8 + (len as usize).next_multiple_of(8);
        rest = rest.get(next..).unwrap_or_default();
    }
    false
}

/// A little-endian number of up to 8 bytes.
fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let field = bytes.get(at..at + len)?;
    Some(field.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shebang_line_splits_as_in_the_kernel() {
        let of = |line: &str| shebang(line.as_bytes());
        assert_eq!(of("#!/bin/sh\necho"), Some(("/bin/sh".into(), None)));
        assert_eq!(
            of("#! /usr/bin/env  -S a b \n"),
            Some(("/usr/bin/env".into(), Some("-S a b".into())))
        );
        assert_eq!(of("#!\n"), None);
    }

    #[test]
    fn a_note_that_needs_the_fourth_level_is_found_behind_other_properties() {
        let mut note = vec![0; 16];
        for (kind, value) in [(0xc000_0002u32, 3u32), (0xc000_8002, 0xf)] {
            note.extend(kind.to_le_bytes());
            note.extend(4u32.to_le_bytes());
            note.extend(value.to_le_bytes());
            note.extend([0; 4]);
        }
        assert!(properties_need_avx512(&note));
        note[40] = 7;
        assert!(!properties_need_avx512(&note));
        assert!(!properties_need_avx512(&note[..20]));
    }

    #[test]
    fn programs_are_told_apart_by_their_first_bytes() {
        let dir = std::env::temp_dir().join(format!("whither-target-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let make = |name: &str, bytes: &[u8], mode: u32| {
            let path = dir.join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            inspect(&path)
        };
        let script = make("script", b"#!/bin/sh -e\n", 0o755).unwrap();
        assert_eq!(script.leading, [OsString::from("-e"), dir.join("script").into()]);
        assert!(matches!(make("plain", b"#!/bin/sh\n", 0o644), Err(TargetError::NotExecutable(_))));
        assert!(matches!(
            make("lost", b"#!/no/such\n", 0o755),
            Err(TargetError::NoInterpreter(..))
        ));
        assert!(matches!(make("text", b"hello", 0o755), Err(TargetError::UnknownFormat(_))));
        let mut header = fs::read("/proc/self/exe").unwrap()[..64].to_vec();
        assert!(matches!(make("cut", &header, 0o755), Err(TargetError::Malformed(_))));
        header[18] = 183;
        assert!(matches!(make("arm", &header, 0o755), Err(TargetError::OtherMachine(_, 183))));
        (header[18], header[4]) = (3, 1);
        assert!(matches!(make("narrow", &header, 0o755), Err(TargetError::Narrow(_))));
        assert!(matches!(inspect(&dir), Err(TargetError::NotAFile(_))));
        let missing = inspect(&dir.join("none")).unwrap_err();
        assert_eq!(missing.exit_status(), 127);
        assert!(inspect(Path::new("/proc/self/exe")).unwrap().leading.is_empty());
        assert!(matches!(find(OsStr::new("no-such-program-here")), Err(TargetError::NotFound(_))));
        fs::remove_dir_all(&dir).unwrap();
    }
}
