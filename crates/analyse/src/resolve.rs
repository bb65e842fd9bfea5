//! Counts by image and by procedure.

use std::collections::{BTreeMap, HashMap};

use image::{Procedure, Procedures};
use vocab::{Count, EventId, ImageId, Offset, Profile};

/// What one image holds of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageTime {
    /// The image.
    pub image: ImageId,
    /// Its samples.
    pub count: Count,
}

/// What one procedure holds of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcedureTime {
    /// The image.
    pub image: ImageId,
    /// The procedure; none for samples of the image that lie in no procedure it knows of.
    pub procedure: Option<Procedure>,
    /// Its samples.
    pub count: Count,
    /// The same by place; the counts add up to `count`.
    pub offsets: BTreeMap<Offset, Count>,
}

/// Counts by image, most first; ties in the order in which the images were seen.
pub fn by_image(profile: &Profile, event: EventId) -> Vec<ImageTime> {
    let mut sums: BTreeMap<ImageId, Count> = BTreeMap::new();
    for (spot, &count) in profile.counts.iter().filter(|(spot, _)| spot.event == event) {
        *sums.entry(spot.image).or_default() += count;
    }
    let mut rows: Vec<ImageTime> =
        sums.into_iter().map(|(image, count)| ImageTime { image, count }).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.count), row.image));
    rows
}

/// Counts by procedure, most first; ties in the order of image and address.
pub fn by_procedure(
    profile: &Profile,
    event: EventId,
    procedures: &HashMap<ImageId, Procedures>,
) -> Vec<ProcedureTime> {
    let mut rows: BTreeMap<(ImageId, Option<Offset>), ProcedureTime> = BTreeMap::new();
    for (spot, &count) in profile.counts.iter().filter(|(spot, _)| spot.event == event) {
        let procedure = procedures.get(&spot.image).and_then(|p| p.find(spot.offset));
        let key = (spot.image, procedure.map(|p| p.start));
        let row = rows.entry(key).or_insert_with(|| ProcedureTime {
            image: spot.image,
            procedure: procedure.cloned(),
            count: Count::ZERO,
            offsets: BTreeMap::new(),
        });
        row.count += count;
        *row.offsets.entry(spot.offset).or_default() += count;
    }
    let mut rows: Vec<ProcedureTime> = rows.into_values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.count));
    rows
}
