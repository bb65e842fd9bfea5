//! Turns on the real kernel, against planted counts that breakpoints see exactly.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::ffi::CString;
use std::hint::black_box;

use counters::{Ask, NotCounted, On, Session, Slice, Slicing};
use perf::{BreakpointKind, Held, Inherit, breakpoint};
use pmu::estimate::Estimator;
use vocab::{Event, EventCode, Mode};

static WORDS: [std::sync::atomic::AtomicU64; 6] =
    [const { std::sync::atomic::AtomicU64::new(0) }; 6];

/// Writes to one of six words, which a breakpoint may watch.
fn write(word: usize, times: u64) {
    for i in 0..times {
        WORDS[word].store(black_box(i), std::sync::atomic::Ordering::Relaxed);
    }
}

fn writes(word: usize) -> Event {
    breakpoint(BreakpointKind::Write, std::ptr::from_ref(&WORDS[word]) as u64)
}

/// So many additions that nobody watches.
fn work(steps: u64) {
    black_box((0..steps).fold(0_u64, |sum, step| black_box(sum.wrapping_add(step))));
}

fn software(name: &str, config: u64) -> Event {
    Event { name: name.into(), code: EventCode::new(1, config), mode: Mode::Both }
}

fn ask(events: Vec<Event>, slice_ns: u64, counters: Option<u32>) -> Ask {
    Ask {
        slicing: Slicing::Own { slice: Slice::Nanoseconds(slice_ns), however_short: true },
        counters,
        ..Ask::new(events, On::ThisThread)
    }
}

#[test]
fn what_fits_at_once_is_exact() {
    let events = vec![writes(0), writes(1), software("page-faults", 2)];
    let mut session = Session::open(&ask(events, 1_000_000, None)).unwrap();
    assert_eq!(session.grouping().groups.len(), 1);
    session.start().unwrap();
    write(0, 123);
    write(1, 45);
    let outcome = session.stop();
    let totals: Vec<_> = outcome.events.iter().map(|event| event.total.unwrap()).collect();
    assert_eq!((totals[0].counted, totals[0].estimator), (123, Estimator::Exact));
    assert_eq!((totals[1].counted, totals[1].estimator), (45, Estimator::Exact));
    assert_eq!((outcome.stolen_ns, outcome.switches), (0, 0));
}

#[test]
fn rationed_turns_recover_planted_counts_within_their_uncertainty() {
    let events: Vec<Event> = (0..4).map(writes).collect();
    let mut session = Session::open(&ask(events, 200_000, Some(1))).unwrap();
    assert_eq!(session.grouping().groups.len(), 4);
    session.start().unwrap();
    // A watched write takes a trap, and so time. All words are written alike, so that time runs
    // alike whichever of them is watched; there is work between, so that it hardly matters; and
    // the work varies, so that no slice keeps step with it.
    let mut planted = [0_u32; 4];
    let mut draw = 1_u64;
    for _ in 0..16_000 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = (draw >> 62) as usize;
        write(word, 1);
        planted[word] += 1;
        work(2_000 + (draw >> 40) % 6_000);
    }
    let outcome = session.stop();
    assert!(outcome.switches > 8, "{}", outcome.switches);
    for (word, event) in outcome.events.iter().enumerate() {
        let counted = event.total.unwrap();
        let truth = f64::from(planted[word]);
        let off = (counted.estimate.value - truth).abs();
        assert!(counted.counted as f64 <= truth, "{counted:?}");
        assert!(off <= 5.0 * counted.estimate.standard_uncertainty, "{word}: {counted:?}, {truth}");
        assert!(counted.share < 0.5 && counted.slices > 2, "{counted:?}");
    }
}

#[test]
fn a_measurement_that_ends_before_a_turn_says_so_instead_of_nought() {
    let events = vec![writes(0), writes(1)];
    let mut session = Session::open(&ask(events, 10_000_000_000, Some(1))).unwrap();
    session.start().unwrap();
    write(0, 10);
    write(1, 10);
    let outcome = session.stop();
    let uncounted = outcome.events.iter().filter(|e| e.total == Err(NotCounted::NoTurn)).count();
    assert_eq!(uncounted, 1);
    // The other one's short slice counts.
    let counted: Vec<u64> =
        outcome.events.iter().flat_map(|e| e.total).map(|c| c.counted).collect();
    assert_eq!(counted, [10]);
}

#[test]
fn a_read_while_running_credits_the_slice_under_way_and_laps_add_up() {
    let mut session = Session::open(&ask(vec![writes(0)], 10_000_000_000, None)).unwrap();
    session.start().unwrap();
    write(0, 7);
    let lap = session.lap();
    write(0, 5);
    let so_far = session.read();
    let second = session.lap();
    write(0, 1);
    let end = session.stop();
    let count = |outcome: &counters::Outcome| outcome.events[0].total.unwrap().counted;
    assert_eq!([&lap, &so_far, &second, &end].map(count), [7, 12, 5, 13]);
    // Stopped: what happens now is nobody's.
    write(0, 9);
    assert_eq!(count(&session.read()), 13);
    session.start().unwrap();
    write(0, 2);
    assert_eq!(count(&session.stop()), 15);
}

#[test]
fn an_event_that_is_not_there_does_not_take_the_others_with_it() {
    let nowhere =
        Event { name: "nowhere".into(), code: EventCode::new(0x7fff_fff0, 0), mode: Mode::User };
    let mut session =
        Session::open(&ask(vec![nowhere.clone(), writes(0)], 1_000_000, None)).unwrap();
    session.start().unwrap();
    write(0, 3);
    let outcome = session.stop();
    let refused = NotCounted::Refused(perf::Refusal::NoSuchEvent);
    assert_eq!(outcome.find("nowhere:u").unwrap().total, Err(refused));
    assert_eq!(outcome.events[1].total.unwrap().counted, 3);
    let error = Session::open(&ask(vec![nowhere], 1_000_000, None)).unwrap_err().to_string();
    assert_eq!(
        error,
        "none of the events can be counted here: 'nowhere:u' is not there on this machine"
    );
}

#[test]
fn breakpoints_beyond_the_slots_are_not_counted_and_say_why() {
    let events: Vec<Event> = (0..6).map(writes).collect();
    let mut session = Session::open(&ask(events.clone(), 1_000_000, None)).unwrap();
    session.start().unwrap();
    (0..6).for_each(|word| write(word, 10 + word as u64));
    let outcome = session.stop();
    let counted: Vec<u64> =
        outcome.events.iter().flat_map(|e| e.total).map(|c| c.counted).collect();
    assert_eq!(counted, [10, 11, 12, 13]);
    let without: Vec<_> = outcome.events.iter().skip(4).map(|event| event.total).collect();
    assert_eq!(without, [Err(NotCounted::NoSlot), Err(NotCounted::NoSlot)]);
    drop(session);
    // In braces they cannot be, and the constraint is named.
    let braces = Ask { units: vec![events], ..ask(Vec::new(), 1_000_000, None) };
    let error = Session::open(&braces).unwrap_err().to_string();
    assert!(
        error.contains("cannot be counted within {") && error.contains("at most 4 of"),
        "{error}"
    );
}

#[test]
fn a_thread_that_is_not_there_is_named() {
    let nobody = On::Thread(i32::MAX as u32);
    let error = Session::open(&Ask::new(vec![writes(0)], nobody)).unwrap_err();
    assert_eq!(error.to_string(), "there is no thread 2147483647");
}

#[test]
fn a_cpu_that_is_not_there_is_named() {
    let nobody = On::Cpus(vec![vocab::Cpu(99_999)]);
    let error = Session::open(&Ask::new(vec![writes(0)], nobody)).unwrap_err();
    assert_eq!(error.to_string(), "there is no CPU 99999 online");
}

#[test]
fn a_program_and_its_children_are_counted_by_turns() {
    let script = "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done";
    let words = ["sh", "-c", script].map(|w| CString::new(w).unwrap());
    let held = Held::fork(&CString::new("/bin/sh").unwrap(), &words, &[]).unwrap();
    let names =
        [("task-clock", 1), ("page-faults", 2), ("minor-faults", 5), ("context-switches", 3)];
    let events = names.map(|(name, config)| software(name, config)).to_vec();
    let mut session =
        Session::open(&Ask { on: On::Command(held.pid()), ..ask(events, 500_000, Some(2)) })
            .unwrap();
    session.start().unwrap();
    held.go().unwrap().wait().unwrap();
    let outcome = session.stop();
    assert_eq!(outcome.grouping.groups.len(), 2);
    assert_eq!(outcome.cut_short, None);
    for event in &outcome.events[..3] {
        let counted = event.total.unwrap();
        assert!(counted.counted > 0 && counted.slices > 1, "{}: {counted:?}", event.name);
    }
    // Page faults here are minor ones: the same truth, seen at the same or at other times.
    let [faults, minor] = [1, 2].map(|k| outcome.events[k].total.unwrap().estimate);
    let u = faults.standard_uncertainty.hypot(minor.standard_uncertainty);
    assert!((faults.value - minor.value).abs() <= 5.0 * u.max(1.0), "{faults:?} {minor:?}");
}

#[test]
fn a_running_process_is_counted_with_the_threads_that_it_starts_later() {
    let me = std::process::id();
    let on = On::Process(me);
    let mut session =
        Session::open(&Ask { on, inherit: Inherit::All, ..ask(vec![writes(3)], 1_000_000, None) })
            .unwrap();
    session.start().unwrap();
    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(|| write(3, 50))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let outcome = session.stop();
    assert!(outcome.events[0].total.unwrap().counted >= 150);
    let gone = Session::open(&Ask { on: On::Process(u32::MAX), ..ask(vec![writes(3)], 1, None) });
    assert_eq!(gone.unwrap_err().to_string(), format!("there is no process {}", u32::MAX));
}

#[test]
fn every_cpu_is_counted_and_the_kernels_rotation_counts_what_does_not_compete_exactly() {
    for slicing in
        [Slicing::Kernel, Slicing::Own { slice: Slice::Nanoseconds(500_000), however_short: true }]
    {
        let events = vec![software("cpu-clock", 0), software("context-switches", 3)];
        let ask = Ask { slicing, ..Ask::new(events, On::Cpus(Vec::new())) };
        let mut session = Session::open(&ask).unwrap();
        session.start().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let outcome = session.stop();
        for event in &outcome.events {
            let counted = event.total.unwrap();
            assert_eq!(counted.estimator, Estimator::Exact, "{}", event.name);
            assert!(counted.counted > 0, "{}", event.name);
        }
    }
}

#[test]
fn slices_in_what_cannot_be_counted_say_so() {
    let nowhere =
        Event { name: "nowhere".into(), code: EventCode::new(0x7fff_fff0, 0), mode: Mode::User };
    let ask = Ask {
        slicing: Slicing::Own { slice: Slice::Occurrences(5), however_short: true },
        boundary: Some(nowhere),
        counters: Some(2),
        ..ask((0..4).map(writes).collect(), 0, None)
    };
    let error = Session::open(&ask).unwrap_err().to_string();
    assert_eq!(
        error,
        "slices cannot be measured in 'nowhere:u' here: it is not there on this machine"
    );
}
