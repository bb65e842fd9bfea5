//! Counts of which none are kept apart, sorted in time that grows with their number alone.
//!
//! A profile has its counts by image, offset and event; rows come by the image's and the event's
//! text and then by offset. So the counts of each image and event are dealt out in the order in
//! which they come, each to its group, and groups lie as their texts do:
//!
//! ```text
//! profile   (b, 1) (b, 2) (a, 1) (a, 7)      b was seen first
//! rows      (a, 1) (a, 7) (b, 1) (b, 2)
//! ```

use std::cmp::Ordering;

use vocab::{Count, Profile, Spot};

use super::COUNTS;
use super::from_profile::Named;
use crate::table::{Batch, Column, Maybes, Symbol, Texts};

/// What the rows of one image and event have in common: path, build-id, kind and label.
pub(super) type Common = [Symbol; 4];

/// The rows; none if some are kept apart, or if two images have one name and must be added up.
pub(super) fn plain_counts(
    profile: &Profile,
    images: &[Named],
    events: &[Symbol],
    texts: &Texts,
) -> Option<Batch> {
    if !profile.apart.is_empty() {
        return None;
    }
    let group_of = |spot: &Spot| spot.image.0 as usize * events.len() + usize::from(spot.event.0);
    let counts = || profile.counts.iter().filter(|(_, count)| **count > Count::ZERO);
    let mut lengths = vec![0_usize; images.len() * events.len()];
    for (spot, _) in counts() {
        *lengths.get_mut(group_of(spot))? += 1;
    }
    let groups = groups(images, events, texts, &lengths)?;
    let mut common: [Vec<Symbol>; 4] = Default::default();
    // Where each group's next row goes.
    let mut places = vec![0; lengths.len()];
    let mut rows = 0;
    for &(symbols, group) in &groups {
        let length = *lengths.get(group)?;
        for (column, symbol) in common.iter_mut().zip(symbols) {
            column.extend(std::iter::repeat_n(symbol, length));
        }
        *places.get_mut(group)? = rows;
        rows += length;
    }
    let (mut offsets, mut sums) = (vec![0; rows], vec![0; rows]);
    for (spot, &count) in counts() {
        let place = places.get_mut(group_of(spot))?;
        (*offsets.get_mut(*place)?, *sums.get_mut(*place)?) = (spot.offset.0, count.0);
        *place += 1;
    }
    let nobody = [
        Column::MaybeInt(Maybes::none(rows)),
        Column::Text(vec![Symbol::NONE; rows]),
        Column::MaybeInt(Maybes::none(rows)),
    ];
    let mut columns = common.map(Column::Text).to_vec();
    columns.push(Column::Int(offsets));
    columns.extend(nobody);
    columns.push(Column::Int(sums));
    Some(Batch { spec: &COUNTS, columns })
}

/// The groups that have rows, in the order of their texts; none if two have the same.
fn groups(
    images: &[Named],
    events: &[Symbol],
    texts: &Texts,
    lengths: &[usize],
) -> Option<Vec<(Common, usize)>> {
    let pairs = images.iter().flat_map(|image| events.iter().map(move |&event| (image, event)));
    let common = |(image, event): (&Named, Symbol)| [image.path, image.build_id, image.kind, event];
    let all = pairs.map(common).zip(0..).zip(lengths);
    let mut groups: Vec<(Common, usize)> =
        all.filter(|(_, length)| **length > 0).map(|(group, _)| group).collect();
    groups.sort_by(|(left, _), (right, _)| compare(left, right, texts));
    let alike = groups.windows(2).any(|pair| match pair {
        [(left, _), (right, _)] => left == right,
        _ => false,
    });
    (!alike).then_some(groups)
}

/// By their texts, one column after the other.
pub(super) fn compare(left: &Common, right: &Common, texts: &Texts) -> Ordering {
    let pairs = left.iter().zip(right).map(|(&l, &r)| texts.compare(l, r));
    pairs.fold(Ordering::Equal, Ordering::then)
}

#[cfg(test)]
mod tests {
    use super::super::Fill;
    use super::*;
    use vocab::{
        Epoch, Event, EventCode, EventId, Image, ImageId, ImageKind, Mode, Offset, Owner, Slice,
        Source,
    };

    fn profile(paths: &[&str]) -> Profile {
        let event =
            |name: &str| Event { name: name.into(), code: EventCode::new(1, 0), mode: Mode::Both };
        let epoch = Epoch { host: "h".into(), began_unix_ns: 0 };
        let mut profile =
            Profile::empty(epoch, Source::Measured, vec![event("z"), event("a"), event("m")]);
        for path in paths {
            let image = Image { kind: ImageKind::File, path: (*path).into(), build_id: None };
            profile.images.push(image);
        }
        for n in 0..500_u64 {
            let spot = Spot {
                image: ImageId((n % paths.len() as u64) as u32),
                offset: Offset(n * 7919 % 1009),
                event: EventId((n % 3) as u16),
            };
            profile.store(spot, Count(n % 5));
        }
        profile
    }

    fn rows(profile: &Profile) -> Batch {
        let labels: Vec<String> = profile.events.iter().map(|event| event.name.clone()).collect();
        Fill::new(profile, &labels).counts()
    }

    /// Rows of time slices are sorted by comparing; with one slice for all the order is the same.
    #[test]
    fn dealt_rows_are_those_that_sorting_gives() {
        let profile = profile(&["/usr/lib/b", "/bin/c", "/bin/a"]);
        let mut apart = profile.clone();
        let owner = Owner { process: None, slice: Some(Slice(0)) };
        let kept = profile.counts.iter().filter(|(_, count)| **count > Count::ZERO);
        apart.apart = kept.map(|(&spot, &count)| ((spot, owner), count)).collect();
        let (dealt, mut sorted) = (rows(&profile), rows(&apart));
        assert!(dealt.rows() > 300);
        // All but the slice is the same.
        sorted.columns[7] = dealt.columns[7].clone();
        assert_eq!(dealt, sorted);
    }

    #[test]
    fn two_images_of_one_name_are_added_up() {
        let profile = profile(&["/bin/a", "/bin/a"]);
        let batch = rows(&profile);
        let Some(Column::Int(sums)) = batch.columns.last() else { panic!("no counts") };
        assert_eq!(Count(sums.iter().sum()), profile.tally.stored);
        let Column::Int(offsets) = &batch.columns[4] else { panic!("no offsets") };
        let keys: Vec<(Symbol, u64)> =
            (0..batch.rows()).map(|row| (batch.text(3, row), offsets[row])).collect();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
