//! Counts by image, offset and event, with what was lost on the way.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Count, Epoch, Event, EventId, Image, ImageId, Offset, Source, Unplaced};

/// Where a sample fell once it was placed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Spot {
    /// The image.
    pub image: ImageId,
    /// The position in it.
    pub offset: Offset,
    /// The event that was sampled.
    pub event: EventId,
}

/// What became of the samples: `taken = stored + unplaced + lost`, exactly, at every drain.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Placed and counted.
    pub stored: Count,
    /// Without an image, by reason.
    pub unplaced: BTreeMap<Unplaced, Count>,
    /// Taken by the interrupt and dropped before anyone could read them.
    pub lost: Count,
    /// Times the kernel paused sampling because interrupts came too fast.
    pub throttled: Count,
}

impl Tally {
    /// Every sample that the interrupt took.
    pub fn taken(&self) -> Count {
        self.stored + self.unplaced_total() + self.lost
    }

    /// Samples without an image, for whatever reason.
    pub fn unplaced_total(&self) -> Count {
        self.unplaced.values().copied().sum()
    }

    fn merge(&mut self, other: &Tally) {
        self.stored += other.stored;
        self.lost += other.lost;
        self.throttled += other.throttled;
        for (&reason, &count) in &other.unplaced {
            *self.unplaced.entry(reason).or_default() += count;
        }
    }
}

/// Two profiles that must not be added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MergeError {
    /// They belong to different epochs.
    Epoch,
    /// One was measured, the other modelled.
    Source,
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MergeError::Epoch => "the profiles belong to different epochs",
            MergeError::Source => "one profile is measured and the other modelled",
        })
    }
}

impl std::error::Error for MergeError {}

/// Counts by (image, offset, event) over one epoch from one source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// The span.
    pub epoch: Epoch,
    /// Machine or model.
    pub source: Source,
    /// The images, in the order in which they were first seen.
    pub images: Vec<Image>,
    /// The events, in the order in which they were asked for.
    pub events: Vec<Event>,
    /// The counts.
    pub counts: BTreeMap<Spot, Count>,
    /// What became of the samples.
    pub tally: Tally,
}

impl Profile {
    /// A profile without samples.
    pub fn empty(epoch: Epoch, source: Source, events: Vec<Event>) -> Profile {
        Profile {
            epoch,
            source,
            images: Vec::new(),
            events,
            counts: BTreeMap::new(),
            tally: Tally::default(),
        }
    }

    /// The id of an image, adding it if it is new.
    pub fn image_id(&mut self, image: &Image) -> ImageId {
        let known = self.images.iter().position(|held| held == image);
        let place = known.unwrap_or_else(|| {
            self.images.push(image.clone());
            self.images.len() - 1
        });
        ImageId(place as u32)
    }

    /// The id of an event, adding it if it is new.
    pub fn event_id(&mut self, event: &Event) -> EventId {
        let known = self.events.iter().position(|held| held == event);
        let place = known.unwrap_or_else(|| {
            self.events.push(event.clone());
            self.events.len() - 1
        });
        EventId(place as u16)
    }

    /// The image behind an id that this profile gave out.
    pub fn image(&self, id: ImageId) -> Option<&Image> {
        self.images.get(id.0 as usize)
    }

    /// Counts placed samples.
    pub fn store(&mut self, spot: Spot, count: Count) {
        *self.counts.entry(spot).or_default() += count;
        self.tally.stored += count;
    }

    /// Counts samples that have no image.
    pub fn leave_out(&mut self, reason: Unplaced, count: Count) {
        *self.tally.unplaced.entry(reason).or_default() += count;
    }

    /// Adds another profile of the same epoch and source; ids are translated by value.
    pub fn merge(&mut self, other: &Profile) -> Result<(), MergeError> {
        if self.epoch != other.epoch {
            return Err(MergeError::Epoch);
        }
        if self.source != other.source {
            return Err(MergeError::Source);
        }
        let images: Vec<ImageId> = other.images.iter().map(|i| self.image_id(i)).collect();
        let events: Vec<EventId> = other.events.iter().map(|e| self.event_id(e)).collect();
        for (spot, &count) in &other.counts {
            let (image, event) = (images[spot.image.0 as usize], events[spot.event.0 as usize]);
            *self.counts.entry(Spot { image, event, ..*spot }).or_default() += count;
        }
        self.tally.merge(&other.tally);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventCode, ImageKind, Mode};

    fn event(name: &str) -> Event {
        Event { name: name.into(), code: EventCode::new(1, 0), mode: Mode::Both }
    }

    fn image(path: &str) -> Image {
        Image { kind: ImageKind::File, path: path.into(), build_id: None }
    }

    fn profile(samples: &[(&str, &str, u64, u64)]) -> Profile {
        let epoch = Epoch { host: "h".into(), began_unix_ns: 1 };
        let mut profile = Profile::empty(epoch, Source::Measured, vec![]);
        for &(path, name, offset, count) in samples {
            let image = profile.image_id(&image(path));
            let event = profile.event_id(&event(name));
            profile.store(Spot { image, event, offset: Offset(offset) }, Count(count));
        }
        profile
    }

    #[test]
    fn merging_adds_by_image_and_event_whatever_their_order() {
        let mut left = profile(&[("a", "x", 4, 2), ("b", "y", 8, 3)]);
        let mut right = profile(&[("b", "y", 8, 10), ("a", "x", 4, 20), ("c", "x", 0, 1)]);
        right.leave_out(Unplaced::UnknownAddress, Count(5));
        right.tally.lost = Count(7);
        left.merge(&right).unwrap();
        let mut whole: Vec<u64> = left.counts.values().map(|c| c.0).collect();
        whole.sort_unstable();
        assert_eq!(whole, [1, 13, 22]);
        assert_eq!(left.tally.taken(), Count(36 + 5 + 7));
    }

    #[test]
    fn profiles_of_other_epochs_or_sources_do_not_merge() {
        let mut left = profile(&[]);
        let mut right = profile(&[]);
        right.source = Source::Modelled;
        assert_eq!(left.merge(&right), Err(MergeError::Source));
        right.epoch.began_unix_ns = 2;
        assert_eq!(left.merge(&right), Err(MergeError::Epoch));
    }
}
