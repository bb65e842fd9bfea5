//! Where things lie in a database.
//!
//! ```text
//! DB/                        0700
//!   HOST/                    0700, written by one process at a time
//!     lock                   who writes
//!     000012/                the twelfth epoch of this host
//!       epoch.json           what belongs to it
//!       7.counts.parquet     the tables of segment 7
//!       3-6.counts.parquet   those of segments 3 to 6, merged
//! ```

use std::path::{Path, PathBuf};

use crate::StoreError;

/// The folder of a host. Host names come from outside: whatever could climb out of the folder or
/// hide in it is replaced.
pub(crate) fn host_folder(root: &Path, host: &str) -> PathBuf {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = host.chars().take(200).map(|c| if fits(c) { c } else { '_' }).collect();
    let name = name.trim_start_matches('.');
    root.join(if name.is_empty() { "localhost" } else { name })
}

/// The folder of an epoch.
pub(crate) fn epoch_folder(host: &Path, number: u64) -> PathBuf {
    host.join(format!("{number:06}"))
}

/// The epochs of a host by number.
pub(crate) fn epochs(host: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let mut found: Vec<(u64, PathBuf)> = folders(host)?
        .into_iter()
        .filter_map(|folder| Some((folder.file_name()?.to_str()?.parse().ok()?, folder)))
        .collect();
    found.sort_unstable();
    Ok(found)
}

/// The folders in a folder, by name; none if it is not there.
pub(crate) fn folders(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io("read", folder)(error)),
    };
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort_unstable();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_cannot_leave_the_database() {
        let folder = |host: &str| host_folder(Path::new("/db"), host);
        assert_eq!(folder("web-1.example"), Path::new("/db/web-1.example"));
        assert_eq!(folder("../../etc"), Path::new("/db/_.._etc"));
        assert_eq!(folder(".."), Path::new("/db/localhost"));
        assert_eq!(folder("a\nb"), Path::new("/db/a_b"));
        assert_eq!(folder(""), Path::new("/db/localhost"));
    }
}
