//! Recordings of real machines, read with the counts that their folder states.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may end here")]

mod damage;

use std::fs::File;
use std::path::{Path, PathBuf};

use damage::{rounds, survives};
use perf::SampleMode;
use recording::{Body, Item, Outcome, RawBranch, Sample, read_file, read_pipe};
use vocab::LoadLevel;

/// The folder beside the project's, or nothing.
fn fixtures() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    if !root.is_dir() {
        eprintln!("skipped: there is no ../shared/fixtures beside the project");
        return None;
    }
    Some(root)
}

fn read(path: &Path) -> (Vec<Item>, Outcome) {
    let mut items = Vec::new();
    let outcome = read_file(File::open(path).unwrap(), |item| items.push(item));
    (items, outcome)
}

fn samples(items: &[Item]) -> Vec<&Sample> {
    let sample = |item| match item {
        &Item { body: Body::Sample(ref sample), .. } => Some(&**sample),
        _ => None,
    };
    items.iter().filter_map(sample).collect()
}

const STATED: [(&str, usize, &[&str]); 13] = [
    (
        "busy.1-3.4",
        11_778,
        &[
            "cycles",
            "instructions",
            "cache-references",
            "cache-misses",
            "branches",
            "branch-misses",
        ],
    ),
    ("callgraph_and_branch-3.8", 1_856, &["cycles"]),
    ("branch-4.14", 13, &["cycles"]),
    (
        "weight_struct",
        14,
        &["MEM_TRANS_RETIRED.LOAD_LATENCY:ldlat=64:precise=2:mh:mg:pinned", "dummy"],
    ),
    ("group_desc-4.14", 13, &["cache-references", "branch-misses"]),
    ("hw_and_sw-3.4", 4_941, &["cycles", "branch-misses", "cpu-clock"]),
    ("singleprocess-3.8", 13, &["cycles"]),
    ("hybrid_topology", 7, &["cpu_core/cycles:ppp/", "cpu_atom/cycles:ppp/", "dummy"]),
    ("lost_samples-4.4", 191, &["cycles", "instructions", "branch-instructions"]),
    ("proc.map.timeout-3.18", 8, &["cycles"]),
    (
        "piped.target-3.8",
        5_218,
        &[
            "cycles",
            "instructions",
            "cache-misses",
            "cache-references",
            "branches",
            "branch-misses",
        ],
    ),
    ("piped.header_features_aligned-6.12", 9, &["cycles"]),
    ("piped.corrupted.zero_size_sample-3.2", 0, &["cycles", "instructions"]),
];

#[test]
fn every_recording_has_the_samples_and_events_that_are_stated() {
    let Some(root) = fixtures() else { return };
    for (name, expected, events) in STATED {
        let path = root.join(format!("perf-data-converter/perf.data.{name}"));
        let (items, outcome) = read(&path);
        assert_eq!(samples(&items).len(), expected, "{name}");
        assert!(items.is_sorted_by_key(|item| item.time_ns), "{name}");
        if name.contains("corrupted") {
            let said = outcome.damage.unwrap().to_string();
            assert_eq!(
                said,
                "the record at byte 49104 says that it has 0 bytes, and its header alone has 8"
            );
            continue;
        }
        assert!(outcome.damage.is_none(), "{name}: {:?}", outcome.damage);
        let names: Vec<&str> = outcome.events.iter().map(|e| e.event.name.as_str()).collect();
        assert_eq!(names, events, "{name}");
    }
}

#[test]
fn what_came_before_the_damage_is_handed_out() {
    let Some(root) = fixtures() else { return };
    let path = root.join("perf-data-converter/perf.data.piped.corrupted.zero_size_sample-3.2");
    let (items, outcome) = read(&path);
    let maps = items.iter().filter(|item| matches!(item.body, Body::Mapped { .. })).count();
    assert!(maps > 100 && outcome.damage.is_some(), "{maps}");
}

#[test]
fn compressed_files_and_pipes_hold_as_many_samples_as_plain_ones() {
    let Some(root) = fixtures() else { return };
    let root = root.join("linux-perf-data");
    let of = |name: &str| {
        let (items, outcome) = read(&root.join(name));
        assert!(outcome.damage.is_none(), "{name}: {:?}", outcome.damage);
        samples(&items).len()
    };
    for name in ["sleep.compressed.data", "sleep.compressed.pipe.data"] {
        assert_eq!(of(name), 8, "{name}");
    }
    for name in ["sleep.data", "sleep.compressed2.data", "sleep.compressed2.pipe.data"] {
        assert_eq!(of(name), 7, "{name}");
    }
    assert_eq!(of("fibo.compressed2.pipe.data"), 547);
    let mut piped = 0;
    let file = File::open(root.join("fibo.compressed2.pipe.data")).unwrap();
    read_pipe(file, |item| piped += usize::from(item.is_sample()));
    assert_eq!(piped, 547, "the same without seeking");
}

#[test]
fn branch_stacks_carry_their_cycles_and_mispredictions() {
    let Some(root) = fixtures() else { return };
    let (items, _) = read(&root.join("autofdo/propeller_sample_1.perfdata1"));
    let samples = samples(&items);
    assert_eq!(samples.len(), 3_740);
    let branches: Vec<&RawBranch> = samples.iter().flat_map(|sample| &sample.branches).collect();
    let in_user = |branch: &&&RawBranch| branch.from.0 >> 63 == 0 && branch.to.0 >> 63 == 0;
    assert_eq!(branches.iter().filter(in_user).count(), 119_419);
    assert!(branches.iter().filter(in_user).all(|branch| branch.cycles.is_some()));
    assert_eq!(branches.iter().filter(|branch| branch.mispredicted).count(), 5);
}

#[test]
fn loads_carry_level_and_latency_and_chains_their_modes() {
    let Some(root) = fixtures() else { return };
    let (items, _) = read(&root.join("perf-data-converter/perf.data.weight_struct"));
    let loads: Vec<_> = samples(&items).iter().filter_map(|sample| sample.load).collect();
    assert_eq!(loads.len(), 14);
    // The event asked for loads of at least 64 cycles.
    assert!(loads.iter().all(|load| load.latency_cycles >= 64), "{loads:?}");
    let at = |level| loads.iter().filter(|load| load.level == level).count();
    let levels = [LoadLevel::L1, LoadLevel::FillBuffer, LoadLevel::L2, LoadLevel::L3].map(at);
    assert_eq!(levels, [4, 5, 1, 4]);
    let (items, _) = read(&root.join("perf-data-converter/perf.data.callgraph_and_branch-3.8"));
    let chains = samples(&items);
    assert!(chains.iter().all(|sample| !sample.chain.is_empty()));
    let frames = || chains.iter().flat_map(|sample| &sample.chain);
    let kernel = |pc: &vocab::Pc| pc.0 >> 63 == 1;
    let in_kernel = |(mode, _): &&(SampleMode, vocab::Pc)| *mode == SampleMode::Kernel;
    assert!(frames().filter(in_kernel).count() > 1000);
    assert!(frames().filter(in_kernel).all(|(_, pc)| kernel(pc)));
    assert!(frames().all(|(mode, _)| *mode != SampleMode::Elsewhere));
}

#[test]
fn damaged_recordings_end_in_a_sentence_and_never_in_a_panic() {
    let Some(root) = fixtures() else { return };
    for name in [
        "perf-data-converter/perf.data.branch-4.14",
        "perf-data-converter/perf.data.group_desc-4.14",
        "linux-perf-data/sleep.compressed.pipe.data",
        "linux-perf-data/sleep.compressed2.data",
    ] {
        survives(&std::fs::read(root.join(name)).unwrap(), rounds(300));
    }
}
