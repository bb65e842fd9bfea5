//! Profiles that use every table, and a folder that goes away.

#![allow(dead_code, reason = "every test uses its part")]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use store::{Facts, Span};
use vocab::{
    Branch, BranchTally, BuildId, Count, Epoch, Event, EventCode, Image, ImageFacts, ImageKind,
    Load, LoadLevel, Loaded, Mode, Offset, Onward, Owner, Pid, Place, Process, Profile, Slice,
    Source, Spot, Stack, Unplaced, Way, WayTally,
};

/// A folder of this test's own.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("whither-store-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn facts() -> Facts {
    Facts { origin: "test".into(), ..Facts::default() }
}

pub(crate) const SPAN: Span = Span { from_unix_ns: 10, to_unix_ns: 20 };

pub(crate) fn event(name: &str, mode: Mode) -> Event {
    Event { name: name.into(), code: EventCode::new(1, 7), mode }
}

pub(crate) fn image(path: &str) -> Image {
    let build_id = BuildId::new(&[path.len() as u8; 20]);
    Image { kind: ImageKind::File, path: path.into(), build_id }
}

pub(crate) fn empty() -> Profile {
    let epoch = Epoch { host: "h".into(), began_unix_ns: 1 };
    Profile::empty(epoch, Source::Measured, vec![])
}

/// Something in every table; `seed` moves offsets and counts.
pub(crate) fn full(seed: u64) -> Profile {
    let mut profile = empty();
    let user = profile.event_id(&event("cycles", Mode::User));
    let both = profile.event_id(&event("cycles", Mode::Both));
    let program = profile.image_id(&image("/bin/program"));
    let kernel = Image { kind: ImageKind::Kernel, path: "[kernel]".into(), build_id: None };
    let kernel = profile.image_id(&kernel);
    let made = Image { kind: ImageKind::Generated(Pid(9)), path: "[made]".into(), build_id: None };
    let made = profile.image_id(&made);
    for step in 0..40 {
        let image = [program, kernel, made][(step % 3) as usize];
        let offset = Offset(((step * 7 + seed) * 4) | if image == made { 1 << 63 } else { 0 });
        let event = if step % 2 == 0 { user } else { both };
        let spot = Spot { image, offset, event };
        profile.store(spot, Count(step + 1));
        let process = profile.process_id(&Process { pid: Pid(100), name: "one".into() });
        let owner = Owner { process: Some(process), slice: Some(Slice(step as u32 % 4)) };
        profile.store_for(spot, owner, Count(seed + 1));
    }
    let place = |image, offset| Place { image, offset: Offset(offset) };
    let frames = vec![Some(place(program, 16 + seed)), None, Some(place(kernel, 5))];
    profile.stacks.insert(Stack { event: user, frames }, Count(3));
    profile.stacks.insert(Stack { event: user, frames: vec![] }, Count(1));
    let to = Some(place(program, 64));
    profile.branches.insert(
        Branch { event: both, from: Some(place(program, 8)), to },
        BranchTally { count: Count(5), mispredicted: Count(2), cycles: Count(44), timed: Count(4) },
    );
    profile.branches.insert(
        Branch { event: both, from: None, to },
        BranchTally { count: Count(seed), ..BranchTally::default() },
    );
    let onwards = [Onward::Passed, Onward::To(Offset(64)), Onward::Taken, Onward::Straight];
    for (k, onward) in onwards.into_iter().enumerate() {
        let tally = WayTally { count: Count(seed + 1), pairs: Count(k as u64), begun: Count(1) };
        profile.ways.insert(Way { event: user, place: place(program, 12), onward }, tally);
    }
    for level in LoadLevel::ALL {
        let load =
            Load { event: user, place: place(program, 12), level, latency_cycles: 30 + seed };
        profile.loads.insert(load, Count(2));
    }
    let layout = vec![
        Loaded { address: 0x1000, offset: 0, length: 0x500 },
        Loaded { address: 0x40_0000, offset: 0x500, length: 0x123 },
    ];
    profile.facts.insert(program, ImageFacts { size_bytes: Some(4711), layout });
    profile.leave_out(Unplaced::UnknownAddress, Count(4));
    profile.leave_out(Unplaced::HiddenKernel, Count(1));
    profile.tally.lost = Count(2);
    profile.tally.throttled = Count(1);
    profile.tally.blind = Count(3);
    profile.tally.entries = Some(profile.tally.taken());
    profile
}

/// Every count by what it means rather than by number, to compare profiles whose ids differ.
pub(crate) fn spelled(profile: &Profile) -> Vec<String> {
    let image = |id| format!("{:?}", profile.image(id));
    let event = |id: vocab::EventId| format!("{:?}", profile.events[usize::from(id.0)]);
    let end = |place: &Option<Place>| place.map(|p| (image(p.image), p.offset));
    let mut lines = Vec::new();
    for (spot, count) in &profile.counts {
        lines.push(format!("{} {} {} {count}", image(spot.image), event(spot.event), spot.offset));
    }
    for ((spot, owner), count) in &profile.apart {
        let process = owner.process.map(|id| &profile.processes[id.0 as usize]);
        let spot = format!("{} {} {}", image(spot.image), event(spot.event), spot.offset);
        lines.push(format!("{spot} {process:?} {:?} {count}", owner.slice));
    }
    for (stack, count) in &profile.stacks {
        let frames: Vec<_> = stack.frames.iter().map(end).collect();
        lines.push(format!("stack {} {frames:?} {count}", event(stack.event)));
    }
    for (branch, tally) in &profile.branches {
        let ends = (end(&branch.from), end(&branch.to));
        lines.push(format!("branch {} {ends:?} {tally:?}", event(branch.event)));
    }
    for (way, tally) in &profile.ways {
        let place = end(&Some(way.place));
        lines.push(format!("way {} {place:?} {:?} {tally:?}", event(way.event), way.onward));
    }
    for (load, count) in &profile.loads {
        let place = end(&Some(load.place));
        let what = (place, load.level, load.latency_cycles);
        lines.push(format!("load {} {what:?} {count}", event(load.event)));
    }
    for (&id, facts) in &profile.facts {
        lines.push(format!("facts {} {facts:?}", image(id)));
    }
    lines.sort();
    lines
}
