//! What turns cost on this machine: `cargo run --release -p counters --example switch_cost`.
//!
//! A switch is: one group of four off, read, the next on. MPX's handler took 160 µs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use counters::SwitchCost;
use perf::{
    BreakpointKind, Group, GroupOptions, GroupReading, Target, UserPages, breakpoint, cpus_online,
    pin_to, probe, this_thread,
};
use vocab::{Cpu, Event, EventCode, Mode};

/// MPX's handler with one thread.
const MPX_US: f64 = 160.0;
const TIMES: usize = 20_001;

static WORDS: [u64; 2] = [0; 2];

fn event(name: &str, kind: u32, config: u64) -> Event {
    Event { name: name.into(), code: EventCode::new(kind, config), mode: Mode::User }
}

/// Four events of a kind that this machine has.
fn kinds() -> Vec<(&'static str, Vec<Event>)> {
    let software = |count: usize| {
        let names =
            [("task-clock", 1), ("page-faults", 2), ("minor-faults", 5), ("major-faults", 6)];
        names.iter().take(count).map(|(name, config)| event(name, 1, *config)).collect::<Vec<_>>()
    };
    let hardware = [("cycles", 0), ("instructions", 1), ("branches", 4), ("branch-misses", 5)];
    let hardware: Vec<Event> = hardware.iter().map(|(name, c)| event(name, 0, *c)).collect();
    // A closed breakpoint keeps its slot: two groups have two each.
    let watch = |word: &u64| breakpoint(BreakpointKind::Write, std::ptr::from_ref(word) as u64);
    let mixed = software(2).into_iter().chain(WORDS.iter().map(watch)).collect();
    let mut kinds = vec![("software", software(4)), ("2 software, 2 breakpoints", mixed)];
    if hardware.iter().all(|event| probe(event).is_ok()) {
        kinds.push(("hardware", hardware));
    }
    kinds
}

/// A thread that works on a CPU until told to end; its number is sent first.
fn target_on(cpu: Cpu, end: Arc<AtomicBool>) -> u32 {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = pin_to(cpu);
        let _ = send.send(this_thread());
        while !end.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    });
    receive.recv().unwrap_or(0)
}

fn show(what: &str, kind: &str, cost: Option<Duration>) {
    match cost {
        Some(cost) => {
            let us = cost.as_nanos() as f64 / 1000.0;
            println!(
                "{what:<44} {kind:<26} {us:>8.2} µs   MPX {MPX_US:.0} µs, {:.0} ×",
                MPX_US / us
            );
        }
        None => println!("{what:<44} {kind:<26} not here"),
    }
}

/// The median time of one reading.
fn reading(read: impl Fn(&mut GroupReading) -> bool) -> Option<Duration> {
    let mut into = GroupReading::default();
    let mut taken: Vec<Duration> = Vec::with_capacity(TIMES);
    for _ in 0..TIMES {
        let start = Instant::now();
        if !read(&mut into) {
            return None;
        }
        taken.push(start.elapsed());
    }
    taken.sort_unstable();
    taken.get(TIMES / 2).copied()
}

fn main() {
    let cpus = cpus_online();
    let (Some(&here), there) = (cpus.first(), cpus.get(1)) else { return };
    for (kind, events) in kinds() {
        let median =
            |target: &Target| SwitchCost::measure(&events, target, TIMES).map(|cost| cost.median);
        let _ = pin_to(here);
        show("switch, by the thread itself", kind, median(&Target::ThisThread));
        let end = Arc::new(AtomicBool::new(false));
        let local = target_on(here, Arc::clone(&end));
        show("switch, from the target's own CPU", kind, median(&Target::Thread(local)));
        end.store(true, Ordering::Relaxed);
        if let Some(&there) = there {
            let end = Arc::new(AtomicBool::new(false));
            let remote = target_on(there, Arc::clone(&end));
            show("switch, from another CPU", kind, median(&Target::Thread(remote)));
            end.store(true, Ordering::Relaxed);
        }
        let options = GroupOptions { user_read: true, ..GroupOptions::default() };
        if let Ok(group) = Group::open(&events, &Target::ThisThread, options) {
            let _ = group.enable();
            show(
                "read a running group, asking the kernel",
                kind,
                reading(|into| group.read(into).is_ok()),
            );
            let pages = UserPages::map(&group).ok();
            let fast = |into: &mut GroupReading| pages.as_ref().is_some_and(|p| p.read(into));
            show("read a running group, from the registers", kind, reading(fast));
        }
    }
}
