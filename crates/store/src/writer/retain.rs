//! Old epochs go.

use std::path::Path;

use super::Writer;
use crate::manifest::{Manifest, Segment};
use crate::{StoreError, layout};

/// How much history a host keeps. The newest epoch always stays: it may be open, and its number
/// must not be given out again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Retention {
    /// Epochs whose last append is older go.
    pub age_ns: Option<u64>,
    /// While the host's epochs take more bytes than this, the oldest goes.
    pub bytes: Option<u64>,
}

/// What retention removed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Removed {
    /// The epochs that went.
    pub epochs: Vec<u64>,
    /// Bytes of tables that went with them.
    pub bytes: u64,
}

impl Writer {
    /// Removes what is too old or too much, the oldest first; oldest means the lowest number, so
    /// that a clock that was set back does not make the newest look old.
    pub fn retain(&mut self, keep: Retention, now_unix_ns: u64) -> Result<Removed, StoreError> {
        let epochs = layout::epochs(&self.folder)?;
        let newest = epochs.last().map(|(number, _)| *number);
        // What cannot be read is not removed either: somebody may want to look at it.
        let sized: Vec<_> = epochs
            .iter()
            .filter_map(|(number, folder)| {
                let manifest = Manifest::read(folder).ok()?;
                let bytes: u64 = manifest.segments.iter().map(Segment::bytes).sum();
                Some((*number, folder, manifest, bytes))
            })
            .collect();
        let mut total: u64 = sized.iter().map(|(.., bytes)| bytes).sum();
        let mut removed = Removed::default();
        for (number, folder, manifest, bytes) in sized {
            let age_ns = now_unix_ns.saturating_sub(manifest.last_append_unix_ns());
            let too_old = keep.age_ns.is_some_and(|allowed| age_ns > allowed);
            let too_much = keep.bytes.is_some_and(|allowed| total > allowed);
            if Some(number) == newest || !(too_old || too_much) {
                continue;
            }
            if self.merging.as_ref().is_some_and(|merging| merging.is_of(number)) {
                self.merging = None;
            }
            self.lock.check()?;
            remove(folder)?;
            total -= bytes;
            removed.epochs.push(number);
            removed.bytes += bytes;
        }
        Ok(removed)
    }
}

/// The manifest first: without it the epoch is gone for everybody, whatever happens next.
fn remove(folder: &Path) -> Result<(), StoreError> {
    let manifest = folder.join(crate::manifest::NAME);
    std::fs::remove_file(&manifest).map_err(StoreError::io("remove", &manifest))?;
    std::fs::remove_dir_all(folder).map_err(StoreError::io("remove", folder))
}
