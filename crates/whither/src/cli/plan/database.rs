//! Where the database is.

use std::path::PathBuf;

use crate::failure::{Failure, USAGE};

/// The one that was named; else $WHITHER_DB; else the machine's for root, and the user's own.
pub(super) fn database(named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(named) = named.or_else(|| variable("WHITHER_DB")) {
        return Ok(named);
    }
    if perf::is_root() {
        return Ok("/var/lib/whither".into());
    }
    let data = variable("XDG_DATA_HOME").filter(|data| data.is_absolute());
    let home = || Some(variable("HOME")?.join(".local/share"));
    data.or_else(home).map(|data| data.join("whither")).ok_or_else(|| {
        Failure::new(USAGE, "there is no home directory to keep a database in")
            .remedy("set WHITHER_DB to a directory")
    })
}
