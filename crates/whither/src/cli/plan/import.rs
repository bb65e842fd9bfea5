//! `whither import`, checked and completed.

use std::path::PathBuf;

use super::database::database;
use crate::cli::arguments::ImportArguments;
use crate::failure::Failure;

/// An import.
#[derive(Debug)]
pub(crate) struct ImportJob {
    /// None: standard input.
    pub(crate) file: Option<PathBuf>,
    pub(crate) host: Option<String>,
    pub(crate) database: PathBuf,
}

pub(super) fn import_job(import: ImportArguments) -> Result<ImportJob, Failure> {
    Ok(ImportJob {
        file: Some(import.file).filter(|file| file.as_os_str() != "-"),
        host: import.host,
        database: database(import.output)?,
    })
}
