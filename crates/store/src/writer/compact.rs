//! Many small segments become few large ones, a bounded number of rows at a time.
//!
//! ```text
//! rows   1  1  1  1 │ 4  4  4  │ 16  16        four neighbours of one size become one
//!        └──merged──┘
//! ```
//! Each row is written again once for every fourfold growth, so that the work stays in proportion
//! to what is appended, and no single append pays for the whole. An epoch that has ended is merged
//! into one segment.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use super::segment::{self, Output};
use super::{OpenEpoch, Writer};
use crate::manifest::{Manifest, Segment, StoredTally, TableEntry};
use crate::table::{Effort, Merge, Progress, ROWS_PER_GROUP, Rows, Source, Spec, Wanted};
use crate::{StoreError, layout, tables};

/// So many neighbours of one size are merged.
const FAN_IN: usize = 4;
/// Below this many rows all segments are of one size: a file's footer outweighs them.
const SMALLEST_ROWS: u64 = 4096;

/// How a call of [`Writer::compact`] left things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Compaction {
    /// Nothing is worth merging.
    Idle,
    /// A merge is under way: call again.
    Underway,
    /// A merge was finished by this call.
    Merged,
}

/// A merge under way.
pub(crate) struct Merging {
    folder: PathBuf,
    number: u64,
    chosen: Vec<Segment>,
    name: String,
    tables: VecDeque<&'static Spec>,
    current: Option<(Merge<'static, StoreError>, Output)>,
    done: Vec<TableEntry>,
}

impl std::fmt::Debug for Merging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Merging({} of {})", self.name, self.folder.display())
    }
}

impl Merging {
    fn new(folder: &Path, number: u64, chosen: &[Segment]) -> Merging {
        let first = chosen.first().and_then(|s| s.name.split('-').next()).unwrap_or("0");
        let last = chosen.last().and_then(|s| s.name.split('-').next_back()).unwrap_or("0");
        Merging {
            folder: folder.to_owned(),
            number,
            chosen: chosen.to_vec(),
            name: format!("{first}-{last}"),
            tables: tables::ALL.into(),
            current: None,
            done: Vec::new(),
        }
    }

    /// Merges up to `rows` rows; true when all tables are written.
    fn step(&mut self, rows: usize) -> Result<bool, StoreError> {
        loop {
            if let Some((merge, output)) = &mut self.current {
                let written = |batch: &_, texts: &_| output.write(batch, texts);
                if merge.step(rows, ROWS_PER_GROUP, written)? == Progress::More {
                    return Ok(false);
                }
                if let Some((_, output)) = self.current.take() {
                    self.done.push(output.finish()?);
                }
            }
            let Some(spec) = self.tables.pop_front() else { return Ok(true) };
            let sources = self.sources(spec)?;
            if !sources.is_empty() {
                let output = Output::create(&self.folder, &self.name, spec, Effort::Thorough)?;
                self.current = Some((Merge::new(spec, sources), output));
            }
        }
    }

    fn sources(&self, spec: &'static Spec) -> Result<Vec<Source<'static, StoreError>>, StoreError> {
        let files = self.chosen.iter().flat_map(|segment| &segment.files);
        files.filter(|entry| entry.table == spec.name).map(|e| self.source(spec, e)).collect()
    }

    fn source(
        &self,
        spec: &'static Spec,
        entry: &TableEntry,
    ) -> Result<Source<'static, StoreError>, StoreError> {
        let path = self.folder.join(&entry.file);
        let mut rows = Rows::open(spec, &path, entry, &Wanted::default())?;
        Ok(Box::new(move |texts| rows.next(texts)))
    }

    /// What takes the place of the chosen segments.
    fn merged(&self) -> Segment {
        let mut tally = vocab::Tally::default();
        self.chosen.iter().for_each(|segment| tally.merge(&segment.tally.tally()));
        Segment {
            name: self.name.clone(),
            from_unix_ns: self.chosen.first().map_or(0, |segment| segment.from_unix_ns),
            to_unix_ns: self.chosen.last().map_or(0, |segment| segment.to_unix_ns),
            files: self.done.clone(),
            tally: StoredTally::new(&tally),
        }
    }

    /// Whether it works on that epoch.
    pub(crate) fn is_of(&self, number: u64) -> bool {
        self.number == number
    }

    fn abandon(self) {
        if let Some((_, output)) = self.current {
            output.discard();
        }
        segment::remove(&self.folder, &self.done);
    }
}

/// The neighbours that are worth merging.
fn choose(manifest: &Manifest, passed_over: &HashSet<(u64, String)>) -> Option<Vec<Segment>> {
    let ended = manifest.ended_unix_ns.is_some();
    let size = |segment: &Segment| (segment.rows() / SMALLEST_ROWS).checked_ilog(4);
    let usable =
        |segment: &Segment| !passed_over.contains(&(manifest.number, segment.name.clone()));
    if ended {
        let runs = manifest.segments.split(|segment| !usable(segment));
        return runs.max_by_key(|run| run.len()).filter(|run| run.len() > 1).map(<[_]>::to_vec);
    }
    // The newest first: they are the smallest, and the cheapest to be rid of.
    let windows = manifest.segments.windows(FAN_IN).rev();
    let mut alike = windows.filter(|run| {
        run.iter().all(usable) && run.iter().all(|s| Some(size(s)) == run.first().map(size))
    });
    alike.next().map(<[_]>::to_vec)
}

impl Writer {
    /// Takes up to `rows` rows through the merge that is under way, or begins one where it is
    /// worth it. Readers see the segments or their merger, never both and never neither.
    pub fn compact(&mut self, rows: usize) -> Result<Compaction, StoreError> {
        if self.merging.is_none() {
            self.merging = self.next_merging()?;
        }
        let Some(mut merging) = self.merging.take() else { return Ok(Compaction::Idle) };
        match merging.step(rows) {
            Ok(false) => {
                self.merging = Some(merging);
                Ok(Compaction::Underway)
            }
            Ok(true) => self.replace(merging).map(|()| Compaction::Merged),
            Err(error) => {
                // Not tried again by this writer; the segments stay as they are.
                let number = merging.number;
                let names = merging.chosen.iter().map(|segment| (number, segment.name.clone()));
                self.passed_over.extend(names);
                merging.abandon();
                Err(error)
            }
        }
    }

    fn next_merging(&mut self) -> Result<Option<Merging>, StoreError> {
        if let Some(OpenEpoch { folder, manifest, .. }) = &self.open
            && let Some(chosen) = choose(manifest, &self.passed_over)
        {
            return Ok(Some(Merging::new(folder, manifest.number, &chosen)));
        }
        let open = self.open.as_ref().map(|open| open.manifest.number);
        for (number, folder) in layout::epochs(&self.folder)? {
            if Some(number) == open || self.settled.contains(&number) {
                continue;
            }
            match Manifest::read(&folder).map(|manifest| choose(&manifest, &self.passed_over)) {
                Ok(Some(chosen)) => {
                    return Ok(Some(Merging::new(&folder, number, &chosen)));
                }
                _ => self.settled.insert(number),
            };
        }
        Ok(None)
    }

    /// Makes the merger visible, and then removes what it was made of.
    fn replace(&mut self, merging: Merging) -> Result<(), StoreError> {
        let is_open = self.open.as_ref().is_some_and(|o| o.manifest.number == merging.number);
        let old = match &self.open {
            Some(open) if is_open => open.manifest.clone(),
            _ => Manifest::read(&merging.folder)?,
        };
        let names: HashSet<&str> = merging.chosen.iter().map(|s| s.name.as_str()).collect();
        let mut new = old.clone();
        let place = new.segments.iter().position(|s| names.contains(s.name.as_str()));
        new.segments.retain(|segment| !names.contains(segment.name.as_str()));
        new.segments.insert(place.unwrap_or(0).min(new.segments.len()), merging.merged());
        segment::commit(&self.lock, &merging.folder, &old, &new)?;
        for segment in &merging.chosen {
            segment::remove(&merging.folder, &segment.files);
        }
        if let (true, Some(open)) = (is_open, &mut self.open) {
            open.manifest = new;
        }
        Ok(())
    }
}
