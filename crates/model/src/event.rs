//! What the modelled core counts.
//!
//! Three kinds, in this order, so that a core can keep each where it is cheapest:
//!
//! ```text
//! static     depends on the code alone: added per block     instructions, loads, flops ...
//! happening  befalls one instruction when it commits        misses, mispredicts, forwards ...
//! aggregate  kept by the core or its units                  cycles, stalls by cause, prefetches ...
//! ```
//!
//! All are counted at commit and none on a wrong path, which the model does not fetch. Machines
//! that count speculatively report more.

use crate::machine::Class;
use crate::uop::{Flow, Instruction};

macro_rules! events {
    ($($event:ident = $name:literal, $about:literal;)+) => {
        /// Something that is counted.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum Event {
            $(#[doc = $about] $event,)+
        }

        impl Event {
            /// Every event, in order of its number.
            pub const ALL: &[Event] = &[$(Event::$event,)+];

            /// The name by which it is asked for.
            pub fn name(self) -> &'static str {
                match self { $(Event::$event => $name,)+ }
            }

            /// What it counts, in a sentence.
            pub fn about(self) -> &'static str {
                match self { $(Event::$event => $about,)+ }
            }
        }
    };
}

events! {
    Instructions = "instructions", "Instructions committed; a repeated string instruction counts once.";
    Uops = "uops", "Micro-ops committed, the halves of stores and fused pairs apart.";
    Slots = "slots-used", "Slots of the window used by committed micro-ops.";
    Loads = "loads", "Loads committed; one per memory operand read.";
    Stores = "stores", "Stores committed; one per memory operand written.";
    Branches = "branches", "Branches of any kind committed.";
    ConditionalBranches = "conditional-branches", "Direct conditional branches committed.";
    DirectJumps = "direct-jumps", "Direct unconditional jumps committed.";
    Calls = "calls", "Calls committed, direct and indirect.";
    Returns = "returns", "Returns committed.";
    IndirectBranches = "indirect-branches", "Jumps and calls through a register or memory committed.";
    VectorInstructions = "vector-instructions", "Instructions committed that name a vector register.";
    Flops = "flops", "Floating-point operations by element; a multiply-add counts twice.";
    Multiplies = "integer-multiplies", "Integer multiplications committed.";
    Divides = "integer-divides", "Integer divisions committed.";
    FpAdds = "fp-adds", "Floating-point additions committed, whole vectors as one.";
    FpMultiplies = "fp-multiplies", "Floating-point multiplications committed, whole vectors as one.";
    Fmas = "fp-multiply-adds", "Fused multiply-adds committed, whole vectors as one.";
    FpDivides = "fp-divides", "Floating-point divisions and square roots committed.";
    Shuffles = "shuffles", "Vector shuffles committed.";
    Atomics = "atomics", "Locked instructions committed.";
    Fences = "fences", "Micro-ops that wait for memory: fences and locked operations.";
    Microcoded = "microcoded", "Instructions modelled as microcode.";
    Unknown = "unknown-instructions", "Instructions the decoder does not know, modelled generically.";
    FusedPairs = "fused-branches", "Comparisons merged with the branch after them.";
    Eliminated = "eliminated-uops", "Micro-ops that need no unit: cleared and copied registers, no-ops.";
    Issues = "issues", "Micro-ops sent to a port.";
    IntegerIssues = "integer-issues", "Micro-ops of integer work sent to a port, microcode included, branches apart.";
    BranchIssues = "branch-issues", "Branches sent to a port.";
    LoadIssues = "load-issues", "Loads sent to a port.";
    StoreIssues = "store-issues", "Addresses and data of stores sent to a port, and fences.";
    VectorIssues = "vector-issues", "Micro-ops of floating-point and vector work sent to a port.";
    X87 = "x87-instructions", "Instructions on the old floating-point stack.";

    TakenBranches = "taken-branches", "Branches committed that left the straight line.";
    BranchMisses = "branch-misses", "Branches that fetch followed the wrong way until they executed.";
    DirectionMisses = "direction-misses", "Conditional branches whose direction was mispredicted.";
    TargetMisses = "target-misses", "Indirect jumps and calls whose target was mispredicted.";
    ReturnMisses = "return-misses", "Returns whose target was mispredicted.";
    Resteers = "resteers", "Taken direct branches unknown to the target buffer, put right by the decoder.";
    L1iMisses = "l1i-misses", "Fetches of a line of code that missed the first-level cache.";
    L2CodeMisses = "l2-code-misses", "Fetches of code that also missed the second level.";
    L3CodeMisses = "l3-code-misses", "Fetches of code that came from memory.";
    ItlbMisses = "itlb-misses", "Fetches that missed the first-level instruction TLB.";
    ItlbWalks = "itlb-walks", "Fetches that walked the page tables.";
    UopCacheMisses = "uop-cache-misses", "Lines of code that had to be decoded again.";
    L1dLoadMisses = "l1d-load-misses", "Loads whose line was not in the first-level data cache.";
    L2LoadMisses = "l2-load-misses", "Loads whose line was not in the second level either.";
    L3LoadMisses = "l3-load-misses", "Loads whose line came from memory.";
    L1dJoins = "l1d-fill-hits", "Loads whose line was already on its way.";
    PrefetchHits = "prefetch-hits", "Loads whose line a prefetch had brought.";
    L1dStoreMisses = "l1d-store-misses", "Stores whose line was not in the first-level data cache.";
    L2StoreMisses = "l2-store-misses", "Stores whose line was not in the second level either.";
    L3StoreMisses = "l3-store-misses", "Stores whose line came from memory.";
    DtlbLoadMisses = "dtlb-load-misses", "Loads that missed the first-level data TLB.";
    DtlbLoadWalks = "dtlb-load-walks", "Loads that walked the page tables.";
    DtlbStoreMisses = "dtlb-store-misses", "Stores that missed the first-level data TLB.";
    DtlbStoreWalks = "dtlb-store-walks", "Stores that walked the page tables.";
    SplitLoads = "split-loads", "Loads that touched two lines.";
    SplitStores = "split-stores", "Stores that touched two lines.";
    Forwards = "store-forwards", "Loads served by an older store still in the queue.";
    Replays = "replays", "Loads sent to the cache again: across two lines, once a store that had part of them was written, or because they had overtaken a store.";
    BlockedForwards = "blocked-forwards", "Loads that overlapped an older store in part and waited for it.";
    HeldLoads = "held-loads", "Loads that were held back because an older store's address was not known; none on a core that knows whom its loads depend on.";
    OrderingRestarts = "ordering-restarts", "Loads that had overtaken a store whose data they needed, and were done again with all that followed; none on a core that knows whom its loads depend on.";

    Cycles = "cycles", "Core cycles.";
    ReferenceCycles = "reference-cycles", "Core cycles: the modelled clock never changes.";
    PipelineSlots = "slots", "Cycles times the width of dispatch.";
    RetireCycles = "retire-cycles", "Cycles in which at least one micro-op retired.";
    StallCycles = "stall-cycles", "Cycles in which nothing retired.";
    StallMispredict = "stall-mispredict-cycles", "Stalls while the window was empty after a mispredicted branch.";
    StallResteer = "stall-resteer-cycles", "Stalls while the window was empty after the decoder put fetch right.";
    StallCode = "stall-code-cycles", "Stalls while the window was empty and code came from beyond the first level.";
    StallCodeTlb = "stall-code-tlb-cycles", "Stalls while the window was empty and a fetch was translated.";
    StallFetch = "stall-fetch-cycles", "Stalls while the window was empty for another reason of the front end.";
    StallL1d = "stall-l1d-cycles", "Stalls on a load that hit the first-level cache.";
    StallL2 = "stall-l2-cycles", "Stalls on a load served by the second level, or by a line on its way from there.";
    StallL3 = "stall-l3-cycles", "Stalls on a load served by the third level, or by a line on its way from there.";
    StallMemory = "stall-memory-cycles", "Stalls on a load served by memory, or by a line on its way from there.";
    StallDataTlb = "stall-data-tlb-cycles", "Stalls on a load that hit its cache after a TLB miss.";
    StallForward = "stall-forward-cycles", "Stalls on a load that waited for an older store, or had overtaken one and was done again.";
    StallStore = "stall-store-cycles", "Stalls while the window was empty because the store queue was full.";
    StallInteger = "stall-integer-cycles", "Stalls on short integer work, branches included.";
    StallLongInteger = "stall-long-integer-cycles", "Stalls on integer multiplication and division.";
    StallFloat = "stall-float-cycles", "Stalls on floating-point and vector work.";
    StallOther = "stall-other-cycles", "Stalls on fences and microcode.";
    SsbMispredict = "ssb-mispredict-cycles", "As stall-mispredict-cycles, the whole stall charged to its last event.";
    SsbResteer = "ssb-resteer-cycles", "As stall-resteer-cycles, the whole stall charged to its last event.";
    SsbCode = "ssb-code-cycles", "As stall-code-cycles, the whole stall charged to its last event.";
    SsbCodeTlb = "ssb-code-tlb-cycles", "As stall-code-tlb-cycles, the whole stall charged to its last event.";
    SsbFetch = "ssb-fetch-cycles", "As stall-fetch-cycles, the whole stall charged to its last event.";
    SsbL1d = "ssb-l1d-cycles", "As stall-l1d-cycles, the whole stall charged to its last event.";
    SsbL2 = "ssb-l2-cycles", "As stall-l2-cycles, the whole stall charged to its last event.";
    SsbL3 = "ssb-l3-cycles", "As stall-l3-cycles, the whole stall charged to its last event.";
    SsbMemory = "ssb-memory-cycles", "As stall-memory-cycles, the whole stall charged to its last event.";
    SsbDataTlb = "ssb-data-tlb-cycles", "As stall-data-tlb-cycles, the whole stall charged to its last event.";
    SsbForward = "ssb-forward-cycles", "As stall-forward-cycles, the whole stall charged to its last event.";
    SsbStore = "ssb-store-cycles", "As stall-store-cycles, the whole stall charged to its last event.";
    SsbInteger = "ssb-integer-cycles", "As stall-integer-cycles, the whole stall charged to its last event.";
    SsbLongInteger = "ssb-long-integer-cycles", "As stall-long-integer-cycles, the whole stall charged to its last event.";
    SsbFloat = "ssb-float-cycles", "As stall-float-cycles, the whole stall charged to its last event.";
    SsbOther = "ssb-other-cycles", "As stall-other-cycles, the whole stall charged to its last event.";
    RobFull = "rob-full-cycles", "Cycles for which dispatch waited for the reorder buffer.";
    SchedulerFull = "scheduler-full-cycles", "Cycles for which dispatch waited for a scheduler.";
    LoadQueueFull = "load-queue-full-cycles", "Cycles for which dispatch waited for the load queue.";
    StoreQueueFull = "store-queue-full-cycles", "Cycles for which dispatch waited for the store queue.";
    L1dPending = "l1d-pending-cycles", "Cycles with at least one first-level data miss under way.";
    L2Data = "l2-data-requests", "Requests of the data side to the second level, prefetches of the first level apart.";
    L2Code = "l2-code-requests", "Requests of the code side to the second level.";
    L2Misses = "l2-misses", "Requests of either side that missed the second level, page walks included.";
    L3Requests = "l3-requests", "Requests to the third level, page walks included.";
    L3Misses = "l3-misses", "Requests that missed the third level.";
    PrefetchL1 = "l1d-prefetches", "Lines fetched into the first level on a guess.";
    PrefetchL2 = "l2-prefetches", "Lines fetched into the second level on a guess.";
    PrefetchUseful = "prefetches-useful", "Guessed lines that were asked for.";
    PrefetchUseless = "prefetches-useless", "Guessed lines that left unasked.";
    WritebacksL1 = "l1d-writebacks", "Dirty lines that left the first level.";
    WritebacksMemory = "memory-writebacks", "Dirty lines that left the last level.";
    EvictionsL1 = "l1d-evictions", "Lines that left the first-level data cache.";
    MissWait = "miss-wait-cycles", "Cycles in which a first-level miss waited for a register.";
    MemoryReads = "memory-reads", "Lines brought from memory, guesses included.";
}

/// How many events depend on the code alone.
pub const STATIC: usize = Event::X87 as usize + 1;
/// The first happening.
pub const HAPPENING_FIRST: usize = STATIC;
/// How many happenings there are.
pub const HAPPENINGS: usize = Event::OrderingRestarts as usize + 1 - HAPPENING_FIRST;

impl Event {
    /// How many there are.
    pub const COUNT: usize = Event::ALL.len();

    /// The event of a name.
    pub fn named(name: &str) -> Option<Event> {
        Event::ALL.iter().copied().find(|event| event.name() == name)
    }

    /// Whether it depends on the code alone.
    pub fn is_static(self) -> bool {
        (self as usize) < STATIC
    }

    /// Its place among the happenings, if it is one.
    #[inline]
    pub fn happening(self) -> Option<usize> {
        let place = (self as usize).wrapping_sub(HAPPENING_FIRST);
        (place < HAPPENINGS).then_some(place)
    }
}

/// A count for every event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counts(pub [u64; Event::COUNT]);

impl Default for Counts {
    fn default() -> Counts {
        Counts([0; Event::COUNT])
    }
}

impl std::ops::Index<Event> for Counts {
    type Output = u64;
    fn index(&self, event: Event) -> &u64 {
        &self.0[event as usize]
    }
}

impl std::ops::IndexMut<Event> for Counts {
    fn index_mut(&mut self, event: Event) -> &mut u64 {
        &mut self.0[event as usize]
    }
}

impl Counts {
    /// What was counted since an earlier reading.
    pub fn since(&self, earlier: &Counts) -> Counts {
        let mut delta = Counts::default();
        for (place, d) in delta.0.iter_mut().enumerate() {
            *d = self.0[place].wrapping_sub(earlier.0[place]);
        }
        delta
    }
}

/// The use of ports that a micro-op on one counts as, besides `issues`.
pub(crate) fn port_use(class: Class) -> Event {
    match class {
        Class::Branch | Class::FusedBranch => Event::BranchIssues,
        class if class.is_load() => Event::LoadIssues,
        class if class.is_store_data() => Event::StoreIssues,
        Class::StoreAddress | Class::Fence => Event::StoreIssues,
        class if class < Class::Branch => Event::IntegerIssues,
        Class::Microcode => Event::IntegerIssues,
        _ => Event::VectorIssues,
    }
}

/// What one run of an instruction counts, whatever it meets.
pub(crate) fn static_counts(instruction: &Instruction) -> [u8; STATIC] {
    let mut counts = [0_u8; STATIC];
    let mut add = |event: Event, count: usize| counts[event as usize] += count as u8;
    let of = |test: fn(Class) -> bool| instruction.uops.iter().filter(|u| test(u.class)).count();
    let uops = &instruction.uops;
    let traits = instruction.traits;
    add(Event::Instructions, 1);
    add(Event::Uops, uops.len());
    add(Event::Slots, uops.iter().map(|u| usize::from(u.slots)).sum());
    add(Event::Loads, of(Class::is_load));
    add(Event::Stores, of(|c| c == Class::StoreAddress));
    let flow = instruction.flow;
    add(Event::Branches, usize::from(flow.is_branch()));
    add(Event::ConditionalBranches, usize::from(flow == Flow::Conditional));
    add(Event::DirectJumps, usize::from(flow == Flow::Jump));
    add(Event::Calls, usize::from(matches!(flow, Flow::Call | Flow::IndirectCall)));
    add(Event::Returns, usize::from(flow == Flow::Return));
    let through = matches!(flow, Flow::IndirectCall | Flow::IndirectJump);
    add(Event::IndirectBranches, usize::from(through));
    add(Event::VectorInstructions, usize::from(traits.is_vector));
    add(Event::Flops, usize::from(traits.flops));
    add(Event::Multiplies, of(|c| c == Class::Mul));
    add(Event::Divides, of(|c| matches!(c, Class::Div32 | Class::Div64)));
    add(Event::FpAdds, of(|c| c == Class::FpAdd));
    add(Event::FpMultiplies, of(|c| c == Class::FpMul));
    add(Event::Fmas, of(|c| c == Class::Fma));
    let divides =
        |c| matches!(c, Class::FpDiv32 | Class::FpDiv64 | Class::FpSqrt32 | Class::FpSqrt64);
    add(Event::FpDivides, of(divides));
    add(Event::Shuffles, of(|c| c == Class::Shuffle));
    add(Event::Atomics, usize::from(traits.is_atomic));
    add(Event::Fences, of(|c| c == Class::Fence));
    add(Event::Microcoded, usize::from(of(|c| c == Class::Microcode) > 0));
    add(Event::Unknown, usize::from(traits.is_unknown));
    add(Event::FusedPairs, usize::from(traits.is_fused));
    add(Event::Eliminated, of(|c| c == Class::Nop));
    add(Event::X87, of(|c| c == Class::X87));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_name_of_its_own_and_is_found_by_it() {
        for &event in Event::ALL {
            assert_eq!(Event::named(event.name()), Some(event));
            assert!(event.about().ends_with('.'));
        }
        const { assert!(Event::COUNT >= 80) };
    }

    #[test]
    fn the_kinds_partition_the_events() {
        let happening = Event::ALL.iter().filter(|e| e.happening().is_some()).count();
        let fixed = Event::ALL.iter().filter(|e| e.is_static()).count();
        assert_eq!((fixed, happening), (STATIC, HAPPENINGS));
        assert_eq!(Event::TakenBranches.happening(), Some(0));
        assert_eq!(Event::Cycles.happening(), None);
    }
}
