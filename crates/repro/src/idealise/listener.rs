//! Windows at random places, on every machine from warm units.
//!
//! Machines that differ in their window alone have the same units, which are warmed once. Only some
//! instructions before each window are warmed: all that is compared begins from the same units, so
//! that what was forgotten before makes no difference between them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use model::machine::Machine;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;

use super::shotgun::Shots;
use super::times::{Event, Timed, Times, Units};
use super::{Answer, Question, Variant};
use crate::make::Rng;

/// Instructions before each window that are warmed.
const WARMED: u64 = 2_000_000;

/// Where windows begin, and what they showed. Shared by the threads of a program.
#[derive(Debug)]
pub(super) struct Places {
    question: Question,
    /// Where each begins, and whether it is compared.
    starts: Vec<(u64, bool)>,
    next: AtomicUsize,
    position: AtomicU64,
    windows: Mutex<Vec<Vec<Times>>>,
    shots: Option<Shots>,
}

impl Places {
    pub(super) fn new(question: Question, machine: Option<&Machine>) -> Places {
        let mut rng = Rng::new(question.seed);
        let room = question.instructions.saturating_sub(question.window_instructions).max(1);
        let more = question.shotgun.unwrap_or(0) * question.windows;
        // One in every stretch of the same length: drawn over the whole, few windows may leave a
        // third of the program unseen.
        let mut starts: Vec<(u64, bool)> = Vec::new();
        for (count, is_compared) in [(question.windows, true), (more, false)] {
            let stretch = (room / count.max(1) as u64).max(1);
            let start = |k: u64| (k * stretch + rng.below(stretch), is_compared);
            starts.extend((0..count as u64).map(start));
        }
        starts.sort_unstable();
        let shots = machine.filter(|_| question.shotgun.is_some());
        let shots = shots.map(|machine| Shots::new(machine, question.seed));
        Places {
            question,
            starts,
            next: AtomicUsize::new(0),
            position: AtomicU64::new(0),
            windows: Mutex::new(Vec::new()),
            shots,
        }
    }

    /// Whether a window begins here, and if so whether it is compared. One that falls into another
    /// begins after it.
    fn begins(&self) -> Option<bool> {
        let next = self.next.load(Relaxed);
        let &(start, is_compared) = self.starts.get(next)?;
        let is_due = self.position.load(Relaxed) >= start;
        if is_due {
            self.next.store(next + 1, Relaxed);
        }
        is_due.then_some(is_compared)
    }

    /// Whether the next window is near.
    fn is_near(&self) -> bool {
        let next = self.starts.get(self.next.load(Relaxed));
        next.is_some_and(|(start, _)| self.position.load(Relaxed) + WARMED >= *start)
    }

    /// Instructions of a window that begins.
    fn length(&self, is_compared: bool) -> u64 {
        match is_compared {
            true => self.question.window_instructions,
            false => self.question.window_instructions.min(self.question.detail_instructions),
        }
    }

    /// By variant, then by window.
    pub(super) fn answer(&self, machines: &[Arc<Machine>]) -> Answer {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |variant: usize| -> Vec<Times> {
            windows.iter().filter_map(|window| window.get(variant)).cloned().collect()
        };
        let shot = self.shots.as_ref().zip(machines.first());
        Answer {
            variants: (0..machines.len()).map(of).collect(),
            shot: shot.map(|(shots, machine)| shots.answer(machine)),
        }
    }
}

#[derive(Debug)]
struct Open {
    is_compared: bool,
    starts: Vec<Units>,
    /// Blocks of the window are numbered as they first run in it.
    numbers: HashMap<u32, BlockId>,
    blocks: Vec<StaticBlock>,
    events: Vec<Event>,
    left: u64,
}

/// The listener of one thread. Between windows it only warms.
#[derive(Debug)]
pub struct Listener {
    places: Arc<Places>,
    machines: Vec<Arc<Machine>>,
    blocks: Vec<StaticBlock>,
    warmers: Vec<Warmer>,
    /// Which warmer each machine starts from.
    warmer_of: Vec<usize>,
    is_warming: bool,
    open: Option<Box<Open>>,
}

/// For each variant, the place of the first that has the same units.
fn same_units(variants: &[Variant]) -> Vec<usize> {
    let first = |variant: &Variant| variants.iter().position(|other| other.has_units_of(variant));
    variants.iter().map(|variant| first(variant).unwrap_or(0)).collect()
}

impl Listener {
    pub(super) fn new(machines: &[Arc<Machine>], places: Arc<Places>) -> Listener {
        let firsts = same_units(&places.question.variants);
        let mut known = firsts.clone();
        known.sort_unstable();
        known.dedup();
        let warmers = known.iter().filter_map(|&place| machines.get(place));
        Listener {
            machines: machines.to_vec(),
            blocks: Vec::new(),
            warmers: warmers.map(|machine| Warmer::new(machine)).collect(),
            warmer_of: firsts.iter().map(|first| known.partition_point(|k| k < first)).collect(),
            is_warming: true,
            open: None,
            places,
        }
    }

    /// Keeps the units warm where a window is near.
    fn warm(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let is_near = self.places.is_near();
        if is_near {
            self.warmers.iter_mut().for_each(|warmer| warmer.executed(id, ran, accesses));
        } else if self.is_warming {
            // What comes next is no consequence of the branch before it.
            self.warmers.iter_mut().for_each(CoreListener::interrupted);
        }
        self.is_warming = is_near;
    }

    fn hear(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(open) = &mut self.open else { return };
        let Some(block) = self.blocks.get(id.0 as usize) else { return };
        let next = BlockId(open.blocks.len() as u32);
        let number = *open.numbers.entry(id.0).or_insert(next);
        if number == next {
            open.blocks.push(block.clone());
        }
        open.events.push((number, ran, accesses.to_vec()));
        open.left = open.left.saturating_sub(u64::from(ran));
        if open.left == 0
            && let Some(open) = self.open.take()
        {
            self.end(&open);
        }
    }

    fn end(&self, open: &Open) {
        let question = &self.places.question;
        let first = self.machines.first().zip(open.starts.first());
        if let Some((shots, (machine, start))) = self.places.shots.as_ref().zip(first) {
            let timed = Timed { machine, start, blocks: &open.blocks, events: &open.events };
            shots.take(&timed, open.is_compared);
        }
        if !open.is_compared {
            return;
        }
        let times = |(machine, &warmer): (&Arc<Machine>, &usize)| {
            let start = open.starts.get(warmer)?;
            let timed = Timed { machine, start, blocks: &open.blocks, events: &open.events };
            Some(timed.times(question.most, question.really))
        };
        let times = self.machines.iter().zip(&self.warmer_of).filter_map(times).collect();
        self.places.windows.lock().unwrap_or_else(PoisonError::into_inner).push(times);
    }
}

impl CoreListener for Listener {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        // Ids arrive in order, so that a block's place is its number.
        self.blocks.push(block.clone());
        self.warmers.iter_mut().for_each(|warmer| warmer.translated(id, block));
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.open.is_none()
            && let Some(is_compared) = self.places.begins()
        {
            let units = |warmer: &Warmer| warmer.clone().into_units();
            self.open = Some(Box::new(Open {
                is_compared,
                starts: self.warmers.iter().map(units).collect(),
                numbers: HashMap::new(),
                blocks: Vec::new(),
                events: Vec::new(),
                left: self.places.length(is_compared),
            }));
        }
        self.hear(id, ran, accesses);
        self.warm(id, ran, accesses);
        self.places.position.fetch_add(u64::from(ran), Relaxed);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        if self.is_warming {
            self.warmers.iter_mut().for_each(|warmer| warmer.continued(id, accesses));
        }
    }

    fn interrupted(&mut self) {
        self.warmers.iter_mut().for_each(CoreListener::interrupted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_that_differ_in_their_window_alone_share_units() {
        let variants = [
            Variant::table_6(&[("window.rob", 64), ("caches.l1d.latency_cycles", 1)]),
            Variant::table_6(&[("caches.l1d.latency_cycles", 1), ("window.rob", 128)]),
            Variant::table_6(&[("window.wakeup_cycles", 2)]),
            Variant::table_6(&[("caches.l1d.latency_cycles", 4)]),
            Variant { machine: "zen4".to_owned(), facts: Vec::new() },
            Variant::table_6(&[]),
        ];
        assert_eq!(same_units(&variants), [0, 0, 2, 3, 4, 2]);
    }
}
