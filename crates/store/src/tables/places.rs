//! Counts that come sorted, straight into row groups.
//!
//! A daemon holds tens of thousands of places in the smallest form there is. They are not copied
//! into a profile first, nor into columns all at once: a batch of rows is made, written and let go.
//!
//! ```text
//! places   image 1: … │ image 2: … │ image 3: …      by image, event, offset
//! rows     image 3: … │ image 1: … │ image 2: …      by the texts of image and event, offset
//! ```

use std::ops::Range;

use vocab::{Count, EventId, ImageId, Offset, Spot};

use super::COUNTS;
use super::plain_counts::{Common, compare};
use crate::table::{Batch, Column, Maybes, ROWS_PER_GROUP, Symbol, Texts};

/// Counts by place, sorted by image, event and offset, each place once.
pub trait Places {
    /// How many.
    fn len(&self) -> usize;

    /// One of them; asked for below [`Places::len`] alone.
    fn place(&self, row: usize) -> (Spot, Count);

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// No counts beside those of a profile.
pub(crate) struct Nowhere;

impl Places for Nowhere {
    fn len(&self) -> usize {
        0
    }

    fn place(&self, _: usize) -> (Spot, Count) {
        (Spot { image: ImageId(0), offset: Offset(0), event: EventId(0) }, Count::ZERO)
    }
}

/// The places of each image and event, in the order of their texts; none if two have the same
/// texts and must be added up.
pub(super) fn in_order(
    places: &dyn Places,
    common: impl Fn(Spot) -> Common,
    texts: &Texts,
) -> Option<Vec<(Common, Range<usize>)>> {
    let mut groups: Vec<(Common, Range<usize>)> = Vec::new();
    let mut last = None;
    for row in 0..places.len() {
        let (spot, _) = places.place(row);
        let group = (spot.image, spot.event);
        match groups.last_mut() {
            Some((_, range)) if last == Some(group) => range.end = row + 1,
            _ => groups.push((common(spot), row..row + 1)),
        }
        last = Some(group);
    }
    groups.sort_by(|(left, _), (right, _)| compare(left, right, texts));
    let alike = groups.windows(2).any(|pair| matches!(pair, [left, right] if left.0 == right.0));
    (!alike).then_some(groups)
}

/// Hands out the rows, batch by batch.
pub(super) fn batches<E>(
    places: &dyn Places,
    groups: &[(Common, Range<usize>)],
    mut full: impl FnMut(&Batch) -> Result<(), E>,
) -> Result<(), E> {
    let mut part = Part::default();
    for (common, range) in groups {
        let mut from = range.start;
        while from < range.end {
            let to = range.end.min(from + ROWS_PER_GROUP - part.offsets.len());
            part.extend(places, common, from..to);
            from = to;
            if part.offsets.len() >= ROWS_PER_GROUP {
                full(&part.take())?;
            }
        }
    }
    if part.offsets.is_empty() { Ok(()) } else { full(&part.take()) }
}

/// A batch that is being filled.
#[derive(Default)]
struct Part {
    common: [Vec<Symbol>; 4],
    offsets: Vec<u64>,
    counts: Vec<u64>,
}

impl Part {
    fn extend(&mut self, places: &dyn Places, common: &Common, rows: Range<usize>) {
        for (column, &symbol) in self.common.iter_mut().zip(common) {
            column.extend(std::iter::repeat_n(symbol, rows.len()));
        }
        for row in rows {
            let (spot, count) = places.place(row);
            self.offsets.push(spot.offset.0);
            self.counts.push(count.0);
        }
    }

    fn take(&mut self) -> Batch {
        let Part { common, offsets, counts } = std::mem::take(self);
        let rows = offsets.len();
        let mut columns = common.map(Column::Text).to_vec();
        columns.extend([
            Column::Int(offsets),
            Column::MaybeInt(Maybes::none(rows)),
            Column::Text(vec![Symbol::NONE; rows]),
            Column::MaybeInt(Maybes::none(rows)),
            Column::Int(counts),
        ]);
        Batch { spec: &COUNTS, columns }
    }
}
