//! What can go wrong with a database.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// One sentence about one file or folder.
#[derive(Debug)]
pub enum StoreError {
    /// The operating system refused.
    Io {
        /// What was being done, as in 'cannot WHAT PATH'.
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// The file is not what it should be: cut short, overwritten, or never ours.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A newer whither wrote it.
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest that this one reads.
        known: u32,
    },
    /// Somebody else writes this host's part of the database.
    Locked {
        /// The lock.
        path: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// The lock was taken away while we held it.
    Displaced {
        /// The lock.
        path: PathBuf,
    },
    /// There is no epoch to append to.
    NoEpoch,
    /// A profile that does not belong into the open epoch.
    Unfit(&'static str),
}

impl StoreError {
    /// For `map_err` around a call of the operating system.
    pub(crate) fn io(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> StoreError + use<> {
        let path = path.to_owned();
        move |error| StoreError::Io { doing, path, error }
    }

    /// For `map_err` around what reads a file's content.
    pub(crate) fn damaged<E: fmt::Display>(path: &Path) -> impl Fn(E) -> StoreError + use<E> {
        let path = path.to_owned();
        move |error| StoreError::Damaged { path: path.clone(), what: error.to_string() }
    }

    /// For `map_err` around what writes a table: the disk may be full.
    pub(crate) fn not_written(path: &Path) -> impl Fn(ParquetError) -> StoreError + use<> {
        let path = path.to_owned();
        move |error| {
            let error = io::Error::other(error);
            StoreError::Io { doing: "write", path: path.clone(), error }
        }
    }

    /// Whether the file has gone since we were told of it.
    pub(crate) fn is_gone(&self) -> bool {
        const ESTALE: i32 = 116;
        match self {
            StoreError::Io { error, .. } => {
                error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESTALE)
            }
            _ => false,
        }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io { doing, path, error } => {
                write!(f, "cannot {doing} {}: {error}", path.display())
            }
            StoreError::Damaged { path, what } => {
                write!(f, "{} is damaged: {what}", path.display())
            }
            StoreError::TooNew { path, version, known } => write!(
                f,
                "{} has version {version} and this whither reads up to {known}",
                path.display()
            ),
            StoreError::Locked { path, holder } => {
                write!(f, "{holder} writes to this database already ({})", path.display())
            }
            StoreError::Displaced { path } => {
                write!(f, "another writer has taken over {}", path.display())
            }
            StoreError::NoEpoch => f.write_str("no epoch has begun"),
            StoreError::Unfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for StoreError {}
