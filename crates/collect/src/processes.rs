//! Every live process's maps, and those of the recently dead.
//!
//! Entries of a sample table carry no time. So a process keeps the maps of its earlier lives until
//! the next drain: those before an exec, and those of a dead process whose number is in use again.
//!
//! ```text
//! fork(2 from 1)   2: [maps of 1, shared]
//! exec in 2        2: [new, empty]  before: [maps of 1]
//! exit of 2        2: ended         kept until the drain after
//! settle()         2: gone
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::hash::Hasher;
use std::sync::Arc;

use perf::{ForkOrExit, MappedText, Mapping, Record, RecordBody, Told, parse_told};
use vocab::{Image, ImageId, ImageKind, Offset, Pc, Pid, Unplaced};

use crate::KernelLayout;
use crate::change::{Change, Mapped, Name};
use crate::merge::InOrder;
use crate::placer::image_of;
use crate::quick::{QuickHasher, QuickMap};
use crate::space::Space;

/// Maps of processes, the images behind them, and the kernel's layout.
#[derive(Debug)]
pub struct Processes {
    kernel: KernelLayout,
    /// Where a stretch of the kernel begins → its image.
    kernel_images: QuickMap<u64, ImageId>,
    images: Vec<Arc<Image>>,
    ids: HashMap<Arc<Image>, ImageId>,
    /// Hash of a path and build-id → the image that was last found by them.
    by_text: QuickMap<u64, ImageId>,
    /// What was heard and may still be overtaken.
    waiting: InOrder<Change>,
    living: QuickMap<Pid, Process>,
    /// Records of maps that found no room: some maps are missing until /proc is scanned again.
    pub lost_records: u64,
    /// Lives that began or ended since the last [`Processes::settle`].
    pub changes: u64,
}

#[derive(Debug, Default)]
struct Process {
    now: Arc<Space>,
    before: Vec<Arc<Space>>,
    ended: bool,
    /// Whether it has, or may have, more threads than its first: then it may outlive it.
    threaded: bool,
    name: Name,
}

/// Where an address fell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The image.
    pub image: ImageId,
    /// The offset in it.
    pub offset: Offset,
    /// Whether the pc is where interrupts are let in again: what was sampled there happened
    /// somewhere before, while they were kept out.
    pub blind: bool,
    /// Whether an earlier life of the process would have given another answer.
    pub ambiguous: bool,
}

impl Processes {
    /// Nobody yet.
    pub fn new(kernel: KernelLayout) -> Processes {
        Processes {
            kernel,
            kernel_images: QuickMap::default(),
            images: Vec::new(),
            ids: HashMap::new(),
            by_text: QuickMap::default(),
            waiting: InOrder::default(),
            living: QuickMap::default(),
            lost_records: 0,
            changes: 0,
        }
    }

    /// The kernel has loaded or unloaded modules.
    pub fn set_kernel(&mut self, kernel: KernelLayout) {
        if kernel != self.kernel {
            self.kernel = kernel;
            self.kernel_images.clear();
        }
    }

    /// A record of some ring, as it lies there; false if it makes no sense. It waits until no ring
    /// can deliver an older one.
    pub fn hear(&mut self, bytes: &[u8]) -> bool {
        let Some((time_ns, told)) = parse_told(bytes) else { return false };
        self.wait(time_ns, &told);
        true
    }

    /// The same of one that has been read already.
    pub fn hear_record(&mut self, record: &Record) {
        self.wait(record.time_ns, &record.body.as_told());
    }

    fn wait(&mut self, time_ns: u64, told: &Told<'_>) {
        if let Some(change) = self.change(told) {
            self.waiting.push(time_ns, change);
        }
    }

    /// Every ring has been read once more: what is safe happens now, the oldest first (see
    /// [`crate::Merge`]).
    pub fn end_round(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.end_round(|change| self.apply(change));
        self.waiting = waiting;
    }

    /// The next record, in the order of time.
    pub fn take(&mut self, body: &RecordBody) {
        if let Some(change) = self.change(&body.as_told()) {
            self.apply(change);
        }
    }

    /// What a record changes. Images are looked up here: their order does not matter.
    fn change(&mut self, told: &Told<'_>) -> Option<Change> {
        match *told {
            Told::Mapped(mapped) => self.mapped(&mapped).map(Change::Mapped),
            Told::Named { pid, exec, name } => {
                Some(Change::Named { pid, exec, name: Name::new(name) })
            }
            Told::Forked(fork) => Some(Change::Forked(fork)),
            Told::Exited(exit) => (exit.tid == exit.pid.0).then_some(Change::Exited(exit)),
            Told::Lost(count) => Some(Change::Lost(count.0)),
            Told::Throttled | Told::Ignored => None,
        }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Mapped(mapped) => self.map(mapped),
            Change::Named { pid, exec, name } => self.rename(pid, exec, name),
            Change::Forked(fork) => self.fork(fork),
            Change::Exited(exit) => {
                self.changes += 1;
                if let Some(process) = self.living.get_mut(&exit.pid) {
                    process.ended = true;
                }
            }
            Change::Lost(count) => self.lost_records += count,
        }
    }

    /// What /proc says of a process: its name and where code is mapped.
    pub fn scanned(&mut self, pid: Pid, name: &str, mappings: &[Mapping]) {
        let process = self.living.entry(pid).or_insert_with(Process::unknown);
        process.threaded = true;
        process.name = Name::new(name.as_bytes());
        for mapping in mappings {
            if let Some(mapped) = self.mapped(&mapping.as_told()) {
                self.map(mapped);
            }
        }
    }

    /// None if no code can run there.
    fn mapped(&mut self, text: &MappedText<'_>) -> Option<Mapped> {
        if !text.executable {
            return None;
        }
        let (image, offset) = self.image_behind(text);
        Some(Mapped { pid: text.pid, start: text.start, length: text.length, image, offset })
    }

    /// The image behind a mapping, and its offset at the start. Nearly all are known by their text.
    fn image_behind(&mut self, text: &MappedText<'_>) -> (ImageId, Offset) {
        let mut hasher = QuickHasher::default();
        hasher.write(text.path);
        text.build_id.iter().for_each(|id| hasher.write(id.as_bytes()));
        let hash = hasher.finish();
        if let Some(&id) = self.by_text.get(&hash)
            && let Some(image) = self.image(id)
            && (image.path.as_bytes(), image.build_id) == (text.path, text.build_id)
        {
            let is_file = image.kind == ImageKind::File;
            return (id, Offset(if is_file { text.file_offset } else { 0 }));
        }
        let (image, offset) = image_of(text);
        // Generated code is known by its process, not by its path.
        let is_by_text = matches!(image.kind, ImageKind::File | ImageKind::Vdso);
        let id = self.image_id(image);
        if is_by_text {
            self.by_text.insert(hash, id);
        }
        (id, offset)
    }

    fn map(&mut self, mapped: Mapped) {
        let process = self.living.entry(mapped.pid).or_insert_with(Process::unknown);
        let space = Arc::make_mut(&mut process.now);
        space.map(mapped.start, mapped.length, mapped.image, mapped.offset);
    }

    fn rename(&mut self, pid: Pid, exec: bool, name: Name) {
        let process = self.living.entry(pid).or_insert_with(Process::unknown);
        process.name = name;
        if exec {
            self.changes += 1;
            process.begin_again(Arc::default());
        }
    }

    fn fork(&mut self, fork: ForkOrExit) {
        // A new thread shares its process's maps; a new process gets its parent's.
        if fork.pid == fork.parent {
            if let Some(process) = self.living.get_mut(&fork.pid) {
                process.threaded = true;
            }
            return;
        }
        self.changes += 1;
        let parent = self.living.get(&fork.parent);
        let inherited = parent.map(|parent| Arc::clone(&parent.now)).unwrap_or_default();
        let name = parent.map(|parent| parent.name).unwrap_or_default();
        match self.living.entry(fork.pid) {
            // The number is in use again.
            Slot::Occupied(mut old) => {
                let process = old.get_mut();
                process.begin_again(inherited);
                (process.ended, process.threaded, process.name) = (false, false, name);
            }
            Slot::Vacant(new) => {
                new.insert(Process { now: inherited, name, ..Process::default() });
            }
        }
    }

    /// The id of an image, new or known.
    pub fn image_id(&mut self, image: Image) -> ImageId {
        if let Some(&id) = self.ids.get(&image) {
            return id;
        }
        let id = ImageId(self.images.len() as u32);
        let image = Arc::new(image);
        self.images.push(Arc::clone(&image));
        self.ids.insert(image, id);
        id
    }

    /// The image behind an id.
    pub fn image(&self, id: ImageId) -> Option<&Image> {
        self.images.get(id.0 as usize).map(AsRef::as_ref)
    }

    /// The name that a process gave itself. Untrusted.
    pub fn name(&self, pid: Pid) -> Option<Cow<'_, str>> {
        self.living.get(&pid).map(|process| process.name.text())
    }

    /// Where an address of a process falls.
    pub fn place(&mut self, pid: Pid, pc: Pc) -> Result<Placed, Unplaced> {
        if KernelLayout::is_kernel_address(pc) {
            return self.place_in_kernel(pc);
        }
        let process = self.living.get(&pid).ok_or(Unplaced::UnknownProcess)?;
        let mut found = process.before.iter().rev().filter_map(|space| space.find(pc));
        let (place, ambiguous) = match process.now.find(pc) {
            Some(place) => (place, found.any(|other| other != place)),
            None => {
                let place = found.next().ok_or(Unplaced::UnknownAddress)?;
                (place, found.any(|other| other != place))
            }
        };
        Ok(Placed { image: place.0, offset: place.1, blind: false, ambiguous })
    }

    fn place_in_kernel(&mut self, pc: Pc) -> Result<Placed, Unplaced> {
        if !self.kernel.is_known() {
            return Err(Unplaced::HiddenKernel);
        }
        let (start, offset) = self.kernel.locate(pc).ok_or(Unplaced::UnknownAddress)?;
        let image = match self.kernel_images.get(&start) {
            Some(&id) => id,
            None => {
                let (image, _) = self.kernel.find(pc).ok_or(Unplaced::UnknownAddress)?;
                let id = self.image_id(image);
                self.kernel_images.insert(start, id);
                id
            }
        };
        Ok(Placed { image, offset, blind: self.kernel.is_blind(pc), ambiguous: false })
    }

    /// A drain is over: earlier lives are let go, and so are the dead. `still_there` is asked of
    /// processes whose first thread has ended and that had others, which may go on.
    pub fn settle(&mut self, mut still_there: impl FnMut(Pid) -> bool) {
        self.changes = 0;
        self.living.retain(|&pid, process| {
            process.before = Vec::new();
            !process.ended || (process.threaded && still_there(pid))
        });
        self.living.shrink_to(self.living.len() * 2);
    }

    /// How many processes are known.
    pub fn len(&self) -> usize {
        self.living.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.living.is_empty()
    }

    /// Lets go of images that no process maps. Ids change: to be called only when nobody holds any.
    pub fn forget_unused_images(&mut self) {
        let mut used = vec![false; self.images.len()];
        let spaces = self
            .living
            .values()
            .flat_map(|process| std::iter::once(&process.now).chain(&process.before));
        for id in
            spaces.flat_map(|space| space.images()).chain(self.kernel_images.values().copied())
        {
            if let Some(used) = used.get_mut(id.0 as usize) {
                *used = true;
            }
        }
        for change in self.waiting.held() {
            if let Change::Mapped(mapped) = change
                && let Some(used) = used.get_mut(mapped.image.0 as usize)
            {
                *used = true;
            }
        }
        let mut renamed = vec![ImageId(0); self.images.len()];
        let mut kept = Vec::new();
        for ((image, used), renamed) in self.images.drain(..).zip(used).zip(&mut renamed) {
            if used {
                *renamed = ImageId(kept.len() as u32);
                kept.push(image);
            }
        }
        self.images = kept;
        self.ids = self.images.iter().cloned().zip((0..).map(ImageId)).collect();
        let rename = |id: ImageId| renamed.get(id.0 as usize).copied().unwrap_or(id);
        self.kernel_images.values_mut().for_each(|id| *id = rename(*id));
        self.by_text.clear();
        for change in self.waiting.held() {
            if let Change::Mapped(mapped) = change {
                mapped.image = rename(mapped.image);
            }
        }
        for process in self.living.values_mut() {
            for space in std::iter::once(&mut process.now).chain(&mut process.before) {
                *space = Arc::new(space.with_images(rename));
            }
        }
    }

    /// How many images are known.
    pub fn image_count(&self) -> usize {
        self.images.len()
    }
}

impl Process {
    /// One whose beginning was not seen.
    fn unknown() -> Process {
        Process { threaded: true, ..Process::default() }
    }

    /// Other maps from now on; the old ones stay for samples that were taken before.
    fn begin_again(&mut self, now: Arc<Space>) {
        let before = std::mem::replace(&mut self.now, now);
        if !before.is_empty() {
            self.before.push(before);
        }
    }
}

#[cfg(test)]
#[path = "processes_tests.rs"]
mod tests;
