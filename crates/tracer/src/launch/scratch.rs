//! The private directory that launcher and plugin share.

use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::{env, io};

/// What the names of scratch directories begin with; the launcher's process number follows.
const PREFIX: &str = "whither-";
/// The link in it that tells among which processes such numbers mean something.
const NAMESPACE: &str = "namespace";

/// A directory that only this user can enter, removed when dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Makes one where there is room and where a shared object may be loaded from.
    ///
    /// Memory comes first: results are written all the time. Some systems forbid code there.
    pub(crate) fn new() -> io::Result<Scratch> {
        let wished = env::var_os("TMPDIR").map(PathBuf::from);
        let usual = ["/dev/shm", "/tmp", "/var/tmp"].map(PathBuf::from);
        let mut last =
            io::Error::other("no temporary directory allows shared objects to be loaded");
        for parent in wished.into_iter().chain(usual) {
            if !parent.is_absolute() || !allows_code(&parent) {
                continue;
            }
            sweep(&parent);
            match Scratch::under(&parent) {
                Ok(scratch) => return Ok(scratch),
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    fn under(parent: &Path) -> io::Result<Scratch> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Relaxed);
            let path = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {
                    // Without it the directory is never swept, and that is all.
                    let _ = namespace().map(|name| symlink(name, path.join(NAMESPACE)));
                    return Ok(Scratch { path });
                }
                Err(why) if why.kind() == io::ErrorKind::AlreadyExists => {}
                Err(why) => return Err(why),
            }
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays; there is nobody left to tell.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The processes that we see, if `/proc` tells of any. A container sees others than its host does,
/// though both may share the directory.
fn namespace() -> Option<PathBuf> {
    fs::read_link("/proc/self/ns/pid").ok()
}

/// Removes what launchers left that were killed: directories of ours whose launcher is gone, and
/// every process with results in them. Whether those are gone only their own kind can tell.
fn sweep(parent: &Path) {
    let Some(ours) = namespace() else { return };
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
        let is_ours = fs::read_link(entry.path().join(NAMESPACE)).is_ok_and(|name| name == ours);
        let is_gone = pid_of(rest).is_some_and(|pid| !is_alive(pid));
        if is_ours && is_gone && is_deserted(&entry.path()) {
            // Another launcher may be sweeping too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process number that a name begins with.
fn pid_of(name: &str) -> Option<i32> {
    let digits = name.bytes().take_while(u8::is_ascii_digit).count();
    name.get(..digits)?.parse().ok()
}

/// Whether a process exists, whoever owns it.
pub(super) fn is_alive(pid: i32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

/// Whether a directory is this user's own and no process that has results there still runs.
fn is_deserted(dir: &Path) -> bool {
    // SAFETY: asks the kernel for a number.
    let own = unsafe { libc::geteuid() };
    let is_own = fs::symlink_metadata(dir).is_ok_and(|about| about.is_dir() && about.uid() == own);
    let Ok(entries) = fs::read_dir(dir) else { return false };
    let mut names = entries.flatten().map(|entry| entry.file_name());
    is_own && !names.any(|name| name.to_str().and_then(pid_of).is_some_and(is_alive))
}

/// Whether code may be mapped from files there.
fn allows_code(dir: &Path) -> bool {
    let Ok(name) = CString::new(dir.as_os_str().as_bytes()) else { return false };
    // SAFETY: all-zero is a valid statvfs, and the name is a C string.
    unsafe {
        let mut about: libc::statvfs = std::mem::zeroed();
        libc::statvfs(name.as_ptr(), &raw mut about) == 0 && about.f_flag & libc::ST_NOEXEC == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_scratch_directory_is_private_and_goes_with_its_owner() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_path_buf();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(path.join("x"), "y").unwrap();
        assert_ne!(Scratch::new().unwrap().path(), path);
        drop(scratch);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_launcher_left_is_swept_and_nothing_else() {
        let scratch = Scratch::new().unwrap();
        let parent = scratch.path();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let gone = ended.id();
        ended.wait().unwrap();
        let here = std::process::id();
        let elsewhere = PathBuf::from("pid:[1]");
        let make = |name: String, results_of: Option<u32>, namespace: Option<PathBuf>| {
            fs::create_dir(parent.join(&name)).unwrap();
            if let Some(namespace) = namespace {
                symlink(namespace, parent.join(&name).join(NAMESPACE)).unwrap();
            }
            let results = results_of.map(|pid| parent.join(&name).join(format!("{pid}.0.results")));
            if let Some(path) = results {
                fs::write(path, "x").unwrap();
            }
        };
        make(format!("whither-{gone}-0"), Some(gone), namespace());
        make(format!("whither-{gone}-1"), Some(here), namespace());
        make(format!("whither-{here}-9"), None, namespace());
        make("whither-old".to_owned(), None, namespace());
        // Their numbers mean other processes, or nobody knows which.
        make(format!("whither-{gone}-3"), Some(gone), Some(elsewhere));
        make(format!("whither-{gone}-4"), Some(gone), None);
        fs::write(parent.join(format!("whither-{gone}-2")), "no directory").unwrap();
        sweep(parent);
        let mut left: Vec<String> = fs::read_dir(parent)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut kept = vec![
            format!("whither-{gone}-1"),
            format!("whither-{gone}-2"),
            format!("whither-{gone}-3"),
            format!("whither-{gone}-4"),
            format!("whither-{here}-9"),
            NAMESPACE.to_owned(),
            "whither-old".to_owned(),
        ];
        kept.sort();
        assert_eq!(left, kept);
    }
}
