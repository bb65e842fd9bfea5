//! Groups on the real kernel. Breakpoints count exactly, so that every number here is exact.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::ffi::CString;
use std::hint::black_box;

use perf::{
    BreakpointKind, Group, GroupOptions, GroupReading, Held, Inherit, Target, UserPages,
    breakpoint, threads_of,
};
use vocab::{Count, Event, EventCode, Mode};

#[inline(never)]
extern "C" fn first(x: u64) -> u64 {
    black_box(x.wrapping_mul(3))
}

#[inline(never)]
extern "C" fn second(x: u64) -> u64 {
    black_box(x.wrapping_mul(5))
}

fn executions(procedure: extern "C" fn(u64) -> u64) -> Event {
    breakpoint(BreakpointKind::Execute, procedure as usize as u64)
}

fn software(name: &str, config: u64) -> Event {
    Event { name: name.into(), code: EventCode::new(1, config), mode: Mode::Both }
}

fn call(procedure: extern "C" fn(u64) -> u64, times: u64) {
    for i in 0..times {
        black_box(black_box(procedure)(i));
    }
}

fn read(group: &Group) -> GroupReading {
    let mut reading = GroupReading::default();
    group.read(&mut reading).unwrap();
    reading
}

#[test]
fn a_group_counts_each_member_exactly_and_only_while_switched_on() {
    let events = [executions(first), executions(second)];
    let group = Group::open(&events, &Target::ThisThread, GroupOptions::default()).unwrap();
    call(first, 5);
    group.enable().unwrap();
    call(first, 1000);
    call(second, 300);
    group.disable().unwrap();
    call(first, 7);
    let reading = read(&group);
    assert_eq!(reading.counts, [Count(1000), Count(300)]);
    assert!(reading.running_ns > 0 && reading.running_ns == reading.enabled_ns);
    group.reset().unwrap();
    assert_eq!(read(&group).counts, [Count(0), Count(0)]);
}

#[test]
fn a_group_that_was_never_switched_on_says_so_in_its_times() {
    let group =
        Group::open(&[executions(first)], &Target::ThisThread, GroupOptions::default()).unwrap();
    call(first, 3);
    let reading = read(&group);
    assert_eq!((reading.enabled_ns, reading.running_ns), (0, 0));
}

#[test]
fn new_threads_are_counted_when_inherited_and_not_otherwise() {
    for (inherit, expected) in [(Inherit::No, 0), (Inherit::Threads, 400), (Inherit::All, 400)] {
        let options = GroupOptions { inherit, ..GroupOptions::default() };
        let events = [executions(first), software("page-faults", 2)];
        let group = Group::open(&events, &Target::ThisThread, options).unwrap();
        group.enable().unwrap();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(|| call(first, 100))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        group.disable().unwrap();
        assert_eq!(read(&group).counts[0], Count(expected), "{inherit:?}");
    }
}

#[test]
fn a_running_thread_is_switched_from_another() {
    let (tid_out, tid) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        // SAFETY: gettid has no preconditions.
        tid_out.send(unsafe { libc::gettid() } as u32).unwrap();
        wait.recv().unwrap();
        call(first, 250);
        wait.recv().unwrap();
    });
    let tid = tid.recv().unwrap();
    assert!(threads_of(std::process::id()).contains(&tid));
    let group =
        Group::open(&[executions(first)], &Target::Thread(tid), GroupOptions::default()).unwrap();
    group.enable().unwrap();
    go.send(()).unwrap();
    while read(&group).counts[0] < Count(250) {
        std::thread::yield_now();
    }
    go.send(()).unwrap();
    worker.join().unwrap();
    // The thread is gone; what it counted stays.
    assert_eq!(read(&group).counts, [Count(250)]);
}

#[test]
fn a_program_is_counted_from_its_first_instruction_with_its_children() {
    let words = ["sh", "-c", "/bin/true; /bin/true; exit 3"].map(|w| CString::new(w).unwrap());
    let held = Held::fork(&CString::new("/bin/sh").unwrap(), &words, &[]).unwrap();
    let options = GroupOptions { inherit: Inherit::All, on_exec: true, ..GroupOptions::default() };
    let events = [software("task-clock", 1), software("page-faults", 2)];
    let group = Group::open(&events, &Target::Thread(held.pid()), options).unwrap();
    let ended = held.go().unwrap().wait().unwrap();
    assert_eq!(ended.code(), Some(3));
    let reading = read(&group);
    assert!(reading.counts.iter().all(|&count| count > Count(0)), "{reading:?}");
    // Nothing competes, and the clock is the very time that the group ran.
    assert_eq!(reading.enabled_ns, reading.running_ns);
}

#[test]
fn a_member_that_is_not_there_is_named_by_its_place() {
    let nowhere =
        Event { name: "nowhere".into(), code: EventCode::new(0x7fff_fff0, 0), mode: Mode::User };
    let events = [software("task-clock", 1), nowhere];
    let refusal = Group::open(&events, &Target::ThisThread, GroupOptions::default()).unwrap_err();
    assert_eq!((refusal.place, refusal.opens_alone), (1, false));
    assert_eq!(refusal.to_string(), "'nowhere': not there on this machine");
    assert!(Group::open(&[], &Target::ThisThread, GroupOptions::default()).is_err());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_fifth_breakpoint_does_not_fit_where_four_do() {
    let words = [0_u64; 5];
    let events: Vec<Event> = words
        .iter()
        .map(|word| breakpoint(BreakpointKind::Write, std::ptr::from_ref(word) as u64))
        .collect();
    let open = |events: &[Event]| {
        Group::open(events, &Target::ThisThread, GroupOptions::default()).map(|_| ())
    };
    assert_eq!(open(&events[..4]), Ok(()));
    assert_eq!(open(&events).unwrap_err().place, 4);
}

#[test]
fn what_has_no_register_is_left_to_the_kernel() {
    let options = GroupOptions { user_read: true, ..GroupOptions::default() };
    let group = Group::open(&[software("task-clock", 1)], &Target::ThisThread, options).unwrap();
    group.enable().unwrap();
    let pages = UserPages::map(&group).unwrap();
    assert!(!pages.allowed());
    assert!(!pages.read(&mut GroupReading::default()));
}
