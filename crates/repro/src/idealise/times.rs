//! The times of one window on one machine.

use std::collections::BTreeMap;

use icost::sample::{Keeper, Window};
use icost::{Arbitration, Categories, Category, Costs, Fixed, Lattice, Player, subsets_up_to};
use model::core::{Life, Settings, Silent, Watcher};
use model::machine::Machine;
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::units::branch::Predictor;
use model::units::memory::Memory;
use serde::{Deserialize, Serialize};

/// One set's cycles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SetTimes {
    /// The set of categories, as bits.
    pub set: u16,
    /// On the graph.
    pub graph: f64,
    /// On a core that is really idealised, where that was asked.
    pub really: Option<f64>,
}

/// A window on a machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Times {
    /// Cycles of the core as it is.
    pub cycles: f64,
    /// Every set that was asked for, the empty one first.
    pub sets: Vec<SetTimes>,
}

/// Sums over windows, by set: on the graph, and really.
pub fn by_set<'a>(windows: impl IntoIterator<Item = &'a Times>) -> (Lattice, Lattice) {
    let mut sums: BTreeMap<u16, (f64, f64)> = BTreeMap::new();
    for times in windows.into_iter().flat_map(|window| &window.sets) {
        let sum = sums.entry(times.set).or_default();
        sum.0 += times.graph;
        sum.1 += times.really.unwrap_or(f64::NAN);
    }
    let lattice = |of: fn(&(f64, f64)) -> f64| {
        Lattice::new(sums.iter().map(|(&set, sum)| (Categories(set), of(sum))))
    };
    (lattice(|sum| sum.0), lattice(|sum| sum.1))
}

/// What ran in a window: a block, how much of it, and what it touched.
pub(super) type Event = (BlockId, u16, Vec<Access>);

/// What a core starts from.
pub(super) type Units = (Memory, Predictor);

/// When a window began and ended, and nothing else: an idealised core needs no labels.
#[derive(Default)]
struct Ends {
    first: Option<u64>,
    last: u64,
}

impl Watcher for Ends {
    fn lived(&mut self, life: &Life) {
        self.first.get_or_insert(life.dispatched);
        self.last = life.committed;
    }
}

/// A window to be timed.
pub(super) struct Timed<'a> {
    pub(super) machine: &'a Machine,
    pub(super) start: &'a Units,
    pub(super) blocks: &'a [StaticBlock],
    pub(super) events: &'a [Event],
}

impl Timed<'_> {
    /// Times it with every set of at most so many categories.
    pub(super) fn times(&self, most: u32, really: bool) -> Times {
        if most == 0 {
            let mut core = self.run(Settings::default(), Silent);
            core.finish();
            return Times { cycles: core.cycles() as f64, sets: Vec::new() };
        }
        let fixed = Fixed::of(self.machine);
        let mut core = self.run(Settings::default(), Keeper::new(fixed));
        let window: [Window; 1] = [core.watcher_mut().take()];
        let cycles = window[0].cycles as f64;
        let players: Vec<Player> = Category::ALL.iter().copied().map(Player::category).collect();
        let sets = subsets_up_to(most);
        let costs = Costs::of(fixed, &window, &players, &sets, Arbitration::Anew);
        let time = |&set: &Categories| SetTimes {
            set: set.0,
            graph: costs.whole().time(set).unwrap_or(f64::NAN),
            really: really.then(|| self.really(set)),
        };
        Times { cycles, sets: sets.iter().map(time).collect() }
    }

    fn really(&self, set: Categories) -> f64 {
        let settings = Settings { ideal: set.ideal(), ..Settings::default() };
        let core = self.run(settings, Ends::default());
        let ends = core.watcher();
        (ends.last - ends.first.unwrap_or(0)) as f64
    }

    /// The reference core, when all of it has retired.
    pub(super) fn run<W: Watcher>(&self, settings: Settings, watcher: W) -> ReferenceCore<W> {
        let (memory, predictor) = self.start.clone();
        let core = ReferenceCore::watched(self.machine, settings, watcher);
        let mut core = core.with_units(memory, predictor);
        for (k, block) in self.blocks.iter().enumerate() {
            core.translated(BlockId(k as u32), block);
        }
        for (id, ran, accesses) in self.events {
            core.executed(*id, *ran, accesses);
        }
        core.finish();
        core
    }
}
