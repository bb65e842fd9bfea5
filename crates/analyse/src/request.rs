//! What is asked of the analysis: one procedure, and what was sampled of it.

use std::collections::BTreeMap;

use image::{Binary, CodePart, FlowGraph};
use model::machine::Machine;
use vocab::{Count, EventId, ImageId, Profile};

use crate::edge_samples::EdgeSamples;

/// What a set of samples counts, as far as the analysis tells events apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Sampled {
    /// Core cycles: where time goes.
    Cycles,
    /// Time by the processor's clock, in nanoseconds: where time goes.
    CpuClock,
    /// Instructions that retired: how often they ran.
    Instructions,
    /// Branches that left the straight line.
    TakenBranches,
    /// Misses of the first-level instruction cache.
    CodeMisses,
    /// Misses of the instruction TLB.
    CodeTlbMisses,
    /// Loads that missed the first-level data cache.
    DataMisses,
    /// Loads that hit it where their line was still on its way.
    DataJoins,
    /// Loads that missed the data TLB.
    DataTlbMisses,
    /// Mispredicted branches.
    Mispredicts,
}

impl Sampled {
    /// By the name of an event, as perf or the modelled core spells it; None where the analysis
    /// has no use for it.
    pub fn named(name: &str) -> Option<Sampled> {
        let plain = name.split(':').next().unwrap_or(name);
        match plain {
            "cycles" | "cpu-cycles" => Some(Sampled::Cycles),
            "cpu-clock" | "task-clock" => Some(Sampled::CpuClock),
            "instructions" => Some(Sampled::Instructions),
            "taken-branches" => Some(Sampled::TakenBranches),
            "imiss" | "l1i-misses" | "L1-icache-load-misses" => Some(Sampled::CodeMisses),
            "itlb-misses" | "iTLB-load-misses" => Some(Sampled::CodeTlbMisses),
            "dmiss" | "l1d-load-misses" | "L1-dcache-load-misses" | "mem_load_retired.l1_miss" => {
                Some(Sampled::DataMisses)
            }
            "l1d-fill-hits" | "mem_load_retired.fb_hit" => Some(Sampled::DataJoins),
            "dtlb-load-misses" | "dTLB-load-misses" => Some(Sampled::DataTlbMisses),
            "branch-misses" => Some(Sampled::Mispredicts),
            _ => None,
        }
    }

    /// Whether it says where time went.
    pub fn is_time(self) -> bool {
        matches!(self, Sampled::Cycles | Sampled::CpuClock)
    }
}

/// Samples of one event.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples {
    /// The event.
    pub event: Sampled,
    /// How many of it a sample stands for, on average; of cpu-clock in nanoseconds.
    pub period: f64,
    /// Whether a sample names the instruction that did it. Otherwise it names one that retired a
    /// little later, which is as good for time and useless for counting.
    pub is_precise: bool,
    /// Samples by virtual address of the image; addresses of other procedures are passed over.
    pub at: BTreeMap<u64, u64>,
}

impl Samples {
    /// Those of one event and image of a profile; `event` is what [`Sampled::named`] makes of it.
    pub fn of_profile(
        profile: &Profile,
        (image, binary): (ImageId, &Binary),
        (id, event): (EventId, Sampled),
        period: f64,
    ) -> Samples {
        let mine = profile.counts.iter().filter(|(s, _)| s.image == image && s.event == id);
        let placed = |(spot, count): (&vocab::Spot, &Count)| {
            Some((binary.address_of(spot.offset)?, count.0))
        };
        Samples { event, period, is_precise: false, at: mine.filter_map(placed).collect() }
    }
}

/// How often a branch was seen going one way, such as in branch stacks.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BranchSeen {
    /// The virtual address of the branch.
    pub from: u64,
    /// Where it went.
    pub to: u64,
    /// How often it was seen.
    pub count: u64,
}

/// Branches that were seen being taken.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Branches {
    /// How many taken branches one seen stands for: the period over the branches a stack holds.
    pub period: f64,
    /// The branches.
    pub seen: Vec<BranchSeen>,
}

/// One procedure to be examined.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Its flow; see `image::Callees::flow_and_parts_of`.
    pub graph: &'a FlowGraph,
    /// The code that the flow was read from.
    pub parts: &'a [CodePart<'a>],
    /// The core that it ran on.
    pub machine: &'a Machine,
    /// What was sampled.
    pub samples: &'a [Samples],
    /// Branches that were seen.
    pub branches: Option<&'a Branches>,
    /// Samples that tell where control went.
    pub edge_samples: Option<&'a EdgeSamples>,
    /// How often each instruction ran, by virtual address, where that is known exactly: then no
    /// frequency is estimated.
    pub exact: Option<&'a BTreeMap<u64, u64>>,
    /// Samples of time in the whole profile, for the share that this procedure makes.
    pub all_samples: u64,
}

impl<'a> Request<'a> {
    /// The samples of an event.
    pub fn of(&self, event: Sampled) -> Option<&'a Samples> {
        self.samples.iter().find(|samples| samples.event == event)
    }

    /// The samples that say where time went, and the cycles that one stands for.
    pub fn time(&self) -> Option<(&'a Samples, f64)> {
        let samples = self.of(Sampled::Cycles).or_else(|| self.of(Sampled::CpuClock))?;
        let cycles = match samples.event {
            Sampled::CpuClock => {
                samples.period * f64::from(self.machine.identity.clock_mhz) / 1000.0
            }
            _ => samples.period,
        };
        Some((samples, cycles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_known_by_the_names_of_perf_and_of_the_modelled_core() {
        assert_eq!(Sampled::named("cycles:u"), Some(Sampled::Cycles));
        assert_eq!(Sampled::named("l1i-misses"), Sampled::named("imiss"));
        assert_eq!(Sampled::named("context-switches"), None);
        assert_eq!(Sampled::named("mem_load_retired.fb_hit:p"), Some(Sampled::DataJoins));
        let names = ["cycles", "l1i-misses", "l1d-load-misses", "l1d-fill-hits", "branch-misses"];
        for name in names.into_iter().chain(["instructions"]) {
            assert!(model::event::Event::named(name).is_some(), "{name} is the core's");
        }
    }
}
