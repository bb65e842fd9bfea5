//! Windows at random places, timed by both cores from the same warm units.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use model::core::Settings;
use model::event::Counts;
use model::fast::FastCore;
use model::machine::Machine;
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;

use super::{Compared, WINDOW_INSTRUCTIONS};
use crate::make::Rng;

/// Where windows begin, and what they showed. Shared by the threads of a program.
#[derive(Debug)]
pub struct Places {
    starts: Vec<u64>,
    next: AtomicUsize,
    position: AtomicU64,
    windows: Mutex<Vec<Compared>>,
}

impl Places {
    /// `count` places drawn evenly from a run of `instructions`.
    pub fn new(seed: u64, count: usize, instructions: u64) -> Places {
        let mut rng = Rng::new(seed);
        let room = instructions.saturating_sub(WINDOW_INSTRUCTIONS).max(1);
        let mut starts: Vec<u64> = (0..count).map(|_| rng.below(room)).collect();
        starts.sort_unstable();
        Places {
            starts,
            next: AtomicUsize::new(0),
            position: AtomicU64::new(0),
            windows: Mutex::new(Vec::new()),
        }
    }

    /// The windows so far.
    pub fn windows(&self) -> Vec<Compared> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, window: Compared) {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner).push(window);
    }

    /// Whether a window begins here. One that falls into another begins after it.
    fn begins(&self) -> bool {
        let next = self.next.load(Relaxed);
        let due = self.starts.get(next).is_some_and(|start| self.position.load(Relaxed) >= *start);
        if due {
            self.next.store(next + 1, Relaxed);
        }
        due
    }
}

/// Both cores in a window.
#[derive(Debug)]
struct Pair {
    fast: FastCore,
    reference: ReferenceCore,
    /// What the warm units had counted before.
    before: (Counts, Counts),
    left: u64,
}

/// The listener that compares. Between windows it only warms.
#[derive(Debug)]
pub struct Comparer {
    machine: Arc<Machine>,
    places: Arc<Places>,
    blocks: Vec<StaticBlock>,
    warmer: Warmer,
    open: Option<Box<Pair>>,
}

impl Comparer {
    /// Cold units.
    pub fn new(machine: Arc<Machine>, places: Arc<Places>) -> Comparer {
        let warmer = Warmer::new(&machine);
        Comparer { machine, places, blocks: Vec::new(), warmer, open: None }
    }

    /// Both cores begin with the warmed units and nothing in flight, so that neither is ahead.
    fn begin(&mut self) {
        let units = || self.warmer.clone().into_units();
        let ((memory, predictor), (memory_too, predictor_too)) = (units(), units());
        let settings = Settings::default();
        let mut fast = FastCore::new(&self.machine, settings).with_units(memory, predictor);
        let mut reference =
            ReferenceCore::new(&self.machine, settings).with_units(memory_too, predictor_too);
        for (place, block) in self.blocks.iter().enumerate() {
            fast.translated(BlockId(place as u32), block);
            reference.translated(BlockId(place as u32), block);
        }
        let before = (fast.counts(), reference.counts());
        self.open = Some(Box::new(Pair { fast, reference, before, left: WINDOW_INSTRUCTIONS }));
    }

    fn end(&mut self, mut pair: Box<Pair>) {
        pair.fast.finish();
        pair.reference.finish();
        let fast = pair.fast.counts().since(&pair.before.0);
        let reference = pair.reference.counts().since(&pair.before.1);
        self.places.push(Compared::new(&fast, &reference));
    }
}

impl CoreListener for Comparer {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        // Ids arrive in order, so that a block's place is its number.
        self.blocks.push(block.clone());
        self.warmer.translated(id, block);
        if let Some(pair) = &mut self.open {
            pair.fast.translated(id, block);
            pair.reference.translated(id, block);
        }
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.open.is_none() && self.places.begins() {
            self.begin();
        }
        if let Some(mut pair) = self.open.take() {
            pair.fast.executed(id, ran, accesses);
            pair.reference.executed(id, ran, accesses);
            pair.left = pair.left.saturating_sub(u64::from(ran));
            if pair.left == 0 {
                self.end(pair);
            } else {
                self.open = Some(pair);
            }
        }
        self.warmer.executed(id, ran, accesses);
        self.places.position.fetch_add(u64::from(ran), Relaxed);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        if let Some(pair) = &mut self.open {
            pair.fast.continued(id, accesses);
            pair.reference.continued(id, accesses);
        }
        self.warmer.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        if let Some(pair) = &mut self.open {
            pair.fast.interrupted();
            pair.reference.interrupted();
        }
        self.warmer.interrupted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_seed_and_each_is_taken_once() {
        let places = Places::new(3, 40, 10_000_000);
        assert_eq!(places.starts, Places::new(3, 40, 10_000_000).starts);
        assert_ne!(places.starts, Places::new(4, 40, 10_000_000).starts);
        assert!(places.starts.iter().all(|start| *start < 9_900_000));
        assert!(!places.begins());
        places.position.store(10_000_000, Relaxed);
        assert_eq!((0..100).filter(|_| places.begins()).count(), 40);
    }
}
