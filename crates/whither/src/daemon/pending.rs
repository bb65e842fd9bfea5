//! Counts on their way to the database.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use collect::{ChainTable, Drained, Entry, Placed, Processes};
use store::Places;
use vocab::{
    Count, Epoch, Event, ImageId, ImageKind, Owner, Pid, Place, Process, ProcessId, Profile, Slice,
    Source, Spot, Stack, Unplaced,
};

use super::aside::Foreign;
use super::head;
use super::spots::{Sorted, Spots};
use crate::database::kernel_build_id;

/// Distinct places that are held while the database takes none: some 20 MB. Beyond them samples of
/// new places are counted as lost.
const MOST_SPOTS: usize = 300_000;
/// Distinct places at which it is time to append, whatever the clock says: memory stays small. Just
/// below three quarters of a power of two, which is two megabytes of slots.
const MANY_SPOTS: usize = 96_000;
/// The same at high rates, where places come so fast that appending would cost more than sampling.
const MANY_SPOTS_FAST: usize = 190_000;
const FAST_HERTZ: u64 = 8_000;

/// What is kept apart beside image, offset and event.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Apart {
    pub(super) processes: bool,
    pub(super) slice: Option<Slice>,
}

/// Counts since the last append.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) profile: Profile,
    pub(super) apart: Apart,
    /// Counts that are not in the profile yet: one quick step for each entry, and one sort at the
    /// end instead of a search each time.
    spots: Spots,
    many: usize,
    /// Images as `Processes` numbers them → as the profile does.
    ids: Vec<Option<ImageId>>,
    owners: HashMap<Pid, ProcessId>,
    /// Images whose facts are in this epoch already, by hash: their names would be large.
    described: HashSet<u64>,
    hasher: RandomState,
    /// Images whose file could not be read.
    pub(super) vanished: u64,
    /// The last of them.
    pub(super) last_vanished: Option<String>,
    /// Processes whose own code was sampled: its names are to be copied.
    pub(super) made_code: BTreeSet<Pid>,
    /// Images seen in mount namespaces that are not ours.
    pub(super) foreign: Vec<Foreign>,
}

impl Pending {
    pub(super) fn new(epoch: Epoch, events: Vec<Event>, apart: Apart, hertz: u64) -> Pending {
        Pending {
            profile: Profile::empty(epoch, Source::Measured, events),
            apart,
            spots: Spots::default(),
            many: if hertz < FAST_HERTZ { MANY_SPOTS } else { MANY_SPOTS_FAST },
            ids: Vec::new(),
            owners: HashMap::new(),
            described: HashSet::new(),
            hasher: RandomState::new(),
            vanished: 0,
            last_vanished: None,
            made_code: BTreeSet::new(),
            foreign: Vec::new(),
        }
    }

    /// Everything has been written: empty again, for the same epoch or another.
    pub(super) fn clear(&mut self, epoch: Epoch, written: Sorted) {
        self.spots.reuse(written);
        self.spots.forget();
        if epoch != self.profile.epoch {
            self.described.clear();
        }
        let events = std::mem::take(&mut self.profile.events);
        self.profile = Profile::empty(epoch, Source::Measured, events);
        self.ids = Vec::new();
        self.owners = HashMap::new();
    }

    /// Whether nothing happened since the last append.
    pub(super) fn is_empty(&self) -> bool {
        self.profile.tally.taken() == Count::ZERO
    }

    /// Whether it is time to append, whatever the clock says.
    pub(super) fn is_large(&self) -> bool {
        self.len() >= self.many
    }

    /// Distinct places.
    pub(super) fn len(&self) -> usize {
        self.spots.len() + self.profile.counts.len() + self.profile.apart.len()
    }

    /// Everything, for an append: the profile, and the counts that are not in it.
    pub(super) fn seal(&mut self) -> (&Profile, Sorted) {
        let mut sorted = self.spots.take();
        for (spot, count) in self.spots.take_over() {
            *self.profile.counts.entry(spot).or_default() += count;
        }
        // What is kept apart is written beside what is not, place by place.
        if !self.profile.apart.is_empty() || !self.profile.counts.is_empty() {
            for row in 0..sorted.len() {
                let (spot, count) = sorted.place(row);
                *self.profile.counts.entry(spot).or_default() += count;
            }
            self.spots.reuse(std::mem::take(&mut sorted));
        }
        // No mapping tells the kernel's; without it names hold only until the next boot.
        let kernels = self.profile.images.iter_mut().filter(|i| i.kind == ImageKind::Kernel);
        for kernel in kernels.filter(|kernel| kernel.build_id.is_none()) {
            kernel.build_id = kernel_build_id();
        }
        (&self.profile, sorted)
    }

    /// What could not be appended is pending again.
    pub(super) fn put_back(&mut self, sorted: Sorted) {
        self.spots.put_back(sorted);
    }

    /// Counts an entry; false if there is no room, and then it counts as lost.
    pub(super) fn store(&mut self, processes: &Processes, placed: Placed, entry: &Entry) -> bool {
        let count = Count(u64::from(entry.count));
        let Some(image) = self.image(processes, placed.image, entry.pid) else {
            self.profile.tally.lost += count;
            return false;
        };
        let spot = Spot { image, offset: placed.offset, event: entry.event };
        let full = self.len() >= MOST_SPOTS;
        if full && !self.profile.counts.contains_key(&spot) && !self.spots.contains(spot) {
            self.profile.tally.lost += count;
            return false;
        }
        if placed.blind {
            self.profile.tally.blind += count;
        }
        let owner = Owner { process: self.owner(processes, entry.pid), slice: self.apart.slice };
        if owner != Owner::NOBODY {
            *self.profile.apart.entry((spot, owner)).or_default() += count;
        }
        self.spots.add(spot, entry.count);
        self.profile.tally.stored += count;
        true
    }

    pub(super) fn leave_out(&mut self, reason: Unplaced, count: u64) {
        self.profile.leave_out(reason, Count(count));
    }

    /// What the handlers counted themselves.
    pub(super) fn take_tally(&mut self, drained: &Drained) {
        let tally = &mut self.profile.tally;
        tally.lost += Count(drained.lost);
        tally.entries = Some(tally.entries.unwrap_or_default() + Count(drained.entries));
    }

    /// Chains of callers, frame by frame.
    pub(super) fn take_chains(&mut self, processes: &mut Processes, chains: &ChainTable) {
        for (chain, count) in chains.iter() {
            let frames = chain.frames.iter().map(|&pc| {
                let placed = processes.place(chain.pid, vocab::Pc(pc)).ok()?;
                let image = self.image(processes, placed.image, chain.pid)?;
                Some(Place { image, offset: placed.offset })
            });
            let stack = Stack { event: chain.event, frames: frames.collect() };
            *self.profile.stacks.entry(stack).or_default() += Count(count);
        }
    }

    fn image(&mut self, processes: &Processes, id: ImageId, pid: Pid) -> Option<ImageId> {
        let place = id.0 as usize;
        if self.ids.len() <= place {
            self.ids.resize(place + 1, None);
        }
        if let Some(Some(known)) = self.ids.get(place) {
            return Some(*known);
        }
        let image = processes.image(id)?;
        let ours = ImageId(self.profile.images.len() as u32);
        self.profile.images.push(image.clone());
        if let Some(slot) = self.ids.get_mut(place) {
            *slot = Some(ours);
        }
        let new =
            image.kind == ImageKind::File && self.described.insert(self.hasher.hash_one(image));
        if let ImageKind::Generated(maker) = image.kind {
            self.made_code.insert(maker);
        }
        if new {
            self.foreign.extend(Foreign::seen(pid, image, self.foreign.len()));
            match head::open(pid, &image.path).and_then(|file| head::read(&file)) {
                Some(head) if image.build_id.is_none() || head.build_id == image.build_id => {
                    self.profile.facts.insert(ours, head.facts);
                }
                _ => {
                    self.vanished += 1;
                    self.last_vanished = Some(image.path.clone());
                }
            }
        }
        Some(ours)
    }

    fn owner(&mut self, processes: &Processes, pid: Pid) -> Option<ProcessId> {
        if !self.apart.processes {
            return None;
        }
        if let Some(&known) = self.owners.get(&pid) {
            return Some(known);
        }
        let name = processes.name(pid).unwrap_or_default().into_owned();
        let id = self.profile.process_id(&Process { pid, name });
        self.owners.insert(pid, id);
        Some(id)
    }
}
