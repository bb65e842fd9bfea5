//! How long views take to read a database of 20 million samples, with nothing cached.
//!
//! `cargo run --release -p store --example read [SAMPLES [PAIRS]]` writes it into a folder of its
//! own, drops the page cache where it may (root), and prints seconds by the clock and on the CPU. Nothing depends on them.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example may end here")]

use std::time::Instant;

use store::{Compaction, Counts, Database, Facts, Span, Want, Writer};
use vocab::{
    BuildId, Count, Epoch, Event, EventCode, EventId, Image, ImageKind, Mode, Offset, Profile,
    Source, Spot,
};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().unwrap());
    let samples = arguments.next().unwrap_or(20_000_000);
    let pairs = arguments.next().unwrap_or(2_000_000);
    let folder = std::env::temp_dir().join(format!("whither-read-{}", std::process::id()));
    let mut writer = Writer::open(&folder, "here").unwrap();
    writer.begin(Facts::default(), 1).unwrap();
    let profile = profile(samples, pairs);
    writer.append(&profile, Span { from_unix_ns: 1, to_unix_ns: 2 }).unwrap();
    writer.end(3).unwrap();
    while writer.compact(100_000).unwrap() != Compaction::Idle {}
    drop(profile);
    let epoch = Database::open(&folder).epochs().unwrap().value.remove(0);
    println!("{} samples, {} bytes", epoch.tally().stored, epoch.bytes());
    for (view, want) in [
        ("by image", Want::default()),
        ("by procedure", Want { offsets: true, ..Want::default() }),
        ("one image", Want { image: Some("/usr/lib/lib300.so".into()), ..Want::default() }),
    ] {
        // Written pages must be on disk before they can be dropped.
        let _ = std::process::Command::new("sync").status();
        let dropped = std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
        let (began, cpu) = (Instant::now(), cpu_s());
        let found = Database::open(&folder).epochs().unwrap().value;
        let mut counts = Counts::new(want);
        found.iter().for_each(|epoch| assert!(counts.take(epoch).unwrap().is_empty()));
        let cache = if dropped { "cache dropped" } else { "cached" };
        let (took, cpu) = (began.elapsed().as_secs_f64(), cpu_s() - cpu);
        let rows = counts.rows.len();
        println!("{view}: {took:.3} s, {cpu:.3} s of it on a CPU, {rows} rows, {cache}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What this thread has used: on a busy machine the clock says little.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns: f64 = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    ns / 1e9
}

/// Spread evenly: the columns are then as hard to pack as they can be.
fn profile(samples: u64, pairs: u64) -> Profile {
    let event = Event { name: "cycles".into(), code: EventCode::new(0, 0), mode: Mode::Both };
    let epoch = Epoch { host: "here".into(), began_unix_ns: 1 };
    let mut profile = Profile::empty(epoch, Source::Measured, vec![event]);
    let images: Vec<_> = (0..600_u64)
        .map(|n| {
            let path = format!("/usr/lib/lib{n}.so");
            let build_id = BuildId::new(&n.to_le_bytes());
            profile.image_id(&Image { kind: ImageKind::File, path, build_id })
        })
        .collect();
    let mut seed = 1_u64;
    for pair in 0..pairs {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let image = images[(pair % 600) as usize];
        let offset = Offset(pair / 600 * 16 + (seed >> 60));
        let count = Count(1 + (seed >> 33) % (2 * samples / pairs).max(1));
        profile.store(Spot { image, offset, event: EventId(0) }, count);
    }
    profile
}
