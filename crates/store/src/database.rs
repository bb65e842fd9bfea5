//! The one who reads: any number of them, never in anyone's way.

use std::path::{Path, PathBuf};

use vocab::{Epoch, Event, Profile, Tally};

use crate::manifest::{Facts, Gap, Manifest, TableEntry};
use crate::table::{Batch, Rows, Spec, Texts, Wanted};
use crate::tables::{self, Gather};
use crate::{StoreError, layout};

/// How often a reader starts again because files it was told of were merged away meanwhile. Each
/// time the writer has finished a merge, so that more than a few means something else is wrong.
const ATTEMPTS: usize = 5;

/// A database that is read.
#[derive(Clone, Debug)]
pub struct Database {
    root: PathBuf,
}

/// An epoch as its manifest describes it.
#[derive(Clone, Debug)]
pub struct EpochEntry {
    folder: PathBuf,
    manifest: Manifest,
    /// Only segments that overlap these two times.
    between: (u64, u64),
}

/// What could be read, and what could not.
#[derive(Debug)]
pub struct Loaded<T> {
    /// What could be read.
    pub value: T,
    /// One sentence a file that could not.
    pub troubles: Vec<StoreError>,
}

impl Database {
    /// A database in a folder; an empty or missing folder is an empty database.
    pub fn open(root: &Path) -> Database {
        Database { root: root.to_owned() }
    }

    /// Every epoch of every host, by host and number.
    pub fn epochs(&self) -> Result<Loaded<Vec<EpochEntry>>, StoreError> {
        let mut found = Loaded { value: Vec::new(), troubles: Vec::new() };
        for host in layout::folders(&self.root)? {
            for (_, folder) in layout::epochs(&host)? {
                match Manifest::read(&folder) {
                    Ok(manifest) => {
                        let between = (0, u64::MAX);
                        found.value.push(EpochEntry { folder, manifest, between });
                    }
                    // Retention has taken it, or it is just being made.
                    Err(error) if error.is_gone() => {}
                    Err(error) => found.troubles.push(error),
                }
            }
        }
        Ok(found)
    }
}

impl EpochEntry {
    /// Its host.
    pub fn host(&self) -> &str {
        &self.manifest.host
    }

    /// Its place among the host's epochs.
    pub fn number(&self) -> u64 {
        self.manifest.number
    }

    /// When it began.
    pub fn began_unix_ns(&self) -> u64 {
        self.manifest.began_unix_ns
    }

    /// When it ended, if it has.
    pub fn ended_unix_ns(&self) -> Option<u64> {
        self.manifest.ended_unix_ns
    }

    /// The end of the last append.
    pub fn last_unix_ns(&self) -> u64 {
        self.manifest.last_append_unix_ns()
    }

    /// What holds for all of it.
    pub fn facts(&self) -> &Facts {
        &self.manifest.facts
    }

    /// What became of its samples.
    pub fn tally(&self) -> Tally {
        self.manifest.tally()
    }

    /// Times without samples.
    pub fn gaps(&self) -> &[Gap] {
        &self.manifest.gaps
    }

    /// Bytes of its tables.
    pub fn bytes(&self) -> u64 {
        self.manifest.segments.iter().map(crate::manifest::Segment::bytes).sum()
    }

    /// The span as profiles name it.
    pub fn epoch(&self) -> Epoch {
        Epoch { host: self.manifest.host.clone(), began_unix_ns: self.manifest.began_unix_ns }
    }

    /// The labels of its events.
    pub fn events(&self) -> Vec<&str> {
        self.manifest.events.iter().map(|event| event.label.as_str()).collect()
    }

    /// Whether an event of this name, in whatever mode, is among those of the epoch.
    pub fn samples(&self, event: &str) -> bool {
        self.manifest.events.iter().any(|stored| stored.name == event)
    }

    /// Only what was appended between two times: whole appends that overlap them.
    pub fn between(&self, since_unix_ns: u64, until_unix_ns: u64) -> EpochEntry {
        let mut part = self.clone();
        part.between = (since_unix_ns, until_unix_ns);
        part.narrow();
        part
    }

    fn narrow(&mut self) {
        let (since, until) = self.between;
        self.manifest.segments.retain(|s| s.to_unix_ns >= since && s.from_unix_ns <= until);
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.manifest.segments.is_empty()
    }

    /// All of it. A file that cannot be read is told of, and the others are read.
    pub fn load(&self) -> Result<Loaded<Profile>, StoreError> {
        self.again_if_merged(EpochEntry::try_load)
    }

    /// Starts again with the new manifest when files were merged away under our eyes.
    pub(crate) fn again_if_merged<T>(
        &self,
        mut read: impl FnMut(&EpochEntry) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut entry = self.clone();
        for _ in 0..ATTEMPTS {
            match read(&entry) {
                Err(error) if error.is_gone() => {
                    entry.manifest = Manifest::read(&entry.folder)?;
                    entry.narrow();
                }
                other => return other,
            }
        }
        read(&entry)
    }

    fn try_load(&self) -> Result<Loaded<Profile>, StoreError> {
        let events: Vec<Event> = self.manifest.event_list();
        let mut profile = Profile::empty(self.epoch(), self.manifest.facts.source(), events);
        let known = self.manifest.known_events();
        let mut texts = Texts::default();
        let mut troubles = Vec::new();
        let mut gather = Gather::new(&mut profile, &known);
        for (spec, entry) in self.files() {
            let all = Wanted::default();
            match self.each_batch(spec, entry, &all, &mut texts, |b, t| gather.take(b, t)) {
                Err(error) if error.is_gone() => return Err(error),
                Err(error) => troubles.push(error),
                Ok(()) => {}
            }
        }
        profile.tally = self.manifest.tally();
        Ok(Loaded { value: profile, troubles })
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static Spec, &TableEntry)> {
        let files = self.manifest.segments.iter().flat_map(|segment| &segment.files);
        files.filter_map(|entry| {
            let spec = tables::ALL.iter().find(|spec| spec.name == entry.table)?;
            Some((*spec, entry))
        })
    }

    pub(crate) fn each_batch(
        &self,
        spec: &'static Spec,
        entry: &TableEntry,
        wanted: &Wanted,
        texts: &mut Texts,
        mut take: impl FnMut(&Batch, &Texts),
    ) -> Result<(), StoreError> {
        let mut rows = Rows::open(spec, &self.folder.join(&entry.file), entry, wanted)?;
        while let Some(batch) = rows.next(texts)? {
            take(&batch, texts);
        }
        Ok(())
    }
}
