//! Counts for views: the rows of many epochs, without building a profile of each.
//!
//! A view by image needs neither offsets nor processes: then these columns are not even read, and
//! rows that differ in nothing else fold into one while they are read.

use std::collections::HashMap;

use vocab::{Count, Image, ImageId, Offset, Pid, Process, ProcessId};

use crate::StoreError;
use crate::database::EpochEntry;
use crate::table::{Batch, Column, Symbol, Texts, Wanted};
use crate::tables::{COUNTS, image_of};

/// What a view needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Want {
    /// Positions in images.
    pub offsets: bool,
    /// Processes, where they were kept apart.
    pub processes: bool,
    /// This image alone, by its whole path.
    pub image: Option<String>,
    /// This event alone, by its label.
    pub event: Option<String>,
}

/// One row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CountRow {
    /// The image, in [`Counts::images`].
    pub image: ImageId,
    /// The event's label, by its place in [`Counts::events`].
    pub event: u32,
    /// The position; 0 where it was not asked for.
    pub offset: Offset,
    /// The process, in [`Counts::processes`]; none where it was not asked for or not kept apart.
    pub process: Option<ProcessId>,
    /// How many samples.
    pub count: Count,
}

/// Rows of any number of epochs. The same key may come several times: counts add.
#[derive(Debug, Default)]
pub struct Counts {
    want: Want,
    texts: Texts,
    image_numbers: HashMap<[Symbol; 3], ImageId>,
    event_numbers: HashMap<Symbol, u32>,
    process_numbers: HashMap<(u64, Symbol), ProcessId>,
    /// The images.
    pub images: Vec<Image>,
    /// The labels of events.
    pub events: Vec<String>,
    /// The processes.
    pub processes: Vec<Process>,
    /// The rows.
    pub rows: Vec<CountRow>,
}

impl Counts {
    /// No rows yet.
    pub fn new(want: Want) -> Counts {
        Counts { want, ..Counts::default() }
    }

    /// Adds an epoch's rows. A file that cannot be read is told of, and the others are read.
    pub fn take(&mut self, epoch: &EpochEntry) -> Result<Vec<StoreError>, StoreError> {
        let before = self.rows.len();
        epoch.again_if_merged(|epoch| {
            self.rows.truncate(before);
            self.try_take(epoch)
        })
    }

    fn try_take(&mut self, epoch: &EpochEntry) -> Result<Vec<StoreError>, StoreError> {
        let wanted = self.wanted();
        let mut texts = std::mem::take(&mut self.texts);
        let mut troubles = Vec::new();
        let mut gone = None;
        for (spec, entry) in epoch.files().filter(|(spec, _)| spec.name == COUNTS.name) {
            let read = epoch.each_batch(spec, entry, &wanted, &mut texts, |batch, texts| {
                self.add(batch, texts);
            });
            match read {
                Err(error) if error.is_gone() => {
                    gone = Some(error);
                    break;
                }
                Err(error) => troubles.push(error),
                Ok(()) => {}
            }
        }
        self.texts = texts;
        gone.map_or(Ok(troubles), Err)
    }

    fn wanted(&self) -> Wanted {
        let mut wanted = Wanted { without: vec!["slice"], only: Vec::new() };
        if !self.want.offsets {
            wanted.without.push("offset");
        }
        if !self.want.processes {
            wanted.without.extend(["pid", "process"]);
        }
        let filters = [("image", &self.want.image), ("event", &self.want.event)];
        for (column, text) in filters {
            wanted.only.extend(text.clone().map(|text| (column, text)));
        }
        wanted
    }

    fn add(&mut self, batch: &Batch, texts: &Texts) {
        let [
            Column::Text(paths),
            Column::Text(ids),
            Column::Text(kinds),
            Column::Text(events),
            Column::Int(offsets),
            Column::MaybeInt(pids),
            Column::Text(names),
            _,
            Column::Int(counts),
        ] = batch.columns.as_slice()
        else {
            return;
        };
        let images = paths.iter().zip(ids).zip(kinds);
        let owners = pids.iter().zip(names);
        let rest = events.iter().zip(offsets).zip(owners).zip(counts);
        let mut last_image = None;
        let mut last_event = None;
        for (((&path, &id), &kind), (((&event, &offset), (pid, &name)), &count)) in images.zip(rest)
        {
            let named = [path, id, kind];
            let image = match last_image {
                Some((known, image)) if known == named => image,
                _ => self.image(named, texts),
            };
            last_image = Some((named, image));
            let label = match last_event {
                Some((known, label)) if known == event => label,
                _ => self.event(event, texts),
            };
            last_event = Some((event, label));
            let (Some(image), Some(event)) = (image, label) else { continue };
            let process = pid.map(|pid| self.process(pid, name, texts));
            let offset = Offset(offset);
            self.push(CountRow { image, event, offset, process, count: Count(count) });
        }
    }

    fn push(&mut self, row: CountRow) {
        if let Some(last) = self.rows.last_mut()
            && (last.image, last.event, last.offset, last.process)
                == (row.image, row.event, row.offset, row.process)
        {
            last.count += row.count;
            return;
        }
        self.rows.push(row);
    }

    /// None if another image was asked for.
    fn image(&mut self, named: [Symbol; 3], texts: &Texts) -> Option<ImageId> {
        let [path, id, kind] = named.map(|symbol| texts.text(symbol));
        let path = path.unwrap_or("");
        if self.want.image.as_deref().is_some_and(|wanted| wanted != path) {
            return None;
        }
        Some(*self.image_numbers.entry(named).or_insert_with(|| {
            self.images.push(image_of(path, id, kind.unwrap_or("file")));
            ImageId(self.images.len() as u32 - 1)
        }))
    }

    /// None if another event was asked for.
    fn event(&mut self, label: Symbol, texts: &Texts) -> Option<u32> {
        let text = texts.text(label).unwrap_or("");
        if self.want.event.as_deref().is_some_and(|wanted| wanted != text) {
            return None;
        }
        Some(*self.event_numbers.entry(label).or_insert_with(|| {
            self.events.push(text.to_owned());
            self.events.len() as u32 - 1
        }))
    }

    fn process(&mut self, pid: u64, name: Symbol, texts: &Texts) -> ProcessId {
        *self.process_numbers.entry((pid, name)).or_insert_with(|| {
            let name = texts.text(name).unwrap_or("").to_owned();
            self.processes.push(Process { pid: Pid(pid as u32), name });
            ProcessId(self.processes.len() as u32 - 1)
        })
    }
}
