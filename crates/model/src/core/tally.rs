//! From what units report to events.

use super::Account;
use crate::event::{Counts, Event};
use crate::program::{Block, Program};
use crate::units::Level;
use crate::units::memory::{Memory, Outcome};
use crate::uop::Flow;

/// Counts a mispredicted branch by what was wrong.
pub(crate) fn count_mispredict(account: &mut Account, place: usize, flow: Flow, direction: bool) {
    account.happened(place, Event::BranchMisses);
    let kind = match flow {
        _ if direction => Event::DirectionMisses,
        Flow::Return => Event::ReturnMisses,
        _ => Event::TargetMisses,
    };
    account.happened(place, kind);
}

/// Counts what a load met.
#[inline]
pub(crate) fn count_load(account: &mut Account, place: usize, outcome: &Outcome) {
    let is_plain = outcome.level == Level::L1
        && !outcome.translation.missed_l1
        && !(outcome.joined || outcome.guessed || outcome.split);
    if !is_plain {
        count_load_slowly(account, place, outcome);
    }
}

#[inline(never)]
fn count_load_slowly(account: &mut Account, place: usize, outcome: &Outcome) {
    let level = outcome.level;
    let met = [
        (level > Level::L1, Event::L1dLoadMisses),
        (level > Level::L2, Event::L2LoadMisses),
        (level == Level::Memory, Event::L3LoadMisses),
        (outcome.joined, Event::L1dJoins),
        (outcome.guessed, Event::PrefetchHits),
        (outcome.split, Event::SplitLoads),
        (outcome.split, Event::Replays),
        (outcome.translation.missed_l1, Event::DtlbLoadMisses),
        (outcome.translation.walked, Event::DtlbLoadWalks),
    ];
    for (_, event) in met.into_iter().filter(|(did, _)| *did) {
        account.happened(place, event);
    }
}

/// Counts what a store met.
pub(crate) fn count_store(account: &mut Account, place: usize, outcome: &Outcome) {
    let level = outcome.level;
    let met = [
        (level > Level::L1, Event::L1dStoreMisses),
        (level > Level::L2, Event::L2StoreMisses),
        (level == Level::Memory, Event::L3StoreMisses),
        (outcome.split, Event::SplitStores),
        (outcome.translation.missed_l1, Event::DtlbStoreMisses),
        (outcome.translation.walked, Event::DtlbStoreWalks),
    ];
    for (_, event) in met.into_iter().filter(|(did, _)| *did) {
        account.happened(place, event);
    }
}

/// Adds what the units counted.
pub(crate) fn add_memory(counts: &mut Counts, memory: &Memory) {
    let held = &memory.counts;
    for (event, count) in [
        (Event::L2Data, held.l2_data),
        (Event::L2Code, held.l2_code),
        (Event::L2Misses, held.l2_misses),
        (Event::L3Requests, held.l3),
        (Event::L3Misses, held.l3_misses),
        (Event::PrefetchL1, held.prefetches_l1),
        (Event::PrefetchL2, held.prefetches_l2),
        (Event::PrefetchUseful, held.prefetches_useful),
        (Event::PrefetchUseless, held.prefetches_useless),
        (Event::WritebacksL1, held.writebacks_l1),
        (Event::WritebacksMemory, held.writebacks_memory),
        (Event::EvictionsL1, held.evictions_l1),
        (Event::MissWait, held.wait_cycles),
        (Event::MemoryReads, held.memory_reads),
    ] {
        counts[event] = count;
    }
}

/// Counts what a fetch of a line met.
pub(crate) fn count_code(account: &mut Account, place: usize, outcome: &Outcome) {
    let met = [
        (outcome.level > Level::L1, Event::L1iMisses),
        (outcome.level > Level::L2, Event::L2CodeMisses),
        (outcome.level == Level::Memory, Event::L3CodeMisses),
        (outcome.translation.missed_l1, Event::ItlbMisses),
        (outcome.translation.walked, Event::ItlbWalks),
    ];
    for (_, event) in met.into_iter().filter(|(did, _)| *did) {
        account.happened(place, event);
    }
}

/// Adds what a run of the first `count` instructions of a block counts whatever it meets.
#[inline]
pub(crate) fn count_static(account: &mut Account, program: &Program, block: &Block, count: u32) {
    if count == block.count {
        for (total, &one) in account.totals.0.iter_mut().zip(&block.counts) {
            *total += u64::from(one);
        }
        return;
    }
    for place in block.first..block.first + count {
        let Some(counts) = program.counts.get(place as usize) else { return };
        for (total, &one) in account.totals.0.iter_mut().zip(counts) {
            *total += u64::from(one);
        }
    }
}
