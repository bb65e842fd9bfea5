//! Branch stacks of a real machine give edge counts, and their flow conserves.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use analyse::StackFlow;
use recording::{Body, Item, read_file};

/// `cycles:u -b` of a Skylake server.
fn fixture() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let path = root.join("autofdo/propeller_sample_1.perfdata1");
    if !path.is_file() {
        eprintln!("skipped: there is no ../shared/fixtures beside the project");
        return None;
    }
    Some(path)
}

#[test]
fn stacks_of_a_recording_give_edges_whose_flow_conserves() {
    let Some(path) = fixture() else { return };
    let file = File::open(&path).unwrap();
    let (mut flow, mut stacks, mut branches) = (StackFlow::default(), 0_u64, 0_u64);
    read_file(file, |item| {
        let Item { body: Body::Sample(sample), .. } = item else { return };
        let stack: Vec<(u64, u64)> = sample.branches.iter().map(|b| (b.from.0, b.to.0)).collect();
        branches += stack.len() as u64;
        stacks += u64::from(!stack.is_empty());
        flow.add(&stack);
    });
    assert_eq!(branches, 119_424);
    let sum = |counts: &BTreeMap<(u64, u64), u64>| counts.values().sum::<u64>();
    // Every branch stands in a stack beside the next, but for the newest.
    assert_eq!(sum(&flow.stretches) + flow.torn, branches - stacks);
    assert!(flow.torn * 100 < branches, "{} of {branches} neighbours do not join", flow.torn);
    for block in flow.blocks() {
        assert_eq!(block.count, block.fell_in + flow.begun(block.start), "{:#x}", block.start);
    }
    // A branch between two stretches ends one and begins another: it is counted with both.
    for (&(from, to), &count) in &flow.taken {
        let ends: u64 =
            flow.stretches.iter().filter(|((_, end), _)| *end == from).map(|(_, n)| n).sum();
        assert!(ends + flow.torn >= count && flow.begun(to) + flow.torn >= count);
    }
}

#[test]
fn an_imported_recording_keeps_every_branch_of_its_stacks() {
    let Some(path) = fixture() else { return };
    let folder = std::env::temp_dir().join(format!("whither-branches-{}", std::process::id()));
    let import = Command::new(env!("CARGO_BIN_EXE_whither"))
        .arg("import")
        .arg(&path)
        .args(["--host", "away"])
        .env("WHITHER_DB", &folder)
        .output()
        .unwrap();
    assert_eq!(import.status.code(), Some(0), "{}", String::from_utf8_lossy(&import.stderr));
    // What the recording itself says, way by way.
    let (mut ways, mut timed) = (BTreeMap::new(), 0_u64);
    read_file(File::open(&path).unwrap(), |item| {
        let Item { body: Body::Sample(sample), .. } = item else { return };
        for branch in &sample.branches {
            *ways.entry((sample.pid, branch.from, branch.to)).or_insert(0_u64) += 1;
            timed += u64::from(branch.cycles.is_some());
        }
    });
    let epochs = store::Database::open(&folder).epochs().unwrap().value;
    let profile = epochs[0].load().unwrap().value;
    let tallies = profile.branches.values();
    assert_eq!(tallies.clone().map(|tally| tally.count.0).sum::<u64>(), 119_424);
    assert_eq!(tallies.clone().map(|tally| tally.timed.0).sum::<u64>(), timed);
    let placed = |branch: &vocab::Branch| branch.from.is_some() && branch.to.is_some();
    let kept: u64 =
        profile.branches.iter().filter(|(b, _)| placed(b)).map(|(_, tally)| tally.count.0).sum();
    assert!(kept * 100 >= 119_424 * 99, "{kept} branches have both ends in an image");
    assert!(profile.branches.len() <= ways.len(), "ways merge, none is made up");
    std::fs::remove_dir_all(&folder).unwrap();
}
