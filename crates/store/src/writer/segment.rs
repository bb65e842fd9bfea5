//! One segment's files.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;

use vocab::{Image, Profile};

use crate::StoreError;
use crate::durable::{self, Unfinished};
use crate::lock::Lock;
use crate::manifest::{self, Checks, Manifest, TableEntry};
use crate::table::{Batch, Effort, ROWS_PER_GROUP, Rows, TableFile, Texts, Wanted, checks_of};
use crate::tables::{COUNTS, Fill, IMAGES, Nowhere, Places, image_of};

/// What a segment is made from.
pub(crate) struct Content<'a> {
    pub(crate) profile: &'a Profile,
    /// Counts beside those of the profile.
    pub(crate) places: &'a dyn Places,
    /// By which the profile's events are stored.
    pub(crate) labels: &'a [String],
}

/// Writes a profile's tables; empty ones get no file.
pub(crate) fn write(
    folder: &Path,
    name: &str,
    content: &Content<'_>,
    is_new: impl Fn(&Image) -> bool,
    effort: Effort,
) -> Result<Vec<TableEntry>, StoreError> {
    let mut fill = Fill::new(content.profile, content.labels);
    let mut entries: Vec<TableEntry> = Vec::new();
    if !content.places.is_empty() {
        let Some(groups) = fill.places(content.places) else {
            let profile = &whole(content);
            let content = Content { profile, places: &Nowhere, labels: content.labels };
            return write(folder, name, &content, is_new, effort);
        };
        let mut output = Output::create(folder, name, &COUNTS, effort)?;
        let written = fill.place_rows(content.places, &groups, |b, texts| output.write(b, texts));
        match written {
            Ok(()) => entries.push(output.finish()?),
            Err(error) => {
                output.discard();
                return Err(error);
            }
        }
    }
    let batches = [
        fill.counts(),
        fill.images(|image, _| is_new(image)),
        fill.stacks(),
        fill.branches(),
        fill.loads(),
        fill.ways(),
    ];
    for batch in batches.iter().filter(|batch| batch.rows() > 0) {
        match table(folder, name, batch, &fill.texts, effort) {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                remove(folder, &entries);
                return Err(error);
            }
        }
    }
    Ok(entries)
}

/// The slow way: everything in the profile.
fn whole(content: &Content<'_>) -> Profile {
    let mut profile = content.profile.clone();
    for row in 0..content.places.len() {
        let (spot, count) = content.places.place(row);
        *profile.counts.entry(spot).or_default() += count;
    }
    profile
}

fn table(
    folder: &Path,
    name: &str,
    batch: &Batch,
    texts: &Texts,
    effort: Effort,
) -> Result<TableEntry, StoreError> {
    let mut output = Output::create(folder, name, batch.spec, effort)?;
    let rows = batch.rows();
    if rows <= ROWS_PER_GROUP {
        output.write(batch, texts)?;
        return output.finish();
    }
    for from in (0..rows).step_by(ROWS_PER_GROUP) {
        let part = batch.part(from, rows.min(from + ROWS_PER_GROUP));
        output.write(&part, texts)?;
    }
    output.finish()
}

/// A table of a segment on its way to disk.
pub(crate) struct Output {
    unfinished: Unfinished,
    table: TableFile<File>,
    entry: TableEntry,
}

impl Output {
    pub(crate) fn create(
        folder: &Path,
        name: &str,
        spec: &'static crate::table::Spec,
        effort: Effort,
    ) -> Result<Output, StoreError> {
        let file = format!("{name}.{}.parquet", spec.name);
        let path = folder.join(&file);
        let unfinished = Unfinished::create(&path)?;
        let handle = unfinished.file.try_clone().map_err(StoreError::io("write", &path))?;
        let table = TableFile::new(spec, handle, effort).map_err(StoreError::damaged(&path))?;
        let entry = TableEntry {
            table: spec.name.into(),
            file,
            rows: 0,
            bytes: 0,
            checks: Checks::default(),
        };
        Ok(Output { unfinished, table, entry })
    }

    pub(crate) fn write(&mut self, batch: &Batch, texts: &Texts) -> Result<(), StoreError> {
        self.entry.rows += batch.rows() as u64;
        self.table.write(batch, texts).map_err(StoreError::not_written(self.unfinished.path()))
    }

    pub(crate) fn discard(self) {
        self.unfinished.discard();
    }

    pub(crate) fn finish(self) -> Result<TableEntry, StoreError> {
        let Output { unfinished, table, mut entry } = self;
        let path = unfinished.path().to_owned();
        let written = table.finish().map_err(StoreError::not_written(&path));
        let checked = written.and_then(|metadata| {
            let length = unfinished.file.metadata().map(|m| m.len());
            let checks = length
                .and_then(|length| Ok((length, checks_of(&unfinished.file, &metadata, length)?)));
            checks.map_err(StoreError::io("write", &path))
        });
        match checked {
            Ok((length, checks)) => (entry.bytes, entry.checks) = (length, checks),
            Err(error) => {
                unfinished.discard();
                return Err(error);
            }
        }
        unfinished.finish()?;
        Ok(entry)
    }
}

/// Makes a new manifest the one that readers see. If that fails, files that only it lists go.
pub(crate) fn commit(
    lock: &Lock,
    folder: &Path,
    old: &Manifest,
    new: &Manifest,
) -> Result<(), StoreError> {
    let done =
        durable::sync_folder(folder).and_then(|()| lock.check()).and_then(|()| new.write(folder));
    if done.is_err() {
        let held = listed(old);
        let fresh = new.segments.iter().flat_map(|segment| &segment.files);
        let fresh: Vec<TableEntry> =
            fresh.filter(|entry| !held.contains(entry.file.as_str())).cloned().collect();
        remove(folder, &fresh);
    }
    done
}

fn listed(manifest: &Manifest) -> HashSet<&str> {
    let files = manifest.segments.iter().flat_map(|segment| &segment.files);
    files.map(|entry| entry.file.as_str()).collect()
}

pub(crate) fn remove(folder: &Path, entries: &[TableEntry]) {
    for entry in entries {
        let _ = std::fs::remove_file(folder.join(&entry.file));
    }
}

/// Removes what a writer that was killed left behind: whatever the manifest does not list.
pub(crate) fn sweep(folder: &Path, manifest: &Manifest) {
    let held = listed(manifest);
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let ours = name.starts_with(durable::UNFINISHED) || name.ends_with(".parquet");
        if ours && name != manifest::NAME && !held.contains(name) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The images whose facts are stored already. A file that cannot be read costs facts twice, no
/// more.
pub(crate) fn known_images(folder: &Path, manifest: &Manifest) -> HashSet<Image> {
    let mut known = HashSet::new();
    let files = manifest.segments.iter().flat_map(|segment| &segment.files);
    for entry in files.filter(|entry| entry.table == IMAGES.name) {
        let mut texts = Texts::default();
        let path = folder.join(&entry.file);
        let Ok(mut rows) = Rows::open(&IMAGES, &path, entry, &Wanted::default()) else { continue };
        while let Ok(Some(batch)) = rows.next(&mut texts) {
            for row in 0..batch.rows() {
                let text = |column| texts.text(batch.text(column, row));
                known.insert(image_of(text(0).unwrap_or(""), text(1), text(2).unwrap_or("file")));
            }
        }
    }
    known
}
