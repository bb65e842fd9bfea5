//! Items of a recording, live or not, into maps and counts.

use collect::Placer;
use recording::{Body, Item, RawBranch, Sample};
use vocab::{BranchTally, Count, EventId};

/// The next item, in the order in which it happened.
pub(crate) fn take_item(placer: &mut Placer, item: Item) {
    let event = EventId(u16::try_from(item.event).unwrap_or(u16::MAX));
    match item.body {
        Body::Sample(sample) => take_sample(placer, event, &sample),
        Body::Mapped { mapping, in_kernel: true } => placer.take_kernel_map(&mapping),
        Body::Mapped { mapping, in_kernel: false } => placer.take_map(&mapping),
        Body::Named { pid, exec, name } => placer.take_name(pid, exec, &name),
        Body::Forked(fork) => placer.take_fork(fork),
        Body::Lost(count) => placer.take_lost(count),
        Body::Throttled => placer.take_throttled(),
    }
}

fn take_sample(placer: &mut Placer, event: EventId, sample: &Sample) {
    let at = (sample.mode, sample.pid, sample.pc);
    placer.take_sample(event, sample.mode, sample.pid, sample.pc);
    if !sample.chain.is_empty() {
        placer.take_chain(event, sample.pid, &sample.chain);
    }
    for branch in &sample.branches {
        placer.take_branch(event, sample.pid, (branch.from, branch.to), &tally(branch));
    }
    if let Some(load) = sample.load {
        placer.take_load(event, at, (load.level, load.latency_cycles));
    }
}

fn tally(branch: &RawBranch) -> BranchTally {
    BranchTally {
        count: Count::ONE,
        mispredicted: Count(u64::from(branch.mispredicted)),
        cycles: Count(branch.cycles.map_or(0, u64::from)),
        timed: Count(u64::from(branch.cycles.is_some())),
    }
}
