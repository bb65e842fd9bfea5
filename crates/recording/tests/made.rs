//! Tiny recordings made here, byte by byte.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod damage;

use std::io::Cursor;

use damage::{rounds, survives};
use recording::{Body, Item, Outcome, read_file, read_pipe};
use vocab::Count;

const IP_TID_TIME: u64 = 0b111;
const SAMPLE_ID_ALL: u64 = 1 << 18;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A cpu-clock attribute of the first published size.
fn attr() -> Vec<u8> {
    words(&[1 | 64 << 32, 0, 1000, IP_TID_TIME, 0, SAMPLE_ID_ALL, 0, 0])
}

fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend(misc.to_le_bytes());
    bytes.extend((8 + body.len() as u16).to_le_bytes());
    bytes.extend(body);
    bytes
}

fn sample(pc: u64, time: u64) -> Vec<u8> {
    record(9, 2, &words(&[pc, 7, time]))
}

fn lost(count: u64, time: u64) -> Vec<u8> {
    record(2, 0, &words(&[1, count, 7, time]))
}

fn round() -> Vec<u8> {
    record(68, 0, &[])
}

fn pipe(records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[16]));
    bytes.extend(record(64, 0, &attr()));
    bytes.extend(records.concat());
    bytes
}

fn file(records: &[Vec<u8>], said: Option<u64>) -> Vec<u8> {
    let data = records.concat();
    let (attrs, at) = (104, 104 + 80);
    let size = said.unwrap_or(data.len() as u64);
    let mut bytes = b"PERFILE2".to_vec();
    bytes.extend(words(&[104, 80, attrs, 80, at, size, 0, 0, 0, 0, 0, 0]));
    bytes.extend(attr());
    bytes.extend(words(&[0, 0]));
    bytes.extend(data);
    bytes
}

fn read(bytes: &[u8]) -> (Vec<Item>, Outcome) {
    let mut items = Vec::new();
    let outcome = read_file(Cursor::new(bytes), |item| items.push(item));
    (items, outcome)
}

fn pcs(items: &[Item]) -> Vec<u64> {
    let pc = |item: &Item| match &item.body {
        Body::Sample(sample) => Some(sample.pc.0),
        _ => None,
    };
    items.iter().filter_map(pc).collect()
}

fn records() -> Vec<Vec<u8>> {
    vec![sample(1, 50), sample(3, 70), round(), sample(2, 60), lost(5, 80), round(), sample(4, 90)]
}

#[test]
fn file_and_pipe_give_the_same_records_in_order_of_time() {
    let (from_file, outcome) = read(&file(&records(), None));
    assert!(outcome.damage.is_none(), "{:?}", outcome.damage);
    assert_eq!(outcome.events[0].event.name, "cpu-clock");
    assert_eq!(pcs(&from_file), [1, 2, 3, 4]);
    assert!(from_file.iter().any(|item| item.body == Body::Lost(Count(5))));
    let (from_pipe, outcome) = read(&pipe(&records()));
    assert!(outcome.damage.is_none(), "{:?}", outcome.damage);
    assert_eq!(from_pipe, from_file);
    let mut streamed = Vec::new();
    read_pipe(Cursor::new(pipe(&records())), |item| streamed.push(item));
    assert_eq!(streamed, from_file);
}

#[test]
fn a_recording_whose_perf_was_killed_is_read_to_its_end() {
    let (items, outcome) = read(&file(&records(), Some(0)));
    assert!(outcome.damage.is_none());
    assert_eq!(pcs(&items), [1, 2, 3, 4]);
}

#[test]
fn what_is_cut_off_is_told_and_the_rest_is_kept() {
    let whole = file(&records(), None);
    let (items, outcome) = read(&whole[..whole.len() - 8]);
    assert_eq!(pcs(&items), [1, 2, 3]);
    let said = outcome.damage.unwrap().to_string();
    assert_eq!(said, format!("it ends in the middle of a record at byte {}", whole.len() - 32));
    let (items, outcome) = read(&whole[..whole.len() - 32]);
    assert_eq!(pcs(&items), [1, 2, 3]);
    assert!(outcome.damage.unwrap().to_string().contains("in the middle of its records"));
}

#[test]
fn what_is_no_recording_is_refused() {
    let said = |bytes: &[u8]| read(bytes).1.damage.unwrap().to_string();
    assert_eq!(said(b"hello, world, this is text"), "this is not a perf.data file");
    assert_eq!(said(b""), "this is not a perf.data file");
    assert!(said(b"2ELIFREP\0\0\0\0\0\0\0\x10").contains("other byte order"));
    assert!(said(&file(&[], None)[..100]).contains("in the middle of the header"));
    let mut short = sample(1, 1);
    short[6] = 16;
    let (items, outcome) = read(&pipe(&[sample(9, 9), short[..16].to_vec()]));
    assert_eq!(pcs(&items), [9]);
    let said = outcome.damage.unwrap().to_string();
    assert!(said.ends_with("of kind 9 is shorter than its fields"), "{said}");
}

#[test]
fn perfs_own_words_at_the_end_of_a_pipe_are_no_record() {
    let mut bytes = pipe(&records());
    bytes.extend(b"[ perf record: Woken up 1 times to write data ]\n");
    let (items, outcome) = read(&bytes);
    assert!(outcome.damage.is_none());
    assert_eq!(pcs(&items), [1, 2, 3, 4]);
}

#[test]
fn damage_never_ends_in_a_panic() {
    survives(&file(&records(), None), rounds(2000));
    survives(&pipe(&records()), rounds(2000));
    let unlucky = pipe(&[record(71, 0, &words(&[u64::MAX])), record(66, 0, &words(&[u64::MAX]))]);
    assert!(read(&unlucky).1.damage.is_some());
}
