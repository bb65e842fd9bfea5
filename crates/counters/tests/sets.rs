//! Event sets on the real kernel, against writes that breakpoints see exactly.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::cell::Cell;
use std::hint::black_box;

use counters::sets::{EventSet, SetError, SetOptions, SetState, Value, configure};
use counters::{NotCounted, full_name};
use perf::{BreakpointKind, breakpoint};
use vocab::Event;

/// Words of this thread that breakpoints watch.
#[derive(Default)]
struct Words([Cell<u64>; 4]);

impl Words {
    fn write(&self, word: usize, times: u64) {
        for i in 0..times {
            black_box(&self.0[word]).set(i);
        }
    }

    fn event(&self, word: usize) -> Event {
        breakpoint(BreakpointKind::Write, self.0[word].as_ptr() as u64)
    }

    fn set(&self, words: &[usize]) -> EventSet {
        let mut set = EventSet::new().unwrap();
        words.iter().for_each(|&word| set.add_event(&self.event(word)).unwrap());
        set
    }
}

fn counts(values: Vec<Value>) -> Vec<u64> {
    values.into_iter().map(|value| value.unwrap().counted).collect()
}

#[test]
fn overlapping_sets_each_count_what_happened_while_they_ran() {
    let words = Words::default();
    let (mut a, mut b) = (words.set(&[0, 1]), words.set(&[1, 2]));
    a.start().unwrap();
    words.write(0, 3);
    words.write(1, 5);
    words.write(2, 100);
    b.start().unwrap();
    words.write(1, 7);
    words.write(2, 2);
    assert_eq!(counts(a.stop().unwrap()), [3, 12]);
    words.write(0, 50);
    words.write(2, 4);
    assert_eq!(counts(b.read().unwrap()), [7, 6]);
    words.write(2, 1);
    assert_eq!(counts(b.stop().unwrap()), [7, 7]);
    // A stopped set keeps what it had.
    words.write(1, 9);
    assert_eq!(counts(b.read().unwrap()), [7, 7]);
    assert_eq!(counts(a.read().unwrap()), [3, 12]);
}

#[test]
fn a_nested_set_and_a_second_start_begin_from_nought() {
    let words = Words::default();
    let (mut outer, mut inner) = (words.set(&[0]), words.set(&[0]));
    outer.start().unwrap();
    for round in 1..=20 {
        words.write(0, 1);
        inner.start().unwrap();
        words.write(0, round);
        assert_eq!(counts(inner.stop().unwrap()), [round]);
    }
    assert_eq!(counts(outer.read().unwrap()), [20 + 210]);
    outer.reset().unwrap();
    words.write(0, 4);
    assert_eq!(counts(outer.stop().unwrap()), [4]);
}

#[test]
fn misuse_is_answered() {
    let words = Words::default();
    let mut set = EventSet::new().unwrap();
    assert_eq!(set.start(), Err(SetError::Empty));
    assert_eq!(set.stop().unwrap_err(), SetError::NotRunning);
    assert!(matches!(set.add("no-such-event"), Err(SetError::Unknown(_))));
    set.add_event(&words.event(0)).unwrap();
    let twice = SetError::Twice(full_name(&words.event(0)));
    assert_eq!(set.add_event(&words.event(0)), Err(twice));
    assert_eq!(set.state(), Ok(SetState::Stopped));
    set.start().unwrap();
    assert_eq!(set.state(), Ok(SetState::Running));
    assert_eq!(set.start(), Err(SetError::IsRunning));
    assert_eq!(set.add_event(&words.event(1)), Err(SetError::IsRunning));
    assert_eq!(set.cleanup(), Err(SetError::IsRunning));
    assert_eq!(configure(SetOptions::default()), Err(SetError::IsRunning));
    set.stop().unwrap();
    set.cleanup().unwrap();
    assert_eq!(set.names(), Ok(Vec::new()));
    for id in [0, -1, i32::MAX] {
        assert_eq!(EventSet::start_by_id(id), Err(SetError::NoSuchSet));
        assert_eq!(EventSet::destroy_by_id(id), Err(SetError::NoSuchSet));
    }
}

#[test]
fn a_set_belongs_to_its_thread_and_ends_with_it() {
    let id = std::thread::spawn(|| {
        let words = Words::default();
        let id = EventSet::create().unwrap();
        EventSet::add_by_id(id, &words.event(0)).unwrap();
        EventSet::start_by_id(id).unwrap();
        let stranger = std::thread::spawn(move || EventSet::stop_by_id(id).map(|_| ()));
        assert_eq!(stranger.join().unwrap(), Err(SetError::NotYours));
        words.write(0, 2);
        assert_eq!(counts(EventSet::read_by_id(id).unwrap()), [2]);
        // It ends here, running.
        id
    });
    assert_eq!(EventSet::stop_by_id(id.join().unwrap()).map(|_| ()), Err(SetError::NoSuchSet));
}

#[test]
fn a_fifth_breakpoint_finds_no_slot_and_the_set_is_as_it_was() {
    // Four slots: five do not fit, whatever the sets.
    let words = Words::default();
    let extra = Cell::new(0_u64);
    let mut set = words.set(&[0, 1, 2, 3]);
    let fifth = breakpoint(BreakpointKind::Write, extra.as_ptr() as u64);
    set.add_event(&fifth).unwrap();
    // An open breakpoint keeps its slot even while it is switched off, so that here turns cannot
    // help: that is a clear refusal, and the set is as it was.
    let refusal = set.start().unwrap_err();
    assert!(refusal.to_string().contains("out of"), "{refusal}");
    assert_eq!(set.state(), Ok(SetState::Stopped));
}

#[test]
fn what_had_no_turn_is_not_counted() {
    configure(SetOptions { slice_ns: 10_000_000_000, counters: Some(1), seed: 3 }).unwrap();
    let words = Words::default();
    let mut set = words.set(&[0, 1]);
    set.start().unwrap();
    (0..2).for_each(|word| words.write(word, 6));
    let values = set.stop().unwrap();
    let counted: Vec<u64> = values.iter().flatten().map(|counted| counted.counted).collect();
    assert_eq!(counted, [6]);
    assert!(values.contains(&Err(NotCounted::NoTurn)));
}
