//! Windows at random places, on every machine from its own warm units.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use model::machine::Machine;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;

use super::shotgun::Shots;
use super::times::{Event, Timed, Times};
use super::{Answer, Question};
use crate::make::Rng;

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
    starts: Vec<Warmer>,
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
    open: Option<Box<Open>>,
}

impl Listener {
    pub(super) fn new(machines: &[Arc<Machine>], places: Arc<Places>) -> Listener {
        let warmers = machines.iter().map(|machine| Warmer::new(machine)).collect();
        Listener { places, machines: machines.to_vec(), blocks: Vec::new(), warmers, open: None }
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
        let times = |(machine, start): (&Arc<Machine>, &Warmer)| {
            let timed = Timed { machine, start, blocks: &open.blocks, events: &open.events };
            timed.times(question.most, question.really)
        };
        let times = self.machines.iter().zip(&open.starts).map(times).collect();
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
            self.open = Some(Box::new(Open {
                is_compared,
                starts: self.warmers.clone(),
                numbers: HashMap::new(),
                blocks: Vec::new(),
                events: Vec::new(),
                left: self.places.question.window_instructions,
            }));
        }
        self.hear(id, ran, accesses);
        self.warmers.iter_mut().for_each(|warmer| warmer.executed(id, ran, accesses));
        self.places.position.fetch_add(u64::from(ran), Relaxed);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.warmers.iter_mut().for_each(|warmer| warmer.continued(id, accesses));
    }

    fn interrupted(&mut self) {
        self.warmers.iter_mut().for_each(CoreListener::interrupted);
    }
}
