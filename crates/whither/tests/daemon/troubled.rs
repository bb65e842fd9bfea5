//! A daemon that is killed, or whose disk is taken away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::scene::{Scene, set_mode, whole};

#[test]
fn killed_at_any_moment_the_database_opens_and_the_gap_is_recorded() {
    let Some(mut scene) = Scene::new("killed") else { return };
    let rounds = if std::env::var_os("WHITHER_SOAK").is_some() { 100 } else { 6 };
    let mut seed = 20_u64;
    let mut before = 0;
    for round in 0..rounds {
        scene.start(&[]);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis((seed >> 33) % 700));
        // What a reader saw a moment ago must still be there.
        let (seen, _, _) = whole(&scene.db());
        assert!(seen.stored.0 >= before);
        scene.kill();
        let (after, gaps, _) = whole(&scene.db());
        assert!(after.stored.0 >= seen.stored.0, "round {round}");
        assert_eq!(gaps, round, "every restart after a death records one gap");
        before = after.stored.0;
    }
    scene.start(&[]);
    scene.stop();
    let (all, gaps, _) = whole(&scene.db());
    assert_eq!(gaps, rounds);
    assert!(all.taken().0 > 0);
}

#[test]
fn a_directory_that_turns_read_only_stops_nothing_but_the_writing() {
    let Some(mut scene) = Scene::new("readonly") else { return };
    scene.start(&[]);
    scene.until("an append", |status| status["database"]["bytes"].as_u64() > Some(0));
    let epoch = epoch_folder(&scene.db());
    set_mode(&epoch, 0o500);
    let status = scene.until("trouble", |status| status["database"]["trouble"].is_string());
    let taken = status["samples"]["taken"].as_u64();
    scene.until("more samples", |status| status["samples"]["taken"].as_u64() > taken);
    assert!(scene.said().contains("collecting goes on"), "{}", scene.said());
    set_mode(&epoch, 0o700);
    scene.until("recovery", |status| status["database"]["trouble"].is_null());
    scene.stop();
    let (tally, _, _) = whole(&scene.db());
    assert!(tally.taken().0 >= taken.unwrap(), "nothing was lost: {tally:?}");
    assert_eq!(tally.lost.0, 0);
}

fn epoch_folder(db: &Path) -> PathBuf {
    let host = fs::read_dir(db).unwrap().flatten().next().unwrap().path();
    let epochs = fs::read_dir(host).unwrap().flatten().map(|entry| entry.path());
    epochs.filter(|path| path.join("epoch.json").exists()).max().unwrap()
}

#[test]
fn a_full_disk_stops_nothing_but_the_writing() {
    let Some(mut scene) = Scene::new("full") else { return };
    fs::create_dir_all(scene.db()).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k,mode=0700", "whither-test"])
        .arg(scene.db())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!("skipped: nothing can be mounted here");
        return;
    }
    // Dropped before the scene, whose folder can then be removed.
    let _unmount = Unmount(scene.db());
    scene.start(&[]);
    scene.until("an append", |status| status["database"]["bytes"].as_u64() > Some(0));
    let filler = scene.db().join("filler");
    let _ = fs::write(&filler, vec![1_u8; 1 << 20]);
    let status = scene.until("trouble", |status| status["database"]["trouble"].is_string());
    let taken = status["samples"]["taken"].as_u64();
    scene.until("more samples", |status| status["samples"]["taken"].as_u64() > taken);
    fs::remove_file(&filler).unwrap();
    scene.until("recovery", |status| status["database"]["trouble"].is_null());
    scene.stop();
    let (tally, _, _) = whole(&scene.db());
    assert!(tally.taken().0 >= taken.unwrap());
}

struct Unmount(PathBuf);

impl Drop for Unmount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
