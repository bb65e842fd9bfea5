//! Files that are whole or not there, and nobody else's to read.
//!
//! ```text
//! write .new-NAME ─► fsync ─► rename to NAME ─► fsync of the folder
//! ```
//! A crash between any two of these leaves the old file, or none, and a `.new-` that the next
//! writer removes.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::StoreError;

/// What unfinished files begin with.
pub(crate) const UNFINISHED: &str = ".new-";

/// A file that takes its name only once it is whole.
pub(crate) struct Unfinished {
    pub(crate) file: File,
    path: PathBuf,
    to: PathBuf,
}

impl Unfinished {
    /// Opens the file beside its final name.
    pub(crate) fn create(to: &Path) -> Result<Unfinished, StoreError> {
        let name = to.file_name().unwrap_or_default().to_string_lossy();
        let path = to.with_file_name(format!("{UNFINISHED}{name}"));
        let file = OpenOptions::new()
            .write(true)
            .read(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&path)
            .map_err(StoreError::io("write", &path))?;
        Ok(Unfinished { file, path, to: to.to_owned() })
    }

    /// Where it is for now.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the content durable and gives it its name. The folder is not yet synced: several
    /// files may share one [`sync_folder`].
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let done =
            self.file.sync_all().map_err(StoreError::io("write", &self.path)).and_then(|()| {
                std::fs::rename(&self.path, &self.to).map_err(StoreError::io("write", &self.to))
            });
        if done.is_err() {
            let _ = std::fs::remove_file(&self.path);
        }
        done
    }

    /// Removes it again.
    pub(crate) fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    let doing = StoreError::io("write", folder);
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(doing)
}

/// Replaces a small file as a whole.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let mut unfinished = Unfinished::create(path)?;
    if let Err(error) = unfinished.file.write_all(content) {
        let error = StoreError::io("write", path)(error);
        unfinished.discard();
        return Err(error);
    }
    unfinished.finish()?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Makes a folder, and those above it, for this user alone.
pub(crate) fn create_folder(path: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(StoreError::io("make the folder", path))
}
