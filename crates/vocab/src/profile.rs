//! Counts by image, offset and event, with what was lost on the way.

use std::collections::BTreeMap;
use std::fmt;

use crate::{
    Branch, BranchTally, Count, Epoch, Event, EventId, Image, ImageFacts, ImageId, Load, Offset,
    Owner, Place, Process, ProcessId, Source, Stack, Unplaced, Way, WayTally,
};

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

impl Spot {
    /// The spot, whatever the event.
    pub fn place(&self) -> Place {
        Place { image: self.image, offset: self.offset }
    }
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
    /// Of the stored, how many fell on a pc where delayed interrupts pile up.
    pub blind: Count,
    /// What the handler itself counted, where it does: then it must equal [`Tally::taken`].
    pub entries: Option<Count>,
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

    /// Whether the handler's own count agrees with what became of the samples; true where the
    /// handler does not count.
    pub fn is_whole(&self) -> bool {
        self.entries.is_none_or(|entries| entries == self.taken())
    }

    /// Adds what became of further samples. The handler's count is known of the sum only if it is
    /// known of both, or if one of them has no samples.
    pub fn merge(&mut self, other: &Tally) {
        self.entries = match (self.entries, other.entries) {
            (Some(ours), Some(theirs)) => Some(ours + theirs),
            (None, entries) if self.taken() == Count::ZERO => entries,
            (entries, None) if other.taken() == Count::ZERO => entries,
            _ => None,
        };
        self.blind += other.blind;
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
    /// The processes, in the order in which they were first seen; empty where they are not kept
    /// apart.
    pub processes: Vec<Process>,
    /// The part of `counts` that is kept apart by process or time slice. Each spot's counts here
    /// sum to no more than its count there.
    pub apart: BTreeMap<(Spot, Owner), Count>,
    /// Chains of calls; empty unless they were asked for.
    pub stacks: BTreeMap<Stack, Count>,
    /// Branch records; empty unless the samples carried them.
    pub branches: BTreeMap<Branch, BranchTally>,
    /// Where control went, as far as samples told; empty unless they did.
    pub ways: BTreeMap<Way, WayTally>,
    /// Outcomes of sampled loads; empty unless the samples carried them.
    pub loads: BTreeMap<Load, Count>,
    /// What is known of images beside their identity.
    pub facts: BTreeMap<ImageId, ImageFacts>,
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
            processes: Vec::new(),
            apart: BTreeMap::new(),
            stacks: BTreeMap::new(),
            branches: BTreeMap::new(),
            ways: BTreeMap::new(),
            loads: BTreeMap::new(),
            facts: BTreeMap::new(),
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

    /// The id of a process, adding it if it is new.
    pub fn process_id(&mut self, process: &Process) -> ProcessId {
        let known = self.processes.iter().position(|held| held == process);
        let place = known.unwrap_or_else(|| {
            self.processes.push(process.clone());
            self.processes.len() - 1
        });
        ProcessId(place as u32)
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

    /// Counts placed samples, kept apart by their owner.
    pub fn store_for(&mut self, spot: Spot, owner: Owner, count: Count) {
        self.store(spot, count);
        if owner != Owner::NOBODY {
            *self.apart.entry((spot, owner)).or_default() += count;
        }
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
        let ids = Ids {
            images: other.images.iter().map(|i| self.image_id(i)).collect(),
            events: other.events.iter().map(|e| self.event_id(e)).collect(),
            processes: other.processes.iter().map(|p| self.process_id(p)).collect(),
        };
        for (&spot, &count) in &other.counts {
            *self.counts.entry(ids.spot(spot)).or_default() += count;
        }
        for (&(spot, owner), &count) in &other.apart {
            *self.apart.entry((ids.spot(spot), ids.owner(owner))).or_default() += count;
        }
        for (stack, &count) in &other.stacks {
            *self.stacks.entry(ids.stack(stack)).or_default() += count;
        }
        for (branch, tally) in &other.branches {
            self.branches.entry(ids.branch(branch)).or_default().add(tally);
        }
        for (way, tally) in &other.ways {
            self.ways.entry(ids.way(way)).or_default().add(tally);
        }
        for (load, &count) in &other.loads {
            *self.loads.entry(ids.load(load)).or_default() += count;
        }
        for (&image, facts) in &other.facts {
            self.facts.entry(ids.image(image)).or_insert_with(|| facts.clone());
        }
        self.tally.merge(&other.tally);
        Ok(())
    }
}

/// Another profile's ids as ours.
struct Ids {
    images: Vec<ImageId>,
    events: Vec<EventId>,
    processes: Vec<ProcessId>,
}

impl Ids {
    fn image(&self, id: ImageId) -> ImageId {
        self.images[id.0 as usize]
    }

    fn event(&self, id: EventId) -> EventId {
        self.events[usize::from(id.0)]
    }

    fn spot(&self, spot: Spot) -> Spot {
        Spot { image: self.image(spot.image), event: self.event(spot.event), ..spot }
    }

    fn owner(&self, owner: Owner) -> Owner {
        let process = owner.process.map(|id| self.processes[id.0 as usize]);
        Owner { process, ..owner }
    }

    fn place(&self, place: Place) -> Place {
        Place { image: self.image(place.image), ..place }
    }

    fn stack(&self, stack: &Stack) -> Stack {
        let frames = stack.frames.iter().map(|frame| frame.map(|place| self.place(place)));
        Stack { event: self.event(stack.event), frames: frames.collect() }
    }

    fn branch(&self, branch: &Branch) -> Branch {
        Branch {
            event: self.event(branch.event),
            from: branch.from.map(|place| self.place(place)),
            to: branch.to.map(|place| self.place(place)),
        }
    }

    fn way(&self, way: &Way) -> Way {
        Way { event: self.event(way.event), place: self.place(way.place), ..*way }
    }

    fn load(&self, load: &Load) -> Load {
        Load { event: self.event(load.event), place: self.place(load.place), ..*load }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventCode, ImageKind, Mode, Pid};

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

    #[test]
    fn what_is_kept_apart_keeps_its_owner_through_a_merge() {
        let (mut left, mut right) = (profile(&[("a", "x", 4, 2)]), profile(&[("b", "x", 1, 1)]));
        let spot = |profile: &mut Profile, path| Spot {
            image: profile.image_id(&image(path)),
            offset: Offset(4),
            event: EventId(0),
        };
        for (profile, name) in [(&mut left, "one"), (&mut right, "two")] {
            let spot = spot(profile, "a");
            let process = profile.process_id(&Process { pid: Pid(7), name: name.into() });
            let owner = Owner { process: Some(process), slice: None };
            profile.store_for(spot, owner, Count(10));
            profile.stacks.insert(
                Stack { event: EventId(0), frames: vec![Some(spot.place()), None] },
                Count(3),
            );
        }
        left.merge(&right).unwrap();
        assert_eq!(left.apart.len(), 2, "two processes of one number stay two");
        assert_eq!(left.apart.values().copied().sum::<Count>(), Count(20));
        assert_eq!(left.stacks.values().copied().collect::<Vec<_>>(), [Count(6)]);
        assert_eq!(left.tally.stored, Count(2 + 1 + 20));
    }

    #[test]
    fn the_handlers_count_survives_only_where_both_sides_have_it() {
        let tally = |stored, entries| Tally { stored: Count(stored), entries, ..Tally::default() };
        let mut both = tally(5, Some(Count(5)));
        both.merge(&tally(2, Some(Count(3))));
        assert_eq!((both.entries, both.is_whole()), (Some(Count(8)), false));
        both.merge(&tally(1, None));
        assert_eq!((both.entries, both.is_whole()), (None, true));
        let mut fresh = Tally::default();
        fresh.merge(&tally(4, Some(Count(4))));
        assert_eq!(fresh.entries, Some(Count(4)));
    }
}
