//! A program that becomes another is followed: the engine is started again on the new one.
//!
//! Whatever we cannot follow is left to the kernel, which refuses it in its own words or runs it
//! untraced; the record says which.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, iter, ptr};

use super::Inside;
use super::memory::Memory;
use crate::launch::engine::{command_line, split_environment};
use crate::launch::target;
use crate::record::ProcessRecord;

/// What the program asks the kernel for, as addresses in the program.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The descriptor of the directory that a relative path begins at, or `AT_FDCWD`.
    pub dir: u64,
    /// The path.
    pub path: u64,
    /// The array of arguments.
    pub arguments: u64,
    /// The array of assignments.
    pub environment: u64,
    /// Whether an empty path means the file that `dir` is open for.
    pub is_by_descriptor: bool,
}

/// Becomes the program that is asked for, under the same engine. Returns if that cannot be.
pub fn follow(inside: &Inside, request: &Request) {
    if let Some(next) = prepare(inside, request) {
        next.execute();
    }
}

/// Records what becomes of the request. `None` leaves it to the kernel.
///
/// For an engine that has something to do before it goes; [`follow`] is for one that has not.
pub fn prepare(inside: &Inside, request: &Request) -> Option<Next> {
    let memory = Memory::open()?;
    let path = path(inside, &memory, request)?;
    if !may_execute(&path) {
        return None;
    }
    let next = command(inside, &memory, request, &path);
    let record = ProcessRecord::Exec {
        path: path.to_string_lossy().into_owned(),
        is_followed: next.is_some(),
    };
    inside.process().record(&record);
    next
}

/// What the process becomes: the engine, with the new program to run.
#[derive(Debug)]
pub struct Next {
    engine: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Next {
    /// Becomes it. Returns if the kernel refuses.
    pub fn execute(&self) {
        let pointers = |strings: &[CString]| {
            strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
        };
        let (argv, envp) = (pointers(&self.arguments), pointers(&self.environment));
        // SAFETY: C strings and arrays that end in null, all alive during the call.
        unsafe { libc::execve(self.engine.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    }
}

/// The file that is asked for, by a name that the engine can open after the exec.
fn path(inside: &Inside, memory: &Memory, request: &Request) -> Option<PathBuf> {
    let path = PathBuf::from(memory.string(request.path)?);
    let dir = request.dir as i32;
    if path.as_os_str().is_empty() {
        if !request.is_by_descriptor {
            return None;
        }
        let file = fs::read_link(format!("/proc/self/fd/{dir}")).ok()?;
        return file.exists().then_some(file);
    }
    let own = format!("/proc/{}/exe", std::process::id());
    if path == Path::new("/proc/self/exe") || path == Path::new(&own) {
        return inside.process().program.clone();
    }
    if path.is_absolute() || dir == libc::AT_FDCWD {
        return Some(path);
    }
    Some(fs::read_link(format!("/proc/self/fd/{dir}")).ok()?.join(path))
}

/// Whether the kernel would execute the file; if not it tells the program why.
fn may_execute(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: a C string.
    let is_allowed = unsafe { libc::access(name.as_ptr(), libc::X_OK) == 0 };
    is_allowed && path.is_file()
}

/// The engine's command line for the program, unless it has to run on its own.
fn command(inside: &Inside, memory: &Memory, request: &Request, path: &Path) -> Option<Next> {
    let target = target::inspect(path).ok()?;
    let (settings, dir) = (&inside.settings, &inside.dir);
    if gains_privileges(&target.executable) || !settings.engine.path(dir).exists() {
        return None;
    }
    let arguments = memory.strings(request.arguments)?;
    let environment = memory.strings(request.environment)?;
    let (host, guest_only) = split_environment(&settings.engine, environment);
    let (engine, words) = command_line(settings, dir, &target, &guest_only, &arguments);
    let engine = c_string(engine.into())?;
    let argv = iter::once(Some(engine.clone())).chain(words.into_iter().map(c_string));
    Some(Next {
        engine,
        arguments: argv.collect::<Option<_>>()?,
        environment: host.into_iter().map(c_string).collect::<Option<_>>()?,
    })
}

/// Whether the kernel would give the program another identity, which it does not do for the engine.
fn gains_privileges(path: &Path) -> bool {
    let Ok(meta) = fs::metadata(path) else { return false };
    let mode = meta.permissions().mode();
    // SAFETY: asks the kernel for numbers.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    mode & 0o4000 != 0 && meta.uid() != uid || mode & 0o2000 != 0 && meta.gid() != gid
}

fn c_string(string: OsString) -> Option<CString> {
    CString::new(string.into_vec()).ok()
}
