//! Costs with their uncertainty: every set's time in every window.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use metrology::{Estimate, Joint, propagate};

use crate::sample::Window;
use crate::{Arbitration, Categories, Fixed, Lanes, Lattice, Player};

/// Lanes that are evaluated at once where few are asked for, and where many are.
const FEW: usize = 48;
const MANY: usize = 256;

/// The times of some sets in each window.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    windows: Vec<Lattice>,
    whole: Lattice,
    /// What the windows really took, in cycles.
    pub observed: f64,
}

impl Costs {
    /// Evaluates sets of players on windows. The empty set is added: costs are told from it.
    pub fn of(
        fixed: Fixed,
        windows: &[Window],
        players: &[Player],
        sets: &[Categories],
        arbitration: Arbitration,
    ) -> Costs {
        let times = |window: &Window| {
            let evaluate = if sets.len() < FEW { times_of::<FEW> } else { times_of::<MANY> };
            evaluate(fixed, window, players, sets, arbitration)
        };
        let observed = windows.iter().map(|window| window.cycles as f64).sum();
        Costs::from_windows(on_every_processor(windows, times), observed)
    }

    /// From the times of every set in every window.
    pub fn from_windows(windows: Vec<Vec<(Categories, f64)>>, observed: f64) -> Costs {
        let sets: Vec<Categories> =
            windows.first().map_or(Vec::new(), |times| times.iter().map(|time| time.0).collect());
        let sum = |place: usize| {
            windows.iter().filter_map(|times| times.get(place)).map(|time| time.1).sum::<f64>()
        };
        let whole = Lattice::new(sets.iter().enumerate().map(|(place, &set)| (set, sum(place))));
        Costs { windows: windows.into_iter().map(Lattice::new).collect(), whole, observed }
    }

    /// All windows together.
    pub fn whole(&self) -> &Lattice {
        &self.whole
    }

    /// Cycles of all windows as the graph has them.
    pub fn cycles(&self) -> f64 {
        self.whole.time(Categories::NONE).unwrap_or(0.0)
    }

    /// What some cycles of a window are as a share of all time, with what the choice of windows
    /// leaves open; none if a set was not evaluated.
    pub fn share(&self, cycles: impl Fn(&Lattice) -> Option<f64>) -> Option<Estimate> {
        let value = cycles(&self.whole)? / self.cycles().max(1.0);
        let parts: Vec<f64> = self.windows.iter().map(&cycles).collect::<Option<_>>()?;
        let times = self.windows.iter().map(|window| window.time(Categories::NONE));
        let times: Vec<f64> = times.collect::<Option<_>>()?;
        let Ok(joint) = Joint::of(&[&parts, &times]) else {
            // One window says nothing about another.
            return Some(Estimate::known(value, f64::INFINITY));
        };
        let ratio = |x: &[f64]| x.first().zip(x.get(1)).map_or(f64::NAN, |(part, all)| part / all);
        propagate(&[joint], ratio)
    }

    /// What idealising a set saves.
    pub fn cost(&self, set: Categories) -> Option<Estimate> {
        self.share(|window| window.cost(set))
    }

    /// What idealising a set saves beyond what its smaller parts explain.
    pub fn icost(&self, set: Categories) -> Option<Estimate> {
        self.share(|window| window.icost(set))
    }

    /// The time left with a set idealised.
    pub fn left(&self, set: Categories) -> Option<Estimate> {
        self.share(|window| window.time(set))
    }
}

/// Windows do not depend on each other: every processor takes the next one that is left.
fn on_every_processor<T: Send>(windows: &[Window], f: impl Fn(&Window) -> T + Sync) -> Vec<T> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let done = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let place = next.fetch_add(1, Relaxed);
            let Some(window) = windows.get(place) else { return };
            let answer = f(window);
            done.lock().unwrap_or_else(PoisonError::into_inner).insert(place, answer);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..processors.min(windows.len()) {
            scope.spawn(work);
        }
        work();
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

fn times_of<const L: usize>(
    fixed: Fixed,
    window: &Window,
    players: &[Player],
    sets: &[Categories],
    arbitration: Arbitration,
) -> Vec<(Categories, f64)> {
    let mut times = Vec::with_capacity(sets.len() + 1);
    let mut sets = sets;
    let mut with_none = vec![Categories::NONE];
    with_none.extend(sets.iter().copied().filter(|set| !set.is_empty()));
    sets = &with_none;
    for some in sets.chunks(L) {
        let mut lanes: Lanes<L> = Lanes::of_players(fixed, players, some, arbitration);
        window.steps.iter().for_each(|step| lanes.step(step));
        times.extend(lanes.times());
    }
    times
}
