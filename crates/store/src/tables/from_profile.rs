//! A profile as rows.

use std::collections::BTreeMap;
use std::ops::Range;

use vocab::{
    BranchTally, Count, Image, ImageFacts, ImageKind, Onward, Owner, Place, Profile, Spot,
};

use super::places::{self, Places};
use super::plain_counts::{Common, plain_counts};
use super::{BRANCHES, COUNTS, IMAGES, LOADS, STACKS, WAYS};
use crate::table::{Batch, Column, Symbol, Texts};

/// One value of a row that is being built.
enum Value<'a> {
    Int(u64),
    MaybeInt(Option<u64>),
    Text(Symbol),
    Ints(&'a [u64]),
    Texts(&'a [Symbol]),
}

fn push(batch: &mut Batch, row: &[Value<'_>]) {
    for (column, value) in batch.columns.iter_mut().zip(row) {
        match (column, value) {
            (Column::Int(column), Value::Int(value)) => column.push(*value),
            (Column::MaybeInt(column), Value::MaybeInt(value)) => column.push(*value),
            (Column::Text(column), Value::Text(value)) => column.push(*value),
            (Column::Ints(column), Value::Ints(value)) => column.push(value),
            (Column::Texts(column), Value::Texts(value)) => column.push(value),
            // A row that does not fit its table is a slip in this file; tests fill every table.
            _ => debug_assert!(false, "the value does not fit the column"),
        }
    }
}

/// An image's three columns.
#[derive(Clone, Copy)]
pub(super) struct Named {
    pub(super) path: Symbol,
    pub(super) build_id: Symbol,
    pub(super) kind: Symbol,
}

impl Named {
    const NONE: Named = Named { path: Symbol::NONE, build_id: Symbol::NONE, kind: Symbol::NONE };
}

/// The word for a kind of image; generated code belongs to its process.
fn kind_word(kind: ImageKind) -> String {
    match kind {
        ImageKind::File => "file".into(),
        ImageKind::Kernel => "kernel".into(),
        ImageKind::Module => "module".into(),
        ImageKind::Vdso => "vdso".into(),
        ImageKind::Generated(pid) => format!("generated {}", pid.0),
    }
}

/// The word for where control went, and the offset that goes with it.
fn onward_word(onward: Onward) -> (&'static str, Option<u64>) {
    match onward {
        Onward::Passed => ("passed", None),
        Onward::To(offset) => ("to", Some(offset.0)),
        Onward::Taken => ("taken", None),
        Onward::Straight => ("straight", None),
    }
}

/// Turns a profile into batches; one for all tables, so that they share their texts.
pub(crate) struct Fill<'a> {
    profile: &'a Profile,
    images: Vec<Named>,
    events: Vec<Symbol>,
    pub(crate) texts: Texts,
}

impl<'a> Fill<'a> {
    /// `labels` are the texts by which the profile's events are stored, in its order.
    pub(crate) fn new(profile: &'a Profile, labels: &[String]) -> Fill<'a> {
        let mut texts = Texts::default();
        let named = |image: &Image, texts: &mut Texts| Named {
            path: texts.number(&image.path),
            build_id: image.build_id.map_or(Symbol::NONE, |id| texts.number(&id.to_string())),
            kind: texts.number(&kind_word(image.kind)),
        };
        let images = profile.images.iter().map(|image| named(image, &mut texts)).collect();
        let events = labels.iter().map(|label| texts.number(label)).collect();
        Fill { profile, images, events, texts }
    }

    fn image(&self, id: vocab::ImageId) -> Named {
        self.images.get(id.0 as usize).copied().unwrap_or(Named::NONE)
    }

    fn event(&self, id: vocab::EventId) -> Symbol {
        self.events.get(usize::from(id.0)).copied().unwrap_or_default()
    }

    /// The order of counts that are not in the profile; none if they must be added to it first.
    pub(crate) fn places(&self, places: &dyn Places) -> Option<Vec<(Common, Range<usize>)>> {
        let alone = self.profile.apart.is_empty() && self.profile.counts.is_empty();
        let common = |spot: Spot| {
            let image = self.image(spot.image);
            [image.path, image.build_id, image.kind, self.event(spot.event)]
        };
        alone.then(|| places::in_order(places, common, &self.texts)).flatten()
    }

    /// Their rows, a batch at a time.
    pub(crate) fn place_rows<E>(
        &self,
        places: &dyn Places,
        groups: &[(Common, Range<usize>)],
        mut full: impl FnMut(&Batch, &Texts) -> Result<(), E>,
    ) -> Result<(), E> {
        places::batches(places, groups, |batch| full(batch, &self.texts))
    }

    pub(crate) fn counts(&mut self) -> Batch {
        if let Some(batch) = plain_counts(self.profile, &self.images, &self.events, &self.texts) {
            return batch;
        }
        let mut batch = Batch::new(&COUNTS);
        let mut apart: BTreeMap<Spot, Count> = BTreeMap::new();
        for (&(spot, owner), &count) in &self.profile.apart {
            *apart.entry(spot).or_default() += count;
            self.count(&mut batch, spot, owner, count);
        }
        for (&spot, &count) in &self.profile.counts {
            let left = count.0.saturating_sub(apart.get(&spot).map_or(0, |held| held.0));
            if left > 0 {
                self.count(&mut batch, spot, Owner::NOBODY, Count(left));
            }
        }
        batch.sorted(&self.texts)
    }

    fn count(&mut self, batch: &mut Batch, spot: Spot, owner: Owner, count: Count) {
        let image = self.image(spot.image);
        let process = owner.process.and_then(|id| self.profile.processes.get(id.0 as usize));
        let name = process.map_or(Symbol::NONE, |process| self.texts.number(&process.name));
        push(
            batch,
            &[
                Value::Text(image.path),
                Value::Text(image.build_id),
                Value::Text(image.kind),
                Value::Text(self.event(spot.event)),
                Value::Int(spot.offset.0),
                Value::MaybeInt(process.map(|process| u64::from(process.pid.0))),
                Value::Text(name),
                Value::MaybeInt(owner.slice.map(|slice| u64::from(slice.0))),
                Value::Int(count.0),
            ],
        );
    }

    /// Facts of the images for which `is_new` says that they are not yet in the epoch.
    pub(crate) fn images(&self, is_new: impl Fn(&Image, &ImageFacts) -> bool) -> Batch {
        let mut batch = Batch::new(&IMAGES);
        for (&id, facts) in &self.profile.facts {
            let Some(image) = self.profile.image(id) else { continue };
            if !is_new(image, facts) {
                continue;
            }
            let named = self.image(id);
            let column = |value: fn(&vocab::Loaded) -> u64| -> Vec<u64> {
                facts.layout.iter().map(value).collect()
            };
            push(
                &mut batch,
                &[
                    Value::Text(named.path),
                    Value::Text(named.build_id),
                    Value::Text(named.kind),
                    Value::MaybeInt(facts.size_bytes),
                    Value::Ints(&column(|part| part.address)),
                    Value::Ints(&column(|part| part.offset)),
                    Value::Ints(&column(|part| part.length)),
                ],
            );
        }
        batch.sorted(&self.texts)
    }

    pub(crate) fn stacks(&self) -> Batch {
        let mut batch = Batch::new(&STACKS);
        for (stack, &count) in &self.profile.stacks {
            let frames: Vec<(Named, u64)> = stack.frames.iter().map(|f| self.end(*f)).collect();
            let column = |part: fn(&Named) -> Symbol| -> Vec<Symbol> {
                frames.iter().map(|(named, _)| part(named)).collect()
            };
            let offsets: Vec<u64> = frames.iter().map(|&(_, offset)| offset).collect();
            push(
                &mut batch,
                &[
                    Value::Text(self.event(stack.event)),
                    Value::Texts(&column(|named| named.path)),
                    Value::Texts(&column(|named| named.build_id)),
                    Value::Texts(&column(|named| named.kind)),
                    Value::Ints(&offsets),
                    Value::Int(count.0),
                ],
            );
        }
        batch.sorted(&self.texts)
    }

    /// A place that may be missing.
    fn end(&self, place: Option<Place>) -> (Named, u64) {
        place.map_or((Named::NONE, 0), |place| (self.image(place.image), place.offset.0))
    }

    pub(crate) fn branches(&self) -> Batch {
        let mut batch = Batch::new(&BRANCHES);
        for (branch, tally) in &self.profile.branches {
            let BranchTally { count, mispredicted, cycles, timed } = *tally;
            let ((from, _), (to, _)) = (self.end(branch.from), self.end(branch.to));
            push(
                &mut batch,
                &[
                    Value::Text(self.event(branch.event)),
                    Value::Text(from.path),
                    Value::Text(from.build_id),
                    Value::Text(from.kind),
                    Value::MaybeInt(branch.from.map(|place| place.offset.0)),
                    Value::Text(to.path),
                    Value::Text(to.build_id),
                    Value::Text(to.kind),
                    Value::MaybeInt(branch.to.map(|place| place.offset.0)),
                    Value::Int(count.0),
                    Value::Int(mispredicted.0),
                    Value::Int(cycles.0),
                    Value::Int(timed.0),
                ],
            );
        }
        batch.sorted(&self.texts)
    }

    pub(crate) fn ways(&mut self) -> Batch {
        let mut batch = Batch::new(&WAYS);
        for (way, tally) in &self.profile.ways {
            let (image, offset) = self.end(Some(way.place));
            let (word, to) = onward_word(way.onward);
            let word = self.texts.number(word);
            push(
                &mut batch,
                &[
                    Value::Text(self.event(way.event)),
                    Value::Text(image.path),
                    Value::Text(image.build_id),
                    Value::Text(image.kind),
                    Value::Int(offset),
                    Value::Text(word),
                    Value::MaybeInt(to),
                    Value::Int(tally.count.0),
                    Value::Int(tally.pairs.0),
                    Value::Int(tally.begun.0),
                ],
            );
        }
        batch.sorted(&self.texts)
    }

    pub(crate) fn loads(&mut self) -> Batch {
        let mut batch = Batch::new(&LOADS);
        for (load, &count) in &self.profile.loads {
            let (image, offset) = self.end(Some(load.place));
            let level = self.texts.number(load.level.word());
            push(
                &mut batch,
                &[
                    Value::Text(self.event(load.event)),
                    Value::Text(image.path),
                    Value::Text(image.build_id),
                    Value::Text(image.kind),
                    Value::Int(offset),
                    Value::Text(level),
                    Value::Int(load.latency_cycles),
                    Value::Int(count.0),
                ],
            );
        }
        batch.sorted(&self.texts)
    }
}
