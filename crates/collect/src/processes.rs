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

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::Arc;

use perf::{ForkOrExit, Mapping, Record, RecordBody};
use vocab::{Image, ImageId, Offset, Pc, Pid, Unplaced};

use crate::KernelLayout;
use crate::placer::image_of;
use crate::quick::QuickMap;
use crate::space::Space;

/// Maps of processes, the images behind them, and the kernel's layout.
#[derive(Debug)]
pub struct Processes {
    kernel: KernelLayout,
    /// Where a stretch of the kernel begins → its image.
    kernel_images: QuickMap<u64, ImageId>,
    images: Vec<Arc<Image>>,
    ids: HashMap<Arc<Image>, ImageId>,
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
    name: Box<str>,
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

    /// The next record, in the order of time (see [`crate::Merge`]).
    pub fn take(&mut self, record: &Record) {
        match &record.body {
            RecordBody::Mapped(mapping) => self.map(mapping),
            RecordBody::Named { pid, exec, name } => self.rename(*pid, *exec, name),
            RecordBody::Forked(fork) => self.fork(*fork),
            RecordBody::Exited(exit) if exit.tid == exit.pid.0 => {
                self.changes += 1;
                if let Some(process) = self.living.get_mut(&exit.pid) {
                    process.ended = true;
                }
            }
            RecordBody::Lost(count) => self.lost_records += count.0,
            _ => {}
        }
    }

    /// What /proc says of a process: its name and where code is mapped.
    pub fn scanned(&mut self, pid: Pid, name: &str, mappings: &[Mapping]) {
        let process = self.living.entry(pid).or_insert_with(Process::unknown);
        process.threaded = true;
        if process.name.as_ref() != name {
            process.name = name.into();
        }
        for mapping in mappings {
            self.map(mapping);
        }
    }

    fn map(&mut self, mapping: &Mapping) {
        if !mapping.executable {
            return;
        }
        let (image, offset) = image_of(mapping);
        let image = self.image_id(image);
        let process = self.living.entry(mapping.pid).or_insert_with(Process::unknown);
        let space = Arc::make_mut(&mut process.now);
        space.map(mapping.start, mapping.length, image, offset);
    }

    fn rename(&mut self, pid: Pid, exec: bool, name: &str) {
        let process = self.living.entry(pid).or_insert_with(Process::unknown);
        process.name = name.into();
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
        let name = parent.map(|parent| parent.name.clone()).unwrap_or_default();
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
    pub fn name(&self, pid: Pid) -> Option<&str> {
        self.living.get(&pid).map(|process| process.name.as_ref())
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
