//! Samples fall into maps.

mod detail;

use std::collections::HashMap;

use perf::{ForkOrExit, MappedText, Mapping, Record, RecordBody, SampleMode};
use vocab::{
    Count, Epoch, Event, EventId, Image, ImageId, ImageKind, Offset, Owner, Pc, Pid, Process,
    Profile, Source, Spot, Unplaced,
};

use crate::KernelLayout;
use crate::space::Space;

/// Keeps every process's maps and puts each sample where it belongs.
///
/// Records must come in the order in which they happened (see [`crate::Merge`]): then the maps
/// are those of the moment of the sample, however short the process lived.
#[derive(Debug)]
pub struct Placer {
    profile: Profile,
    kernel: KernelLayout,
    spaces: HashMap<Pid, Space>,
    /// The kernel's code as a recording maps it; empty on a live machine.
    kernel_maps: Space,
    /// Names of processes, where processes are kept apart.
    names: Option<HashMap<Pid, String>>,
}

impl Placer {
    /// Nothing mapped yet.
    pub fn new(epoch: Epoch, events: Vec<Event>, kernel: KernelLayout) -> Placer {
        let profile = Profile::empty(epoch, Source::Measured, events);
        Placer {
            profile,
            kernel,
            spaces: HashMap::new(),
            kernel_maps: Space::default(),
            names: None,
        }
    }

    /// The next record; `event` is the one whose ring it came from.
    pub fn take(&mut self, event: EventId, record: &Record) {
        match &record.body {
            RecordBody::Sample { mode, pid, pc, .. } => self.place(event, *mode, *pid, *pc),
            RecordBody::Mapped(mapping) => self.map(mapping),
            RecordBody::Named { pid, exec, name } => self.name(*pid, *exec, name),
            RecordBody::Forked(fork) => self.fork(*fork),
            RecordBody::Lost(count) => self.profile.tally.lost += *count,
            RecordBody::Throttled => self.profile.tally.throttled += Count::ONE,
            // A process's maps outlive its first thread's end: other threads may go on.
            RecordBody::Exited(_) | RecordBody::Ignored => {}
        }
    }

    /// A record that could not be read counts as lost: it may have been a sample.
    pub fn take_malformed(&mut self) {
        self.profile.tally.lost += Count::ONE;
    }

    /// What was collected.
    pub fn finish(self) -> Profile {
        self.profile
    }

    fn map(&mut self, mapping: &Mapping) {
        if !mapping.executable {
            return;
        }
        let (image, offset) = image_of(&mapping.as_told());
        let image = self.profile.image_id(&image);
        let space = self.spaces.entry(mapping.pid).or_default();
        space.map(mapping.start, mapping.length, image, offset);
    }

    fn name(&mut self, pid: Pid, exec: bool, name: &str) {
        if exec {
            self.spaces.insert(pid, Space::default());
        }
        if let Some(names) = &mut self.names {
            names.insert(pid, name.to_owned());
        }
    }

    /// Whose sample it is, where processes are kept apart.
    fn owner(&mut self, pid: Pid) -> Owner {
        let Some(names) = &self.names else { return Owner::NOBODY };
        let name = names.get(&pid).cloned().unwrap_or_default();
        let process = self.profile.process_id(&Process { pid, name });
        Owner { process: Some(process), slice: None }
    }

    fn fork(&mut self, fork: ForkOrExit) {
        // A new thread shares its process's maps; a new process gets a copy, and its name.
        if fork.pid != fork.parent {
            if let Some(names) = &mut self.names
                && let Some(name) = names.get(&fork.parent).cloned()
            {
                names.insert(fork.pid, name);
            }
            let inherited = self.spaces.get(&fork.parent).cloned().unwrap_or_default();
            self.spaces.insert(fork.pid, inherited);
        }
    }

    fn place(&mut self, event: EventId, mode: SampleMode, pid: Pid, pc: Pc) {
        match self.find(mode, pid, pc) {
            Ok((image, offset)) => {
                let owner = self.owner(pid);
                self.profile.store_for(Spot { image, offset, event }, owner, Count::ONE);
            }
            Err(reason) => self.profile.leave_out(reason, Count::ONE),
        }
    }

    fn find(&mut self, mode: SampleMode, pid: Pid, pc: Pc) -> Result<(ImageId, Offset), Unplaced> {
        match mode {
            SampleMode::User => {
                let space = self.spaces.get(&pid).ok_or(Unplaced::UnknownProcess)?;
                space.find(pc).ok_or(Unplaced::UnknownAddress)
            }
            SampleMode::Kernel if !self.kernel_maps.is_empty() => {
                self.kernel_maps.find(pc).ok_or(Unplaced::UnknownAddress)
            }
            SampleMode::Kernel if !self.kernel.is_known() => Err(Unplaced::HiddenKernel),
            SampleMode::Kernel => {
                let (image, offset) = self.kernel.find(pc).ok_or(Unplaced::UnknownAddress)?;
                Ok((self.profile.image_id(&image), offset))
            }
            SampleMode::Elsewhere => Err(Unplaced::UnknownAddress),
        }
    }
}

/// The image behind a mapping, and the image's offset at its start.
pub(crate) fn image_of(mapped: &MappedText<'_>) -> (Image, Offset) {
    let path = String::from_utf8_lossy(mapped.path);
    let build_id = mapped.build_id;
    if path == "[vdso]" || path == "[vsyscall]" {
        let image = Image { kind: ImageKind::Vdso, path: path.into_owned(), build_id };
        return (image, Offset(0));
    }
    let is_file = path.starts_with('/')
        && !["//anon", "/dev/zero", "/memfd:", "/SYSV", "/anon_hugepage"]
            .iter()
            .any(|prefix| path.starts_with(prefix));
    if is_file {
        let image = Image { kind: ImageKind::File, path: path.into_owned(), build_id };
        return (image, Offset(mapped.file_offset));
    }
    // Code made at run time has no file: its addresses mean something in its own process only.
    let path = format!("[generated code of process {}]", mapped.pid.0);
    let image = Image { kind: ImageKind::Generated(mapped.pid), path, build_id: None };
    (image, Offset(mapped.start.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vocab::{Cpu, EventCode, Mode};

    const EVENT: EventId = EventId(0);

    fn placer() -> Placer {
        let epoch = Epoch { host: "h".into(), began_unix_ns: 0 };
        let event = Event { name: "e".into(), code: EventCode::new(1, 0), mode: Mode::Both };
        let kallsyms = "ffffffff81000000 T _text\nffffffff82000000 T _end\n";
        Placer::new(epoch, vec![event], KernelLayout::parse(kallsyms, ""))
    }

    fn mapped(pid: u32, path: &str, start: u64) -> RecordBody {
        RecordBody::Mapped(Mapping {
            pid: Pid(pid),
            start: Pc(start),
            length: 0x1000,
            file_offset: 0x400,
            executable: true,
            path: path.into(),
            build_id: None,
        })
    }

    fn sample(mode: SampleMode, pid: u32, pc: u64) -> RecordBody {
        RecordBody::Sample { mode, pid: Pid(pid), pc: Pc(pc), cpu: Cpu(0) }
    }

    fn forked(pid: u32, parent: u32) -> RecordBody {
        RecordBody::Forked(ForkOrExit { pid: Pid(pid), parent: Pid(parent), tid: pid })
    }

    fn run(bodies: Vec<RecordBody>) -> Profile {
        let mut placer = placer();
        for (time_ns, body) in (0..).zip(bodies) {
            placer.take(EVENT, &Record { time_ns, body });
        }
        placer.finish()
    }

    fn spots(profile: &Profile) -> Vec<(String, u64, u64)> {
        let row = |(spot, count): (&Spot, &Count)| {
            (profile.image(spot.image).unwrap().path.clone(), spot.offset.0, count.0)
        };
        profile.counts.iter().map(row).collect()
    }

    #[test]
    fn a_forked_child_keeps_the_maps_until_it_executes_something_else() {
        let profile = run(vec![
            mapped(1, "/bin/a", 0x10000),
            forked(2, 1),
            sample(SampleMode::User, 2, 0x10010),
            RecordBody::Named { pid: Pid(2), exec: true, name: "b".into() },
            sample(SampleMode::User, 2, 0x10010),
            mapped(2, "/bin/b", 0x10000),
            sample(SampleMode::User, 2, 0x10010),
            sample(SampleMode::User, 1, 0x10010),
        ]);
        let expected = [("/bin/a".to_owned(), 0x410, 2), ("/bin/b".to_owned(), 0x410, 1)];
        assert_eq!(spots(&profile), expected);
        assert_eq!(profile.tally.unplaced[&Unplaced::UnknownAddress], Count(1));
        assert_eq!(profile.tally.taken(), Count(4));
    }

    #[test]
    fn every_sample_is_stored_unplaced_or_lost() {
        let profile = run(vec![
            sample(SampleMode::User, 9, 0x10),
            sample(SampleMode::Kernel, 9, 0xffff_ffff_8100_0020),
            sample(SampleMode::Kernel, 9, 0x20),
            sample(SampleMode::Elsewhere, 9, 0x20),
            RecordBody::Lost(Count(5)),
        ]);
        assert_eq!(spots(&profile), [("[kernel]".to_owned(), 0x20, 1)]);
        assert_eq!(profile.tally.unplaced[&Unplaced::UnknownProcess], Count(1));
        assert_eq!(profile.tally.unplaced[&Unplaced::UnknownAddress], Count(2));
        assert_eq!((profile.tally.lost, profile.tally.taken()), (Count(5), Count(9)));
    }

    #[test]
    fn generated_code_is_kept_apart_by_process_and_keeps_its_addresses() {
        let profile = run(vec![
            mapped(1, "//anon", 0x10000),
            mapped(2, "//anon", 0x10000),
            sample(SampleMode::User, 1, 0x10010),
            sample(SampleMode::User, 2, 0x10010),
        ]);
        let kinds: Vec<ImageKind> = profile.images.iter().map(|image| image.kind).collect();
        assert_eq!(kinds, [ImageKind::Generated(Pid(1)), ImageKind::Generated(Pid(2))]);
        assert_eq!(spots(&profile).iter().map(|s| s.1).collect::<Vec<_>>(), [0x10010; 2]);
    }
}
