//! Merging segments changes how the counts lie, and nothing else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod profiles;

use std::path::Path;

use profiles::{Folder, SPAN, facts, full, spelled};
use store::{Compaction, Database, EpochEntry, Retention, Span, Writer};
use vocab::Profile;

fn epochs(root: &Path) -> Vec<EpochEntry> {
    Database::open(root).epochs().unwrap().value
}

fn load(epoch: &EpochEntry) -> Profile {
    let loaded = epoch.load().unwrap();
    assert!(loaded.troubles.is_empty(), "{:?}", loaded.troubles);
    loaded.value
}

fn files(folder: &Path, ending: &str) -> usize {
    let entries = std::fs::read_dir(folder).unwrap();
    entries.filter(|e| e.as_ref().unwrap().file_name().to_str().unwrap().ends_with(ending)).count()
}

fn settle(writer: &mut Writer, rows: usize) -> usize {
    let mut merged = 0;
    loop {
        match writer.compact(rows).unwrap() {
            Compaction::Idle => return merged,
            Compaction::Underway => {}
            Compaction::Merged => merged += 1,
        }
    }
}

fn append_four(writer: &mut Writer) {
    for seed in 0..4 {
        writer.append(&full(seed), SPAN).unwrap();
    }
}

#[test]
fn compacting_a_few_rows_at_a_time_between_appends_keeps_every_count() {
    for rows in [1, 7, 1000] {
        let folder = Folder::new("steps");
        let mut writer = Writer::open(folder.path(), "h").unwrap();
        writer.begin(facts(), 1).unwrap();
        let mut sum = profiles::empty();
        for seed in 0..21 {
            writer.append(&full(seed % 5), SPAN).unwrap();
            sum.merge(&full(seed % 5)).unwrap();
            writer.compact(rows).unwrap();
            let read = load(&epochs(folder.path())[0]);
            assert_eq!(read.tally, sum.tally, "after append {seed}");
            assert_eq!(spelled(&read), spelled(&sum), "after append {seed}");
        }
        settle(&mut writer, rows);
        let held = files(&folder.path().join("h/000001"), ".counts.parquet");
        assert!(held < 4, "{held} segments are left");
        assert_eq!(spelled(&load(&epochs(folder.path())[0])), spelled(&sum));
        writer.end(99).unwrap();
        assert_eq!(settle(&mut writer, rows), usize::from(held > 1));
        assert_eq!(files(&folder.path().join("h/000001"), ".counts.parquet"), 1);
        assert_eq!(spelled(&load(&epochs(folder.path())[0])), spelled(&sum));
    }
}

#[test]
fn a_merge_that_is_cut_off_leaves_nothing_behind_after_the_next_start() {
    let folder = Folder::new("cut");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    append_four(&mut writer);
    assert_eq!(writer.compact(30).unwrap(), Compaction::Underway);
    let before = spelled(&load(&epochs(folder.path())[0]));
    drop(writer);
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.resume(50).unwrap();
    assert_eq!(files(&folder.path().join("h/000001"), "parquet"), 4 + 4 * 4 + 1);
    assert_eq!(spelled(&load(&epochs(folder.path())[0])), before);
    assert_eq!(settle(&mut writer, 50), 1);
    assert_eq!(spelled(&load(&epochs(folder.path())[0])), before);
}

#[test]
fn a_reader_with_an_old_manifest_finds_what_was_merged_meanwhile() {
    let folder = Folder::new("reader");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    append_four(&mut writer);
    let old = epochs(folder.path()).remove(0);
    let before = spelled(&load(&old));
    assert_eq!(settle(&mut writer, 1000), 1);
    assert_eq!(spelled(&load(&old)), before);
}

#[test]
fn a_damaged_segment_is_named_once_and_the_others_are_read() {
    let folder = Folder::new("damaged");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    append_four(&mut writer);
    let victim = folder.path().join("h/000001/2.counts.parquet");
    let bytes = std::fs::read(&victim).unwrap();
    std::fs::write(&victim, &bytes[..bytes.len() / 2]).unwrap();
    let said = writer.compact(1000).unwrap_err().to_string();
    assert!(said.contains("2.counts.parquet is damaged"), "{said}");
    assert_eq!(writer.compact(1000).unwrap(), Compaction::Idle, "not tried again");
    let loaded = epochs(folder.path())[0].load().unwrap();
    assert_eq!(loaded.troubles.len(), 1);
    let said = loaded.troubles[0].to_string();
    assert!(said.contains("2.counts.parquet") && !said.contains('\n'), "{said}");
    let mut rest = profiles::empty();
    [0, 2, 3].iter().for_each(|&seed| rest.merge(&full(seed)).unwrap());
    let counted = |p: &Profile| p.counts.values().map(|count| count.0).sum::<u64>();
    assert_eq!(counted(&loaded.value), counted(&rest));
}

#[test]
fn retention_goes_by_age_and_size_and_spares_the_open_epoch() {
    let folder = Folder::new("retain");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    for day in 1..=4 {
        writer.begin(facts(), day * 100).unwrap();
        let span = Span { from_unix_ns: day * 100, to_unix_ns: day * 100 + 50 };
        writer.append(&full(0), span).unwrap();
    }
    let numbers = || epochs(folder.path()).iter().map(EpochEntry::number).collect::<Vec<_>>();
    let keep = Retention { age_ns: Some(300), bytes: None };
    assert_eq!(writer.retain(keep, 460).unwrap().epochs, [1]);
    assert_eq!(numbers(), [2, 3, 4]);
    let one = epochs(folder.path())[0].bytes();
    let keep = Retention { age_ns: None, bytes: Some(2 * one) };
    assert_eq!(writer.retain(keep, 460).unwrap().epochs, [2]);
    let keep = Retention { age_ns: Some(1), bytes: Some(1) };
    assert_eq!(writer.retain(keep, u64::MAX).unwrap().epochs, [3]);
    assert_eq!(numbers(), [4]);
    assert_eq!(writer.begin(facts(), 7).unwrap(), 5, "numbers are not used twice");
}

#[test]
fn epochs_of_several_hosts_merge_into_one() {
    let folder = Folder::new("absorb");
    for (host, seed) in [("a", 1), ("b", 2)] {
        let mut writer = Writer::open(folder.path(), host).unwrap();
        writer.begin(facts(), 1).unwrap();
        writer.append(&full(seed), SPAN).unwrap();
    }
    let mut writer = Writer::open(folder.path(), "all").unwrap();
    writer.begin(facts(), 1).unwrap();
    for epoch in epochs(folder.path()).iter().filter(|epoch| epoch.host() != "all") {
        assert!(writer.absorb(epoch).unwrap().troubles.is_empty());
    }
    let mut sum = full(1);
    sum.merge(&full(2)).unwrap();
    let merged = load(epochs(folder.path()).iter().find(|epoch| epoch.host() == "all").unwrap());
    assert_eq!(spelled(&merged), spelled(&sum));
    assert_eq!(merged.tally, sum.tally);
}
