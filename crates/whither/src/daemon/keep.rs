//! Into the database, whatever happens to it.

use std::path::PathBuf;

use store::{Compaction, Facts, Retention, Span, StoreError, Writer};
use vocab::Epoch;

use super::clock::Moment;
use super::pending::Pending;
use super::spots::Sorted;
use crate::failure::{ERROR, Failure};

/// The writer, and what is wrong with it.
#[derive(Debug)]
pub(super) struct Keep {
    root: PathBuf,
    host: String,
    facts: Facts,
    /// None after it was displaced; taken again at the next append.
    writer: Option<Writer>,
    pub(super) epoch: Epoch,
    /// The number of the epoch.
    pub(super) number: u64,
    /// When counts were last written.
    pub(super) last: Moment,
    pub(super) bytes: u64,
    /// Why the last append failed; none if it did not.
    pub(super) trouble: Option<String>,
    retention: Retention,
    /// Whether small segments may be worth merging.
    pub(super) may_compact: bool,
}

/// Rows that one step of a merge takes: a few milliseconds.
const STEP_ROWS: usize = 4096;

impl Keep {
    /// Takes the host's part of the database and goes on with its last epoch, or begins one.
    pub(super) fn open(
        root: PathBuf,
        host: String,
        facts: Facts,
        retention: Retention,
        now: Moment,
    ) -> Result<Keep, Failure> {
        let failed = |error: StoreError| {
            Failure::new(ERROR, error.to_string())
                .kept("nothing was started")
                .remedy("name another database with --db, or mend this one")
        };
        let (writer, number, epoch) = take(&root, &host, &facts, now).map_err(failed)?;
        Ok(Keep {
            root,
            host,
            facts,
            writer: Some(writer),
            epoch,
            number,
            last: now,
            bytes: 0,
            trouble: None,
            retention,
            may_compact: true,
        })
    }

    /// Appends what is pending. If that fails, it stays pending and the next time may succeed.
    pub(super) fn append(&mut self, pending: &mut Pending, now: Moment) -> Result<(), String> {
        let result = self.try_append(pending, now).map_err(|error| error.to_string());
        self.trouble = result.as_ref().err().cloned();
        result
    }

    fn try_append(&mut self, pending: &mut Pending, now: Moment) -> Result<(), StoreError> {
        if self.writer.is_none() {
            let (writer, number, epoch) = take(&self.root, &self.host, &self.facts, now)?;
            (self.writer, self.number, self.epoch) = (Some(writer), number, epoch.clone());
            pending.profile.epoch = epoch;
        }
        let writer = self.writer.as_mut().ok_or(StoreError::NoEpoch)?;
        let mut written = Sorted::default();
        if !pending.is_empty() {
            let span = Span { from_unix_ns: self.last.unix_ns, to_unix_ns: now.unix_ns };
            let (profile, places) = pending.seal();
            match writer.append_places(profile, &places, span) {
                Ok(appended) => {
                    self.bytes += appended.bytes;
                    written = places;
                }
                Err(error) => {
                    pending.put_back(places);
                    if matches!(error, StoreError::Displaced { .. }) {
                        self.writer = None;
                    }
                    return Err(error);
                }
            }
        }
        self.last = now;
        self.may_compact = true;
        pending.clear(self.epoch.clone(), written);
        if self.retention != Retention::default() {
            writer.retain(self.retention, now.unix_ns)?;
        }
        Ok(())
    }

    /// One step of merging small segments into larger ones, so that no append pays for all of it.
    /// A merge that fails leaves everything as it was.
    pub(super) fn compact(&mut self) {
        let step = self.writer.as_mut().map(|writer| writer.compact(STEP_ROWS));
        self.may_compact = matches!(step, Some(Ok(Compaction::Underway | Compaction::Merged)));
    }

    /// Begins a new epoch; everything must have been appended.
    pub(super) fn begin(&mut self, pending: &mut Pending, now: Moment) -> Result<u64, String> {
        let writer = self.writer.as_mut().ok_or("the database cannot be written")?;
        self.number =
            writer.begin(self.facts.clone(), now.unix_ns).map_err(|error| error.to_string())?;
        self.epoch = writer.epoch().ok_or("no epoch has begun")?;
        pending.clear(self.epoch.clone(), Sorted::default());
        Ok(self.number)
    }

    /// Says in the database that all is well.
    pub(super) fn leave(&mut self, now: Moment) -> Result<(), String> {
        match self.writer.take() {
            Some(writer) => writer.leave(now.unix_ns).map_err(|error| error.to_string()),
            None => Ok(()),
        }
    }
}

fn take(
    root: &std::path::Path,
    host: &str,
    facts: &Facts,
    now: Moment,
) -> Result<(Writer, u64, Epoch), StoreError> {
    let mut writer = Writer::open(root, host)?;
    // Time slices of another length cannot go on, nor samples that stand for more or less.
    let is_alike = writer.last_facts()?.is_some_and(|last| last.periods == facts.periods);
    let resumed = match facts.slice_ns {
        None if is_alike => writer.resume(now.unix_ns)?,
        _ => None,
    };
    let number = match resumed {
        Some(number) => number,
        None => writer.begin(facts.clone(), now.unix_ns)?,
    };
    let epoch = writer.epoch().ok_or(StoreError::NoEpoch)?;
    Ok((writer, number, epoch))
}
