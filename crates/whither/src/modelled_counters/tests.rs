use std::sync::mpsc::channel;

use model::event::Event;
use model::stream::{Code, CoreListener, StaticBlock};
use pmu::estimate;

use super::*;

fn list(names: &str) -> EventList {
    let mut list = EventList::default();
    for name in names.split(',') {
        list.events.push(vocab::Event {
            name: name.into(),
            code: vocab::EventCode::new(u32::MAX, 0),
            mode: vocab::Mode::User,
        });
        list.typed.push(name.into());
    }
    list
}

fn ask<'a>(machine: &'a Machine, events: &'a EventList, counters: Option<u32>) -> Ask<'a> {
    Ask { program: &[], machine, events, counters, slice: Some(Slice::Cycles(1000)), seed: 3 }
}

/// A thread of 64-byte blocks of nops, so many times.
fn nops(machine: &Machine, turns: &Turns, times: u32) -> Vec<Record> {
    let (to, from) = channel();
    let mut cores = Cores::new(machine, turns, to);
    let key = ProcessKey { pid: 7, sequence: 0 };
    let mut core = cores.thread(key, 0);
    let nop = |k: u64| {
        let mut bytes = [0; 15];
        bytes[0] = 0x90;
        Code { pc: 0x1000 + k, bytes, len: 1 }
    };
    let block = StaticBlock { instructions: (0..64).map(nop).collect() };
    core.translated(model::stream::BlockId(0), &block);
    (0..times).for_each(|_| core.executed(model::stream::BlockId(0), 64, &[]));
    cores.ended(key, 0, core);
    drop(cores);
    from.into_iter().collect()
}

#[test]
fn slices_add_up_to_what_the_core_did_and_end_with_the_thread() {
    let machine = Machine::named("ppc970").unwrap();
    let names = "uops,loads,stores,branches,calls,returns,flops,l1d-load-misses,l2-misses";
    let events = list(names);
    let turns = Turns::plan(&ask(&machine, &events, None)).unwrap();
    // Eight counters, two of them for the anchors: nine events take two groups.
    assert_eq!(turns.grouping.groups.len(), 2);
    let records = nops(&machine, &turns, 5000);
    assert_eq!(records.last(), Some(&Record::End { pid: 7, tid: 0 }));
    let readings: Vec<pmu::Reading> = records
        .iter()
        .filter_map(|record| match record {
            Record::Slice(slice) => Some(slice.reading.clone()),
            _ => None,
        })
        .collect();
    assert!(readings.len() > 10, "{}", readings.len());
    let instructions: u64 = readings.iter().map(|reading| reading.counts[1]).sum();
    assert_eq!(instructions, 5000 * 64);
    // Every instruction is one micro-op: the multiplexed count finds that.
    let uops = turns.grouping.find("uops").unwrap();
    let counted = estimate::totals(&turns.grouping, &readings)[uops].unwrap();
    assert!((counted.estimate.value / 320_000.0 - 1.0).abs() < 0.01, "{counted:?}");
    assert!(counted.share < 0.9);
}

#[test]
fn slices_of_instructions_end_at_instructions() {
    let machine = Machine::named("zen4").unwrap();
    let events = list("uops");
    let ask = Ask { slice: Some(Slice::Instructions(6400)), ..ask(&machine, &events, None) };
    let turns = Turns::plan(&ask).unwrap();
    assert_eq!(turns.header.boundary, "instructions");
    let records = nops(&machine, &turns, 1000);
    let place = turns.grouping.find("instructions").unwrap();
    let lengths: Vec<u64> = records
        .iter()
        .filter_map(|record| match record {
            Record::Slice(slice) => Some(slice.reading.counts[place]),
            _ => None,
        })
        .collect();
    let (_, whole) = lengths.split_last().unwrap();
    assert!(whole.iter().skip(2).all(|length| length % 64 == 0 && *length >= 5000), "{lengths:?}");
    assert_eq!(lengths.iter().sum::<u64>(), 64_000);
}

#[test]
fn what_cannot_be_counted_together_is_named() {
    let machine = Machine::named("ppc970").unwrap();
    let mut events = list("uops,loads,stores,branches,calls,returns,flops");
    events.groups = vec![(0..7).collect()];
    let error = Turns::plan(&ask(&machine, &events, None)).unwrap_err().sentence();
    assert!(error.contains("cannot be counted within {uops,loads"), "{error}");
    assert!(Turns::plan(&ask(&machine, &events, Some(9))).is_ok());
    assert_eq!(Event::named("uops"), Some(Event::Uops));
}
