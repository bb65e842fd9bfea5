//! One profile into the database, as an epoch of its own.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use store::{Facts, Span, StoreError, Writer};
use vocab::Profile;

use crate::failure::Failure;

/// How long to wait for another command that is just writing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where and as what.
pub(crate) struct Keeping<'a> {
    pub(crate) database: &'a Path,
    pub(crate) host: &'a str,
    /// The part of the host's that this command writes: beside a daemon, never in its way.
    pub(crate) writer: &'static str,
    pub(crate) facts: Facts,
    pub(crate) span: Span,
    /// The status of a failure.
    pub(crate) status: u8,
}

/// What was kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) database: PathBuf,
    pub(crate) host: String,
    pub(crate) epoch: u64,
    pub(crate) bytes: u64,
}

/// Writes the profile; all of it is on disk when this returns.
pub(crate) fn keep(keeping: Keeping<'_>, profile: &Profile) -> Result<Kept, Failure> {
    let Keeping { database, host, writer, facts, span, status } = keeping;
    let failed = |error: StoreError| {
        Failure::new(status, error.to_string())
            .kept("nothing was stored")
            .remedy("name another database with -o")
    };
    let mut writer = patiently(|| Writer::open_beside(database, host, writer)).map_err(failed)?;
    let epoch = writer.begin(facts, span.from_unix_ns).map_err(failed)?;
    let appended = writer.append(profile, span).map_err(failed)?;
    writer.end(span.to_unix_ns).map_err(failed)?;
    Ok(Kept { database: database.into(), host: host.into(), epoch, bytes: appended.bytes })
}

fn patiently(open: impl Fn() -> Result<Writer, StoreError>) -> Result<Writer, StoreError> {
    let began = Instant::now();
    loop {
        match open() {
            Err(StoreError::Locked { .. }) if began.elapsed() < PATIENCE => {
                std::thread::sleep(Duration::from_millis(100));
            }
            other => return other,
        }
    }
}
