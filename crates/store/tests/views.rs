//! Counts for views agree with the profiles they come from.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod profiles;

use profiles::{Folder, facts, full};
use store::{Counts, Database, EpochEntry, Span, Want, Writer};

fn two_segments(folder: &Folder) -> EpochEntry {
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    writer.append(&full(1), Span { from_unix_ns: 100, to_unix_ns: 200 }).unwrap();
    writer.append(&full(2), Span { from_unix_ns: 200, to_unix_ns: 300 }).unwrap();
    Database::open(folder.path()).epochs().unwrap().value.remove(0)
}

fn counted(epoch: &EpochEntry, want: &Want) -> Counts {
    let mut counts = Counts::new(want.clone());
    assert!(counts.take(epoch).unwrap().is_empty());
    counts
}

fn total(counts: &Counts) -> u64 {
    counts.rows.iter().map(|row| row.count.0).sum()
}

#[test]
fn whatever_columns_are_read_the_counts_add_up_to_the_same() {
    let folder = Folder::new("views");
    let epoch = two_segments(&folder);
    let stored = epoch.tally().stored.0;
    for (offsets, processes) in [(false, false), (false, true), (true, false), (true, true)] {
        let want = Want { offsets, processes, ..Want::default() };
        let counts = counted(&epoch, &want);
        assert_eq!(total(&counts), stored, "{want:?}");
        assert_eq!(counts.images.len(), 3);
        assert_eq!(counts.processes.len(), usize::from(processes));
        let has_offsets = counts.rows.iter().any(|row| row.offset.0 != 0);
        assert_eq!(has_offsets, offsets);
    }
    let folded = counted(&epoch, &Want::default());
    assert_eq!(folded.rows.len(), 2 * 3 * 2, "two segments, three images, two events");
}

#[test]
fn one_image_and_one_event_are_a_part_of_the_whole() {
    let folder = Folder::new("filters");
    let epoch = two_segments(&folder);
    assert_eq!(epoch.events(), ["cycles:u", "cycles"]);
    let mut sum = 0;
    for image in ["/bin/program", "[kernel]", "[made]"] {
        for event in ["cycles", "cycles:u"] {
            let (image, event) = (Some(image.to_owned()), Some(event.to_owned()));
            let counts = counted(&epoch, &Want { image, event, ..Want::default() });
            assert_eq!((counts.images.len(), counts.events.len()), (1, 1));
            sum += total(&counts);
        }
    }
    assert_eq!(sum, epoch.tally().stored.0);
    let none = Want { image: Some("/no/such".into()), ..Want::default() };
    assert_eq!(total(&counted(&epoch, &none)), 0);
}

#[test]
fn a_stretch_of_time_takes_whole_appends_and_their_tally() {
    let folder = Folder::new("time");
    let epoch = two_segments(&folder);
    let late = epoch.between(250, u64::MAX);
    assert_eq!(late.tally(), full(2).tally);
    assert_eq!(total(&counted(&late, &Want::default())), full(2).tally.stored.0);
    assert!(epoch.between(301, 400).is_empty());
    assert_eq!(epoch.between(0, 150).tally(), full(1).tally);
}
