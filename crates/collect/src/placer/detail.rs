//! What samples carry beside their address, and what only recordings tell.

use std::collections::HashMap;

use perf::{ForkOrExit, Mapping, SampleMode};
use vocab::{
    Branch, BranchTally, BuildId, Count, EventId, Image, ImageKind, Load, LoadLevel, Offset, Pc,
    Pid, Place, Stack,
};

use super::Placer;

/// Frames beyond this are left out: such chains are runaway recursion or a lost stack pointer.
const MOST_FRAMES: usize = 512;

impl Placer {
    /// Keeps the counts of processes apart.
    pub fn apart(mut self) -> Placer {
        self.names = Some(HashMap::new());
        self
    }

    /// One sample, as [`Placer::take`] does it.
    pub fn take_sample(&mut self, event: EventId, mode: SampleMode, pid: Pid, pc: Pc) {
        self.place(event, mode, pid, pc);
    }

    /// A process took a name, or became another program.
    pub fn take_name(&mut self, pid: Pid, exec: bool, name: &str) {
        self.name(pid, exec, name);
    }

    /// A thread or process began.
    pub fn take_fork(&mut self, fork: ForkOrExit) {
        self.fork(fork);
    }

    /// Code was mapped into a process.
    pub fn take_map(&mut self, mapping: &Mapping) {
        self.map(mapping);
    }

    /// Samples that were taken and dropped.
    pub fn take_lost(&mut self, count: Count) {
        self.profile.tally.lost += count;
    }

    /// The kernel paused sampling.
    pub fn take_throttled(&mut self) {
        self.profile.tally.throttled += Count::ONE;
    }

    /// The kernel or a module, as a recording's own map of its machine tells it.
    pub fn take_kernel_map(&mut self, mapping: &Mapping) {
        let path = mapping.path.as_str();
        // A kernel that hides its addresses is recorded at 0: that places nothing.
        if mapping.start.0 == 0 || path.starts_with("[guest") {
            return;
        }
        let image = if path.starts_with("[kernel") {
            Image { kind: ImageKind::Kernel, path: "[kernel]".into(), build_id: mapping.build_id }
        } else {
            let file = path.rsplit('/').next().unwrap_or(path);
            let name = file.split(".ko").next().unwrap_or(file).trim_matches(['[', ']']);
            let path = format!("[{name}]");
            Image { kind: ImageKind::Module, path, build_id: mapping.build_id }
        };
        let image = self.profile.image_id(&image);
        self.kernel_maps.map(mapping.start, mapping.length, image, Offset(0));
    }

    /// A chain of calls, the innermost first.
    pub fn take_chain(&mut self, event: EventId, pid: Pid, chain: &[(SampleMode, Pc)]) {
        let frames = chain.iter().take(MOST_FRAMES);
        let frames = frames.map(|&(mode, pc)| self.end(mode, pid, pc)).collect();
        *self.profile.stacks.entry(Stack { event, frames }).or_default() += Count::ONE;
    }

    /// One entry of a branch record. Each end is in the kernel if its address is.
    pub fn take_branch(
        &mut self,
        event: EventId,
        pid: Pid,
        (from, to): (Pc, Pc),
        tally: &BranchTally,
    ) {
        let mode = |pc: Pc| match pc.0 >> 63 {
            0 => SampleMode::User,
            _ => SampleMode::Kernel,
        };
        let branch = Branch {
            event,
            from: self.end(mode(from), pid, from),
            to: self.end(mode(to), pid, to),
        };
        self.profile.branches.entry(branch).or_default().add(tally);
    }

    /// What a sampled load met; one without a place is counted with its sample alone.
    pub fn take_load(
        &mut self,
        event: EventId,
        (mode, pid, pc): (SampleMode, Pid, Pc),
        (level, latency_cycles): (LoadLevel, u64),
    ) {
        if let Some(place) = self.end(mode, pid, pc) {
            let load = Load { event, place, level, latency_cycles };
            *self.profile.loads.entry(load).or_default() += Count::ONE;
        }
    }

    /// Gives images the build-ids that became known after they were mapped.
    pub fn take_build_ids<'a>(&mut self, ids: impl IntoIterator<Item = (&'a str, BuildId)>) {
        let ids: HashMap<&str, BuildId> = ids.into_iter().collect();
        for image in &mut self.profile.images {
            let path = match image.kind {
                ImageKind::Kernel => "[kernel.kallsyms]",
                _ => image.path.as_str(),
            };
            if image.build_id.is_none() {
                image.build_id = ids.get(path).copied();
            }
        }
    }

    fn end(&mut self, mode: SampleMode, pid: Pid, pc: Pc) -> Option<Place> {
        self.find(mode, pid, pc).ok().map(|(image, offset)| Place { image, offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KernelLayout;
    use vocab::{Epoch, Event, EventCode, Mode};

    const EVENT: EventId = EventId(0);

    fn placer() -> Placer {
        let epoch = Epoch { host: "h".into(), began_unix_ns: 0 };
        let event = Event { name: "e".into(), code: EventCode::new(1, 0), mode: Mode::Both };
        Placer::new(epoch, vec![event], KernelLayout::default()).apart()
    }

    fn mapping(path: &str, start: u64) -> Mapping {
        Mapping {
            pid: Pid(1),
            start: Pc(start),
            length: 0x1000,
            file_offset: 0,
            executable: true,
            path: path.into(),
            build_id: None,
        }
    }

    #[test]
    fn a_recordings_kernel_and_modules_are_placed_by_its_own_maps() {
        let mut placer = placer();
        let (kernel, module) = (0xffff_ffff_8100_0000, 0xffff_ffff_c000_0000);
        placer.take_kernel_map(&mapping("[kernel.kallsyms]_text", kernel));
        placer.take_kernel_map(&mapping("/lib/modules/6.1/kernel/fs/ext4.ko.xz", module));
        placer.take_kernel_map(&mapping("[guest.kernel.kallsyms]", 0x1000));
        placer.take_sample(EVENT, SampleMode::Kernel, Pid(1), Pc(kernel + 5));
        placer.take_sample(EVENT, SampleMode::Kernel, Pid(1), Pc(module + 7));
        placer.take_sample(EVENT, SampleMode::Kernel, Pid(1), Pc(0x1001));
        let id = BuildId::new(&[7; 20]).unwrap();
        placer.take_build_ids([("[kernel.kallsyms]", id)]);
        let profile = placer.finish();
        let paths: Vec<&str> = profile.images.iter().map(|image| image.path.as_str()).collect();
        assert_eq!(paths, ["[kernel]", "[ext4]"]);
        assert_eq!(profile.images[0].build_id, Some(id));
        let offsets: Vec<u64> = profile.counts.keys().map(|spot| spot.offset.0).collect();
        assert_eq!(offsets, [5, 7]);
        assert_eq!(profile.tally.unplaced_total(), Count(1));
    }

    #[test]
    fn chains_branches_and_loads_fall_into_the_same_maps() {
        let mut placer = placer();
        placer.take_name(Pid(1), true, "prog");
        placer.take_map(&mapping("/bin/prog", 0x4000));
        placer.take_fork(ForkOrExit { pid: Pid(2), parent: Pid(1), tid: 2 });
        placer.take_sample(EVENT, SampleMode::User, Pid(2), Pc(0x4010));
        let user = |pc| (SampleMode::User, Pc(pc));
        placer.take_chain(EVENT, Pid(2), &[user(0x4010), user(0x9000), user(0x4020)]);
        let tally = BranchTally { count: Count::ONE, ..BranchTally::default() };
        placer.take_branch(EVENT, Pid(2), (Pc(0x4010), Pc(u64::MAX)), &tally);
        let at = (SampleMode::User, Pid(2), Pc(0x4010));
        placer.take_load(EVENT, at, (LoadLevel::L2, 14));
        let profile = placer.finish();
        let place = |offset| Some(Place { image: vocab::ImageId(0), offset: Offset(offset) });
        let stack = Stack { event: EVENT, frames: vec![place(0x10), None, place(0x20)] };
        assert_eq!(profile.stacks[&stack], Count::ONE);
        let branch = Branch { event: EVENT, from: place(0x10), to: None };
        assert_eq!(profile.branches[&branch].count, Count::ONE);
        assert_eq!(profile.loads.len(), 1);
        assert_eq!(profile.processes[0].name, "prog", "a child has its parent's name");
        assert_eq!(profile.apart.len(), 1);
    }
}
