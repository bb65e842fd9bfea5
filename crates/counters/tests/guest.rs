//! The counters on a real kernel's hardware PMU, inside the emulated machine of `make guest`.
//!
//! Under `-icount` one instruction is one cycle, so that every expectation is exact. The PMU has a
//! counter for cycles and six others.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::ffi::CString;

use counters::{Ask, Capacity, NotCounted, On, Session, Slice, Slicing};
use perf::{
    Counter, Group, GroupOptions, GroupReading, Held, Rate, RecordBody, Refusal, Sampler,
    SamplerRequest, Target, UserPages, parse_record,
};
use vocab::{Cpu, Event, EventCode, Mode};

/// Runs `2 · steps` instructions in its loop.
fn run(steps: u64) {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: counts a register down.
    unsafe {
        std::arch::asm!("2: subs {n}, {n}, #1", "b.ne 2b", n = inout(reg) steps => _);
    }
    #[cfg(not(target_arch = "aarch64"))]
    unreachable!("{steps} steps are for the guest");
}

fn hardware(name: &str, kind: u32, config: u64) -> Event {
    Event { name: name.into(), code: EventCode::new(kind, config), mode: Mode::User }
}

/// Events of different names that count the same thing.
fn instructions(count: usize) -> Vec<Event> {
    (0..count).map(|k| hardware(&format!("i{k}"), 0, 1)).collect()
}

fn read(group: &Group) -> GroupReading {
    let mut reading = GroupReading::default();
    group.read(&mut reading).unwrap();
    reading
}

/// What a group counts over so many steps.
fn counted(events: &[Event], steps: u64) -> Vec<u64> {
    let group = Group::open(events, &Target::ThisThread, GroupOptions::default()).unwrap();
    group.enable().unwrap();
    run(steps);
    group.disable().unwrap();
    read(&group).counts.iter().map(|count| count.0).collect()
}

#[test]
fn counts_are_exact_and_repeat() {
    let event = instructions(1);
    let few = counted(&event, 1_000)[0];
    let many = counted(&event, 5_000_000)[0];
    let around = few - 2_000;
    assert_eq!(many, 10_000_000 + around);
    assert_eq!(counted(&event, 5_000_000)[0], many);
    assert!(around < 100, "{around}");
}

#[test]
fn a_group_of_cycles_and_six_counts_the_same_in_each() {
    let mut events = instructions(6);
    events.push(hardware("cycles", 0, 0));
    let counts = counted(&events, 1_000_000);
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    assert!((2_000_000..2_000_100).contains(&counts[0]), "{counts:?}");
}

#[test]
fn the_counters_are_found_by_trying() {
    let capacity = Capacity { general: 6, fixed_cycles: true, fixed_instructions: false };
    assert_eq!(Capacity::probe(), capacity);
}

fn ask(events: Vec<Event>, slicing: Slicing) -> Ask {
    Ask { slicing, ..Ask::new(events, On::ThisThread) }
}

fn own(slice: Slice) -> Slicing {
    Slicing::Own { slice, however_short: true }
}

#[test]
fn twelve_events_on_six_counters_are_within_two_per_cent() {
    for slicing in [
        own(Slice::Nanoseconds(1_000_000)),
        own(Slice::Cycles(1_000_000)),
        own(Slice::Instructions(1_000_000)),
    ] {
        let mut session = Session::open(&ask(instructions(12), slicing)).unwrap();
        assert!(session.grouping().groups.len() > 1);
        session.start().unwrap();
        run(50_000_000);
        let outcome = session.stop();
        for event in &outcome.events {
            let counted = event.total.unwrap();
            let error = (counted.estimate.value - 100e6) / 100e6;
            assert!(error.abs() < 0.02, "{slicing:?} {}: {error} {counted:?}", event.name);
            assert!(counted.share < 0.7 && counted.slices > 3, "{slicing:?} {counted:?}");
        }
    }
}

/// The kernel scales by time, in which its own work for the moment's interrupts counts as well; so
/// how far off a total is depends on what the machine did meanwhile. What holds whatever it did:
/// some group always has the counters, and never two, so together they count everything once.
#[test]
fn groups_that_the_kernel_rotates_count_everything_once_between_them() {
    let mut session = Session::open(&ask(instructions(12), Slicing::Kernel)).unwrap();
    session.start().unwrap();
    run(50_000_000);
    let outcome = session.stop();
    let groups = &outcome.grouping.groups;
    assert_eq!(groups.len(), 3);
    let of = |name: &str| outcome.events.iter().find(|event| event.counted_as == name);
    let (mut sum, mut shares) = (0, 0.0);
    for group in groups {
        let own = *group.events.iter().find(|&&event| event >= outcome.grouping.anchors).unwrap();
        let counted = of(&outcome.grouping.events[own]).unwrap().total.unwrap();
        assert!(counted.share < 1.0 && counted.slices > 0, "{counted:?}");
        (sum, shares) = (sum + counted.counted, shares + counted.share);
    }
    // Beside the loop they count what starting and stopping takes in this thread.
    assert!((100_000_000..101_000_000).contains(&sum), "{sum}");
    // Groups are switched on one after the other, and wait for less time the later that is.
    assert!((shares - 1.0).abs() < 0.1, "{shares}");
}

#[test]
fn slices_of_so_many_cycles_are_ended_by_their_overflow() {
    const SLICE: u64 = 2_000_000;
    let slicing = own(Slice::Occurrences(SLICE));
    let boundary = Some(hardware("cycles", 0, 0));
    let mut session = Session::open(&Ask { boundary, ..ask(instructions(12), slicing) }).unwrap();
    assert!(session.rings());
    session.start().unwrap();
    run(50_000_000);
    let outcome = session.stop();
    let slices: Vec<&pmu::Reading> =
        outcome.readings[0].iter().filter(|reading| reading.group != counters::NOBODY).collect();
    assert!(slices.len() > 10, "{}", slices.len());
    // What the program does while counters are switched is in no slice; and whoever switches must
    // first get the only CPU, so that a slice may be longer.
    for slice in &slices[..slices.len() - 1] {
        assert!(slice.counts[0] > SLICE - SLICE / 100, "{slice:?}");
    }
    for event in &outcome.events {
        let error = (event.total.unwrap().estimate.value - 100e6) / 100e6;
        assert!(error.abs() < 0.02, "{}: {error}", event.name);
    }
}

#[test]
fn counters_lost_for_good_leave_a_stated_part() {
    let pinned = GroupOptions { pinned: true, ..GroupOptions::default() };
    let other = Group::open(&instructions(6), &Target::ThisThread, pinned).unwrap();
    let mut session =
        Session::open(&ask(instructions(9), own(Slice::Nanoseconds(1_000_000)))).unwrap();
    session.start().unwrap();
    run(10_000_000);
    other.enable().unwrap();
    run(5_000_000);
    let outcome = session.stop();
    drop(other);
    // What was counted before stands; that a third is missing is said.
    let lost = outcome.stolen_ns as f64 / outcome.time_ns as f64;
    assert!((0.1..0.8).contains(&lost), "{lost}");
    assert!(outcome.stolen().unwrap().contains("% of the time"));
    for event in &outcome.events {
        let counted = event.total.unwrap();
        assert!(counted.counted > 1_000_000 && counted.counted < 20_000_100, "{counted:?}");
    }
}

#[test]
fn the_grouping_is_the_fewest_that_six_counters_allow() {
    let session =
        Session::open(&ask(instructions(12), own(Slice::Nanoseconds(1_000_000)))).unwrap();
    // Instructions as an anchor take one of the six: five a group.
    assert_eq!(session.grouping().groups.len(), 3);
    let session = Session::open(&ask(instructions(6), own(Slice::Nanoseconds(1_000_000)))).unwrap();
    assert_eq!(session.grouping().groups.len(), 1);
}

/// A group as the user wants it, whatever the counters are.
fn together(count: usize) -> Ask {
    let mut ask = ask(Vec::new(), own(Slice::Nanoseconds(1_000_000)));
    ask.units = vec![instructions(count)];
    ask.counters = Some(count as u32);
    ask
}

#[test]
fn seven_that_open_and_never_run_are_not_counted_and_say_why() {
    let mut session = Session::open(&together(7)).unwrap();
    session.start().unwrap();
    run(1_000_000);
    let outcome = session.stop();
    for event in &outcome.events {
        assert_eq!(event.total, Err(NotCounted::NeverRan), "{}", event.name);
    }
    let why = outcome.events[0].total.unwrap_err().to_string();
    assert!(why.contains("never had its counters"), "{why}");
}

#[test]
fn an_eighth_member_is_refused_by_name() {
    let error = Session::open(&together(8)).unwrap_err().to_string();
    assert!(error.contains("'i7'") || error.contains("i7:u"), "{error}");
    let refusal = Group::open(&instructions(8), &Target::ThisThread, GroupOptions::default());
    let refusal = refusal.unwrap_err();
    assert_eq!((refusal.place, refusal.refusal), (7, Refusal::NotUnderstood));
    assert!(refusal.opens_alone);
}

#[test]
fn events_that_the_pmu_lacks_leave_the_others_alone() {
    let events = vec![
        hardware("L1-dcache-load-misses", 3, 0x1_0000),
        hardware("branch-misses", 0, 5),
        hardware("instructions", 0, 1),
    ];
    let mut session = Session::open(&ask(events, own(Slice::Nanoseconds(1_000_000)))).unwrap();
    session.start().unwrap();
    run(1_000_000);
    let outcome = session.stop();
    let refused = Err(NotCounted::Refused(Refusal::NoSuchEvent));
    assert_eq!(outcome.events[0].total, refused);
    assert_eq!(outcome.events[1].total, refused);
    assert!(outcome.events[2].total.unwrap().counted >= 2_000_000);
}

#[test]
fn counters_that_another_user_holds_are_missed_and_reported() {
    let pinned = GroupOptions { pinned: true, ..GroupOptions::default() };
    let other = Group::open(&instructions(6), &Target::ThisThread, pinned).unwrap();
    let asked = ask(instructions(2), own(Slice::Nanoseconds(1_000_000)));
    let mut session = Session::open(&asked).unwrap();
    session.start().unwrap();
    run(5_000_000);
    other.enable().unwrap();
    run(5_000_000);
    other.disable().unwrap();
    drop(other);
    let outcome = session.stop();
    assert!(outcome.stolen_ns > 0 && outcome.stolen_ns < outcome.time_ns, "{outcome:?}");
    assert!(outcome.stolen().unwrap().contains("another user"));
    let counted = outcome.events[0].total.unwrap();
    assert!((10_000_000..15_000_000).contains(&counted.counted), "{counted:?}");
    // Missed time is filled in at the pace of the rest; how much that is, only the time says.
    let had = 1.0 - outcome.stolen_ns as f64 / outcome.time_ns as f64;
    let filled = counted.counted as f64 / had;
    assert!((counted.estimate.value / filled - 1.0).abs() < 0.01, "{had} {counted:?}");
}

#[test]
fn registers_read_by_the_program_itself_agree_with_the_kernel() {
    let options = GroupOptions { user_read: true, ..GroupOptions::default() };
    let mut events = instructions(2);
    events.push(hardware("cycles", 0, 0));
    let group = Group::open(&events, &Target::ThisThread, options).unwrap();
    group.enable().unwrap();
    let pages = UserPages::map(&group).unwrap();
    assert!(pages.allowed());
    let (mut before, mut after) = (GroupReading::default(), GroupReading::default());
    assert!(pages.read(&mut before));
    run(1_000_000);
    assert!(pages.read(&mut after));
    let kernel = read(&group);
    for k in 0..3 {
        let steps = after.counts[k].0 - before.counts[k].0;
        assert!((2_000_000..2_001_000).contains(&steps), "{k}: {steps}");
        assert!(after.counts[k] <= kernel.counts[k]);
    }
    assert!(after.running_ns >= before.running_ns && after.running_ns <= kernel.running_ns);
}

#[test]
fn sampling_on_cycles_takes_one_sample_a_period() {
    const PERIOD: u64 = 500_000;
    let script = "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done";
    let words = ["sh", "-c", script].map(|word| CString::new(word).unwrap());
    let held = Held::fork(&CString::new("/bin/busybox").unwrap(), &words, &[]).unwrap();
    // One instruction is one cycle. A second event on cycles might take their counter away, and
    // the emulated PMU interrupts only from that one.
    let mut counter = Counter::on_exec(&instructions(1)[0], held.pid()).unwrap();
    let request = SamplerRequest {
        event: hardware("cycles", 0, 0),
        rate: Rate::Period(PERIOD),
        precise: false,
        ring_pages: 64,
    };
    let mut sampler = Sampler::open(&request, held.pid(), Cpu(0)).unwrap();
    assert_eq!(held.go().unwrap().wait().unwrap().code(), Some(0));
    let mut samples = 0;
    sampler.ring.drain(|bytes| {
        if let Some(record) = parse_record(bytes)
            && matches!(record.body, RecordBody::Sample { .. })
        {
            samples += 1;
        }
    });
    let cycles = counter.read().unwrap().count.0;
    assert!(cycles > 20 * PERIOD, "{cycles}");
    assert_eq!(samples, cycles / PERIOD, "{cycles}");
}
