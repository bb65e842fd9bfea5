//! Branch stacks of a real machine give edge counts, and their flow conserves.

#![allow(clippy::unwrap_used, reason = "a test may end here")]

use std::fs::File;
use std::path::Path;

use analyse::StackFlow;
use recording::{Body, Item, read_file};

#[test]
fn stacks_of_a_recording_give_edges_whose_flow_conserves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures");
    let path = root.join("autofdo/propeller_sample_1.perfdata1");
    let Ok(file) = File::open(&path) else {
        eprintln!("skipped: there is no ../shared/fixtures beside the project");
        return;
    };
    let (mut flow, mut stacks, mut branches) = (StackFlow::default(), 0_u64, 0_u64);
    read_file(file, |item| {
        let Item { body: Body::Sample(sample), .. } = item else { return };
        let stack: Vec<(u64, u64)> = sample.branches.iter().map(|b| (b.from.0, b.to.0)).collect();
        branches += stack.len() as u64;
        stacks += u64::from(!stack.is_empty());
        flow.add(&stack);
    });
    assert_eq!(branches, 119_424);
    let sum = |counts: &std::collections::BTreeMap<(u64, u64), u64>| counts.values().sum::<u64>();
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
