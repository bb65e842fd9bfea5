//! Whatever happens to a file, the rest is read and nothing is made up.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod profiles;

use std::path::{Path, PathBuf};

use profiles::{Folder, SPAN, facts, full, spelled};
use store::{Database, EpochEntry, StoreError, Writer};

fn written(folder: &Folder) -> EpochEntry {
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    writer.append(&full(1), SPAN).unwrap();
    drop(writer);
    Database::open(folder.path()).epochs().unwrap().value.remove(0)
}

fn tables(folder: &Folder) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.path().join("h/000001")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut tables: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == "parquet")).collect();
    tables.sort();
    tables
}

fn rounds(short: u64) -> u64 {
    let asked = std::env::var("WHITHER_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(short)
}

fn lot(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % below.max(1)
}

/// One sentence that names the file, and nothing else is missing.
fn is_told(epoch: &EpochEntry, victim: &Path, whole: &[String]) {
    let loaded = epoch.load().unwrap();
    assert_eq!(loaded.troubles.len(), 1, "{}", victim.display());
    let said = loaded.troubles[0].to_string();
    assert!(said.contains(victim.to_str().unwrap()) && !said.contains('\n'), "{said}");
    let read = spelled(&loaded.value);
    assert!(read.iter().all(|line| whole.contains(line)), "something was made up");
    assert!(read.len() < whole.len());
}

#[test]
fn any_changed_byte_of_any_table_is_noticed() {
    let folder = Folder::new("flips");
    let epoch = written(&folder);
    let whole = spelled(&epoch.load().unwrap().value);
    let mut seed = 5;
    for victim in tables(&folder) {
        let bytes = std::fs::read(&victim).unwrap();
        for round in 0..rounds(60) as usize {
            let mut changed = bytes.clone();
            // The first and last words are no column's: they are tried in any case.
            let place = match round {
                0..4 => round,
                4..8 => bytes.len() - 1 - (round - 4),
                _ => lot(&mut seed, bytes.len()),
            };
            changed[place] ^= 1 << lot(&mut seed, 8);
            std::fs::write(&victim, &changed).unwrap();
            is_told(&epoch, &victim, &whole);
        }
        std::fs::write(&victim, &bytes[..lot(&mut seed, bytes.len())]).unwrap();
        is_told(&epoch, &victim, &whole);
        std::fs::write(&victim, &bytes).unwrap();
    }
    assert_eq!(spelled(&epoch.load().unwrap().value), whole);
}

#[test]
fn a_damaged_manifest_is_told_of_and_other_epochs_are_read() {
    let folder = Folder::new("manifest");
    let epoch = written(&folder);
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 2).unwrap();
    writer.append(&full(2), SPAN).unwrap();
    drop(writer);
    let path = folder.path().join("h/000001/epoch.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let newer = text.replace("\"version\": 2", "\"version\": 7");
    let mut seed = 3;
    let mut cases = vec![String::new(), "{}".into(), newer, text[..text.len() / 2].to_owned()];
    for _ in 0..rounds(300) {
        let mut bytes = text.clone().into_bytes();
        let place = lot(&mut seed, bytes.len());
        bytes[place] = lot(&mut seed, 128) as u8;
        cases.push(String::from_utf8(bytes).unwrap());
    }
    for case in cases {
        std::fs::write(&path, &case).unwrap();
        let found = Database::open(folder.path()).epochs().unwrap();
        assert!(found.value.iter().any(|epoch| epoch.number() == 2));
        for trouble in &found.troubles {
            let said = trouble.to_string();
            assert!(said.contains("000001/epoch.json") && !said.contains('\n'), "{said}");
        }
        // A manifest that still parses may name other files: they are read or told of.
        for epoch in found.value {
            let _ = epoch.load();
        }
    }
    std::fs::write(&path, text.replace("\"version\": 2", "\"version\": 7")).unwrap();
    let found = Database::open(folder.path()).epochs().unwrap();
    assert!(matches!(found.troubles[0], StoreError::TooNew { version: 7, known: 2, .. }));
    std::fs::write(&path, &text).unwrap();
    assert_eq!(epoch.load().unwrap().troubles.len(), 0);
}

/// The folders were written by the version they are named after (the test below writes the newest
/// when asked to) and are never changed again: whatever the newest version is, it must read them.
fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name)
}

#[test]
fn databases_of_every_version_stay_readable() {
    for version in ["v1", "v2"] {
        let found = Database::open(&golden(version)).epochs().unwrap();
        assert!(found.troubles.is_empty(), "{:?}", found.troubles);
        let epoch = &found.value[0];
        assert_eq!((epoch.host(), epoch.number()), ("h", 1));
        let loaded = epoch.load().unwrap();
        assert!(loaded.troubles.is_empty(), "{:?}", loaded.troubles);
        let mut expected = full(1);
        if version == "v1" {
            expected.ways.clear();
        }
        assert_eq!(spelled(&loaded.value), spelled(&expected));
        assert_eq!(loaded.value.tally, expected.tally);
    }
}

#[test]
#[ignore = "writes the golden of the newest version"]
fn write_the_golden() {
    let golden = golden("v2");
    assert!(!golden.exists(), "a golden is never changed");
    let mut writer = Writer::open(&golden, "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    writer.append(&full(1), SPAN).unwrap();
    writer.end(30).unwrap();
}
