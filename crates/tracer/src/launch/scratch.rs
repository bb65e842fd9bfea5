//! The private directory that launcher and plugin share.

use std::ffi::CString;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::{env, io};

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
            let path = parent.join(format!("whither-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Scratch { path }),
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
}
