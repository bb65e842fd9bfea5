//! A program that becomes another is followed: QEMU is started again on the new one.
//!
//! Whatever we cannot follow is left to the kernel, which refuses it in its own words or runs it
//! untraced; the record says which.

use std::ffi::{CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, ptr};

use tracer::launch::{qemu, target};
use tracer::record::ProcessRecord;
use tracer::settings::plugin_path;

use crate::guest::Memory;
use crate::images;
use crate::process::Plugin;

/// What the program asks the kernel for, as addresses in the program.
pub(crate) struct Request {
    pub(crate) dir: u64,
    pub(crate) path: u64,
    pub(crate) arguments: u64,
    pub(crate) environment: u64,
    pub(crate) is_by_descriptor: bool,
}

/// Becomes the program that is asked for, under QEMU. Returns if that cannot be.
pub(crate) fn follow(plugin: &Plugin, request: Request) {
    let Some(memory) = Memory::open() else { return };
    let Some(path) = path(&memory, &request) else { return };
    if !may_execute(&path) {
        return;
    }
    let ready = command(plugin, &memory, &request, &path);
    let record = ProcessRecord::Exec {
        path: path.to_string_lossy().into_owned(),
        is_followed: ready.is_some(),
    };
    plugin.process().record(&record);
    drop(memory);
    let Some((program, arguments, environment)) = ready else { return };
    let pointers = |strings: &[CString]| {
        strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>()
    };
    let (argv, envp) = (pointers(&arguments), pointers(&environment));
    // SAFETY: C strings and arrays that end in null, all alive during the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
}

/// The file that is asked for, by a name that QEMU can open after the exec.
fn path(memory: &Memory, request: &Request) -> Option<PathBuf> {
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
        return images::program_path().map(PathBuf::from);
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

type Command = (CString, Vec<CString>, Vec<CString>);

/// QEMU's command line for the program, unless it has to run on its own.
fn command(plugin: &Plugin, memory: &Memory, request: &Request, path: &Path) -> Option<Command> {
    let target = target::inspect(path).ok()?;
    if gains_privileges(&target.executable) || !plugin_path(&plugin.dir).exists() {
        return None;
    }
    let arguments = memory.strings(request.arguments)?;
    let (host, guest_only) = qemu::split_environment(memory.strings(request.environment)?);
    let settings = &plugin.settings;
    let all = qemu::arguments(settings, &plugin.dir, &target, &guest_only, &arguments);
    let program = c_string(settings.qemu.clone().into_os_string())?;
    let argv = std::iter::once(Some(program.clone())).chain(all.into_iter().map(c_string));
    Some((
        program.clone(),
        argv.collect::<Option<_>>()?,
        host.into_iter().map(c_string).collect::<Option<_>>()?,
    ))
}

/// Whether the kernel would give the program another identity, which it does not do for QEMU.
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
