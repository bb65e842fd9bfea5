//! What is appended is what is read back.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod profiles;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use profiles::{Folder, SPAN, empty, facts, full, spelled};
use store::{Database, EpochEntry, Gap, StoreError, Writer};
use vocab::{Count, Profile};

fn only_epoch(root: &Path) -> EpochEntry {
    let epochs = Database::open(root).epochs().unwrap();
    assert!(epochs.troubles.is_empty(), "{:?}", epochs.troubles);
    assert_eq!(epochs.value.len(), 1);
    epochs.value.into_iter().next().unwrap()
}

fn load(root: &Path) -> Profile {
    let loaded = only_epoch(root).load().unwrap();
    assert!(loaded.troubles.is_empty(), "{:?}", loaded.troubles);
    loaded.value
}

#[test]
fn two_appends_read_back_as_their_sum_in_every_table() {
    let folder = Folder::new("sum");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    let mut sum = full(0);
    writer.append(&full(0), SPAN).unwrap();
    writer.append_lightly(&full(3), SPAN).unwrap();
    sum.merge(&full(3)).unwrap();
    let read = load(folder.path());
    assert_eq!(spelled(&read), spelled(&sum));
    assert_eq!(read.tally, sum.tally);
    assert_eq!(read.epoch, sum.epoch);
    assert!(read.tally.is_whole() && read.tally.entries.is_some());
}

#[test]
fn an_append_without_counts_keeps_what_was_lost() {
    let folder = Folder::new("lost");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    let mut profile = empty();
    profile.tally.lost = Count(17);
    assert_eq!(writer.append(&profile, SPAN).unwrap().bytes, 0);
    assert_eq!(load(folder.path()).tally.lost, Count(17));
}

#[test]
fn files_and_folders_are_their_owners_alone() {
    let folder = Folder::new("modes");
    let mut writer = Writer::open(&folder.path().join("db"), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    writer.append(&full(0), SPAN).unwrap();
    let mut seen = 0;
    let mut look = vec![folder.path().join("db")];
    while let Some(path) = look.pop() {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if path.is_dir() {
            look.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        seen += 1;
    }
    assert_eq!(seen, 3 + 1 + 1 + 6, "three folders, lock, manifest, six tables");
}

#[test]
fn a_second_writer_is_refused_and_a_dead_ones_lock_is_taken() {
    let folder = Folder::new("lock");
    let writer = Writer::open(folder.path(), "h").unwrap();
    let refused = Writer::open(folder.path(), "h").unwrap_err().to_string();
    let expected = format!("process {} of host 'h' writes to this", std::process::id());
    assert!(refused.starts_with(&expected), "{refused}");
    Writer::open(folder.path(), "other host").unwrap();
    drop(writer);
    let lock = folder.path().join("h/lock");
    assert!(!lock.exists());
    // As a writer that was killed leaves it: nobody holds the flock, the process has gone.
    let held = Writer::open(folder.path(), "h").unwrap();
    let text = std::fs::read_to_string(&lock).unwrap();
    drop(held);
    let gone = text.replace(&format!("\"pid\": {}", std::process::id()), "\"pid\": 4194304");
    std::fs::write(&lock, gone).unwrap();
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    // And one whose process lives, where flock says nothing: refused by the file alone.
    writer.begin(facts(), 1).unwrap();
    std::fs::write(&lock, &text).unwrap();
    let displaced = writer.append(&full(0), SPAN).unwrap_err();
    assert!(matches!(displaced, StoreError::Displaced { .. }), "{displaced}");
    drop(writer);
    let refused = Writer::open(folder.path(), "h").unwrap_err();
    assert!(matches!(refused, StoreError::Locked { .. }), "{refused}");
    // Another machine of the same name cannot be judged from here.
    std::fs::write(&lock, text.replace("\"machine\": \"", "\"machine\": \"other")).unwrap();
    let refused = Writer::open(folder.path(), "h").unwrap_err().to_string();
    assert!(refused.starts_with("another machine that calls itself 'h'"), "{refused}");
}

#[test]
fn a_killed_writer_leaves_a_gap_and_a_stopped_one_says_so() {
    let folder = Folder::new("gaps");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 5).unwrap();
    writer.append(&full(0), SPAN).unwrap();
    drop(writer);
    std::fs::write(folder.path().join("h/000001/.new-2.counts.parquet"), "half").unwrap();
    std::fs::write(folder.path().join("h/000001/2.counts.parquet"), "not listed").unwrap();
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    assert_eq!(writer.resume(90).unwrap(), Some(1));
    writer.leave(95).unwrap();
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    // The clock was set back meanwhile: the gap does not end before it begins.
    writer.resume(3).unwrap();
    let gap = |to_unix_ns, why: &str| Gap { from_unix_ns: 20, to_unix_ns, why: why.into() };
    let expected = [gap(90, "the writer ended without a word"), gap(20, "the writer was stopped")];
    assert_eq!(only_epoch(folder.path()).gaps(), expected);
    let files = std::fs::read_dir(folder.path().join("h/000001")).unwrap().count();
    assert_eq!(files, 1 + 6, "what was not listed is gone");
    assert_eq!(spelled(&load(folder.path())), spelled(&full(0)));
}

#[test]
fn epochs_follow_each_other_whatever_the_clock_says() {
    let folder = Folder::new("clock");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    for began in [500, 900, 100] {
        writer.begin(facts(), began).unwrap();
    }
    writer.end(100).unwrap();
    assert_eq!(writer.resume(101).unwrap(), None, "an epoch that ended does not go on");
    let epochs = Database::open(folder.path()).epochs().unwrap().value;
    let order: Vec<(u64, u64)> = epochs.iter().map(|e| (e.number(), e.began_unix_ns())).collect();
    assert_eq!(order, [(1, 500), (2, 900), (3, 100)]);
}

#[test]
fn a_writer_that_was_killed_while_it_began_an_epoch_is_no_obstacle() {
    let folder = Folder::new("begin");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    writer.append(&full(0), SPAN).unwrap();
    drop(writer);
    std::fs::create_dir(folder.path().join("h/000002")).unwrap();
    std::fs::write(folder.path().join("h/000002/.new-epoch.json"), "{").unwrap();
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    assert_eq!(writer.resume(90).unwrap(), Some(1));
    drop(writer);
    // A manifest that cannot be read is left where it is, and another epoch begins.
    std::fs::write(folder.path().join("h/000001/epoch.json"), "{").unwrap();
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    assert_eq!(writer.resume(91).unwrap(), None);
    assert_eq!(writer.begin(facts(), 92).unwrap(), 2);
    let found = Database::open(folder.path()).epochs().unwrap();
    assert_eq!((found.value.len(), found.troubles.len()), (1, 1));
}
