//! Counts beside a profile are those of a profile that holds them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod profiles;

use std::path::Path;

use profiles::{Folder, SPAN, empty, event, facts, full, image, spelled};
use store::{Compaction, Database, Places, Writer};
use vocab::{Count, Mode, Offset, Profile, Spot};

struct Listed(Vec<(Spot, Count)>);

impl Places for Listed {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn place(&self, row: usize) -> (Spot, Count) {
        self.0[row]
    }
}

/// Takes the counts out of a profile.
fn apart(profile: &Profile) -> (Profile, Listed) {
    let mut rest = profile.clone();
    let mut listed: Vec<(Spot, Count)> = std::mem::take(&mut rest.counts).into_iter().collect();
    listed.sort_by_key(|(spot, _)| (spot.image, spot.event, spot.offset));
    (rest, Listed(listed))
}

/// More rows than a batch holds, images in another order than their texts, two events.
fn large() -> Profile {
    let mut profile = empty();
    let events = [event("z", Mode::User), event("a", Mode::Both)].map(|e| profile.event_id(&e));
    let images = ["/usr/lib/b", "/bin/c", "/bin/a"].map(|path| profile.image_id(&image(path)));
    for step in 0..100_000_u64 {
        let spot = Spot {
            image: images[(step % 7 % 3) as usize],
            offset: Offset(step * 7919 % 1_000_003),
            event: events[(step % 5 % 2) as usize],
        };
        profile.store(spot, Count(step % 9 + 1));
    }
    profile
}

fn read(root: &Path) -> Vec<String> {
    let epochs = Database::open(root).epochs().unwrap();
    let loaded = epochs.value[0].load().unwrap();
    assert!(loaded.troubles.is_empty(), "{:?}", loaded.troubles);
    spelled(&loaded.value)
}

fn round_trip(name: &str, profile: &Profile) {
    let folder = Folder::new(name);
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    let (rest, places) = apart(profile);
    writer.append_places(&rest, &places, SPAN).unwrap();
    let mut sum = profile.clone();
    assert_eq!(read(folder.path()), spelled(&sum), "{name}");
    // Rows that are not sorted as they should be would not meet in a merge.
    for _ in 0..3 {
        writer.append_places(&rest, &places, SPAN).unwrap();
        sum.merge(profile).unwrap();
    }
    while writer.compact(10_000).unwrap() != Compaction::Idle {}
    assert_eq!(read(folder.path()), spelled(&sum), "{name} merged");
}

#[test]
fn counts_beside_a_profile_read_back_as_if_they_were_in_it() {
    round_trip("places", &large());
}

#[test]
fn counts_that_are_also_kept_apart_are_added_to_the_profile_first() {
    round_trip("apart", &full(3));
}

#[test]
fn two_images_of_one_name_become_one() {
    let folder = Folder::new("twice");
    let mut writer = Writer::open(folder.path(), "h").unwrap();
    writer.begin(facts(), 1).unwrap();
    let mut profile = empty();
    let event = profile.event_id(&event("z", Mode::User));
    profile.images = vec![image("/bin/a"), image("/bin/a")];
    for step in 0..10 {
        let image = vocab::ImageId((step % 2) as u32);
        profile.store(Spot { image, offset: Offset(step / 2), event }, Count(1));
    }
    let (rest, places) = apart(&profile);
    writer.append_places(&rest, &places, SPAN).unwrap();
    let read = read(folder.path());
    assert_eq!(read.len(), 5);
    assert!(read.iter().all(|line| line.ends_with(" 2")), "{read:?}");
}
