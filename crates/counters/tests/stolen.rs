//! Counters that another process holds. Breakpoints have four slots a CPU and can really be taken.
//!
//! A binary of its own: while the slots are held, no other test could have them.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use counters::{Ask, NotCounted, On, Session};
use perf::{BreakpointKind, Group, GroupOptions, Target, breakpoint, cpus_online};
use vocab::{Event, EventCode, Mode};

const SLOTS: &str = "WHITHER_TEST_SLOTS";
/// What the thief says when it has them, and when it may not.
const HELD: &str = "slots held";
const REFUSED: &str = "slots refused";

static WORDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn writes(word: usize) -> Event {
    breakpoint(BreakpointKind::Write, std::ptr::from_ref(&WORDS[word]) as u64)
}

fn faults() -> Event {
    Event { name: "page-faults".into(), code: EventCode::new(1, 2), mode: Mode::User }
}

/// The other process: takes as many slots of every CPU as it is told, until its input ends.
#[test]
#[ignore = "started by the test below"]
fn holds_slots() {
    let slots: usize = std::env::var(SLOTS).unwrap().parse().unwrap();
    let events = vec![writes(0); slots];
    let open = |cpu| Group::open(&events, &Target::Cpu(cpu), GroupOptions::default());
    let held: Result<Vec<Group>, _> = cpus_online().into_iter().map(open).collect();
    println!("\n{}", if held.is_ok() { HELD } else { REFUSED });
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

/// A process that holds slots.
struct Thief {
    child: Child,
    /// It must find somebody who listens until it ends.
    _said: BufReader<ChildStdout>,
}

/// One that holds so many; `None` where a whole CPU may not be counted.
fn thief(slots: usize) -> Option<Thief> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "holds_slots", "--nocapture"])
        .env(SLOTS, slots.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while ![HELD, REFUSED].contains(&line.trim()) {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended");
    }
    (line.trim() == HELD).then_some(Thief { child, _said: said })
}

fn ends(mut thief: Thief) {
    drop(thief.child.stdin.take());
    thief.child.wait().unwrap();
}

fn counted(events: Vec<Event>) -> Vec<Result<u64, NotCounted>> {
    let mut session = Session::open(&Ask::new(events, On::ThisThread)).unwrap();
    session.start().unwrap();
    for (word, times) in WORDS.iter().zip([7, 5]) {
        (0..times).for_each(|i| word.store(black_box(i), Ordering::Relaxed));
    }
    session.stop().events.iter().map(|event| event.total.map(|c| c.counted)).collect()
}

#[test]
fn what_another_process_holds_is_not_counted_and_never_nought() {
    let Some(all) = thief(4) else {
        eprintln!("whole CPUs may not be counted here: nothing can be taken away");
        return;
    };
    let error = Session::open(&Ask::new(vec![writes(0)], On::ThisThread)).unwrap_err().to_string();
    assert!(error.contains("no breakpoint slot is free"), "{error}");
    let beside = counted(vec![writes(0), faults()]);
    assert_eq!(beside[0], Err(NotCounted::NoSlot));
    assert!(beside[1].is_ok());
    ends(all);
    // One is left: it counts exactly, and the other says why it does not.
    let three = thief(3).unwrap();
    assert_eq!(counted(vec![writes(0), writes(1)]), [Ok(7), Err(NotCounted::NoSlot)]);
    ends(three);
    assert_eq!(counted(vec![writes(0), writes(1)]), [Ok(7), Ok(5)]);
}
