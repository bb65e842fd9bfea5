//! The one who writes a host's part.

mod compact;
mod retain;
mod segment;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use vocab::{Epoch, Image, Profile};

pub use self::compact::Compaction;
use self::compact::Merging;
pub use self::retain::{Removed, Retention};
use crate::lock::Lock;
use crate::manifest::{Facts, Gap, Manifest, Segment, StoredTally};
use crate::table::Effort;
use crate::tables::{Nowhere, Places};
use crate::{EpochEntry, Loaded, StoreError, durable, layout};

/// The time that an append covers, in nanoseconds since 1970. The clock may be stepped: an end
/// before the beginning is kept as it is, and nothing is ordered by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Since when.
    pub from_unix_ns: u64,
    /// Until when.
    pub to_unix_ns: u64,
}

/// Writes epochs of one host, one at a time. Dropping it frees the lock and leaves the epoch as
/// after a crash; [`Writer::leave`] says that all is well.
#[derive(Debug)]
pub struct Writer {
    host: String,
    folder: PathBuf,
    lock: Lock,
    open: Option<OpenEpoch>,
    merging: Option<Merging>,
    /// Segments that could not be merged, by epoch and name.
    passed_over: HashSet<(u64, String)>,
    /// Epochs that have ended and in which nothing is left to merge.
    settled: HashSet<u64>,
}

/// The epoch that is being written.
#[derive(Debug)]
struct OpenEpoch {
    folder: PathBuf,
    manifest: Manifest,
    /// Images whose facts are stored.
    known: HashSet<Image>,
}

impl Writer {
    /// Takes the lock of a host's part of a database, making both if they are not there.
    pub fn open(root: &Path, host: &str) -> Result<Writer, StoreError> {
        Writer::in_folder(layout::host_folder(root, host), host)
    }

    /// The same for one who writes beside the host's main writer, in a part of its own.
    pub fn open_beside(root: &Path, host: &str, writer: &str) -> Result<Writer, StoreError> {
        Writer::in_folder(layout::host_folder(root, &format!("{host}.{writer}")), host)
    }

    fn in_folder(folder: PathBuf, host: &str) -> Result<Writer, StoreError> {
        durable::create_folder(&folder)?;
        let lock = Lock::take(&folder, host)?;
        Ok(Writer {
            host: host.into(),
            folder,
            lock,
            open: None,
            merging: None,
            passed_over: HashSet::new(),
            settled: HashSet::new(),
        })
    }

    /// Begins an epoch; one that was open ends first.
    pub fn begin(&mut self, facts: Facts, now_unix_ns: u64) -> Result<u64, StoreError> {
        if self.open.is_some() {
            self.end(now_unix_ns)?;
        }
        self.lock.check()?;
        let last = layout::epochs(&self.folder)?.last().map_or(0, |(number, _)| *number);
        let number = last.saturating_add(1);
        let folder = layout::epoch_folder(&self.folder, number);
        durable::create_folder(&folder)?;
        let manifest = Manifest::new(&self.host, number, now_unix_ns, facts);
        manifest.write(&folder)?;
        durable::sync_folder(&self.folder)?;
        self.open = Some(OpenEpoch { folder, manifest, known: HashSet::new() });
        Ok(number)
    }

    /// What holds for the last epoch, if there is one that can be read.
    pub fn last_facts(&self) -> Result<Option<Facts>, StoreError> {
        Ok(self.last_epoch()?.map(|(_, _, manifest)| manifest.facts))
    }

    /// Goes on with the last epoch, unless it has ended or there is none. The time since its last
    /// append is recorded as a gap. An epoch whose manifest cannot be read is left as it is, for
    /// somebody to look at: readers tell of it, and the caller begins another.
    pub fn resume(&mut self, now_unix_ns: u64) -> Result<Option<u64>, StoreError> {
        let Some((number, folder, mut manifest)) = self.last_epoch()? else { return Ok(None) };
        if manifest.ended_unix_ns.is_some() {
            return Ok(None);
        }
        segment::sweep(&folder, &manifest);
        let why = match manifest.left_unix_ns.take() {
            Some(_) => "the writer was stopped",
            None => "the writer ended without a word",
        };
        let from_unix_ns = manifest.last_append_unix_ns();
        let gap = Gap { from_unix_ns, to_unix_ns: now_unix_ns.max(from_unix_ns), why: why.into() };
        manifest.gaps.push(gap);
        self.lock.check()?;
        manifest.write(&folder)?;
        let known = segment::known_images(&folder, &manifest);
        self.open = Some(OpenEpoch { folder, manifest, known });
        Ok(Some(number))
    }

    /// The last epoch that has a manifest. A folder without one is what a writer that was killed
    /// leaves, or retention: it goes.
    fn last_epoch(&self) -> Result<Option<(u64, PathBuf, Manifest)>, StoreError> {
        for (number, folder) in layout::epochs(&self.folder)?.into_iter().rev() {
            match Manifest::read(&folder) {
                Ok(manifest) => return Ok(Some((number, folder, manifest))),
                Err(error) if error.is_gone() => {
                    std::fs::remove_dir_all(&folder).map_err(StoreError::io("remove", &folder))?;
                }
                Err(_) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The epoch that is open, as a profile names it.
    pub fn epoch(&self) -> Option<Epoch> {
        let began_unix_ns = self.open.as_ref()?.manifest.began_unix_ns;
        Some(Epoch { host: self.host.clone(), began_unix_ns })
    }

    /// Adds counts. Either all of them are on disk when this returns, or none are and the epoch is
    /// what it was: then the caller still has them, and may try again.
    pub fn append(&mut self, profile: &Profile, span: Span) -> Result<Appended, StoreError> {
        self.append_with(profile, &Nowhere, span, Effort::Thorough)
    }

    /// The same for one of many appends, which will be merged before long: in a fraction of the
    /// time, and somewhat larger until then.
    pub fn append_lightly(
        &mut self,
        profile: &Profile,
        span: Span,
    ) -> Result<Appended, StoreError> {
        self.append_with(profile, &Nowhere, span, Effort::Quick)
    }

    /// The same with the counts beside the profile, which has none of them: in a fraction of the
    /// memory, too. What became of samples is in the profile's tally, as always.
    pub fn append_places(
        &mut self,
        profile: &Profile,
        places: &dyn Places,
        span: Span,
    ) -> Result<Appended, StoreError> {
        self.append_with(profile, places, span, Effort::Quick)
    }

    fn append_with(
        &mut self,
        profile: &Profile,
        places: &dyn Places,
        span: Span,
        effort: Effort,
    ) -> Result<Appended, StoreError> {
        let open = self.open.as_mut().ok_or(StoreError::NoEpoch)?;
        if profile.source != open.manifest.facts.source() {
            return Err(StoreError::Unfit("measured and modelled counts do not share an epoch"));
        }
        let mut manifest = open.manifest.clone();
        let name = manifest.next_segment.to_string();
        let labels = manifest.labels(&profile.events);
        let is_new = |image: &Image| !open.known.contains(image);
        let content = segment::Content { profile, places, labels: &labels };
        let files = segment::write(&open.folder, &name, &content, is_new, effort)?;
        let appended = Appended {
            rows: files.iter().map(|file| file.rows).sum(),
            bytes: files.iter().map(|file| file.bytes).sum(),
        };
        let Span { from_unix_ns, to_unix_ns } = span;
        let tally = StoredTally::new(&profile.tally);
        manifest.segments.push(Segment { name, from_unix_ns, to_unix_ns, files, tally });
        manifest.next_segment += 1;
        segment::commit(&self.lock, &open.folder, &open.manifest, &manifest)?;
        open.manifest = manifest;
        let facts = profile.facts.keys().filter_map(|&id| profile.image(id));
        open.known.extend(facts.cloned());
        Ok(appended)
    }

    /// Adds all of another epoch, of this host or of another: its counts, what became of its
    /// samples, and its gaps.
    pub fn absorb(&mut self, other: &EpochEntry) -> Result<Loaded<Appended>, StoreError> {
        let Loaded { value, troubles } = other.load()?;
        let span = Span { from_unix_ns: other.began_unix_ns(), to_unix_ns: other.last_unix_ns() };
        let appended = self.append(&value, span)?;
        let gaps = other.gaps().to_vec();
        if !gaps.is_empty() {
            self.change(|manifest| manifest.gaps.extend(gaps))?;
        }
        Ok(Loaded { value: appended, troubles })
    }

    /// Says that nothing was sampled for a while, and why.
    pub fn note_gap(&mut self, gap: Gap) -> Result<(), StoreError> {
        self.change(|manifest| manifest.gaps.push(gap))
    }

    /// Ends the epoch: nothing is appended to it any more.
    pub fn end(&mut self, now_unix_ns: u64) -> Result<(), StoreError> {
        self.change(|manifest| manifest.ended_unix_ns = Some(now_unix_ns))?;
        self.open = None;
        Ok(())
    }

    /// Stops writing in good order; the epoch may go on later.
    pub fn leave(mut self, now_unix_ns: u64) -> Result<(), StoreError> {
        if self.open.is_none() {
            return Ok(());
        }
        self.change(|manifest| manifest.left_unix_ns = Some(now_unix_ns))
    }

    fn change(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), StoreError> {
        let open = self.open.as_mut().ok_or(StoreError::NoEpoch)?;
        let mut manifest = open.manifest.clone();
        change(&mut manifest);
        self.lock.check()?;
        manifest.write(&open.folder)?;
        open.manifest = manifest;
        Ok(())
    }
}

/// What an append wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of all files, without the manifest.
    pub bytes: u64,
}
