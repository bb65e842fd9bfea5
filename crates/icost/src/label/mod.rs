//! From the lives of micro-ops to labelled edges.
//!
//! A label is what the machine's numbers say, bounded by what was observed, and whatever the edges
//! of a node do not explain is added to one of them. The longest path therefore *is* the observed
//! time; what is approximate is how labels answer to idealisation.
//!
//! An edge that bound nobody as observed still stands where it could bind after idealisation: a
//! load that found its line there would have waited for it had it come earlier.

mod fetch;

use std::collections::VecDeque;

use model::core::{Life, NOBODY};
use model::machine::Class;
use model::units::Level;
use model::units::misses::SPELL_CYCLES;
use model::uop::Flow;

use crate::Kind;
use crate::fixed::Fixed;
use crate::history::{History, IDEAL_WINDOW, Latest, Past, Reach, SPAN};
use crate::step::{DispatchWait, Step, Wait, Walk};

/// Stores and loads meet by words of eight bytes.
const WORD_SHIFT: u32 = 3;
/// Words that one access may touch.
const WORDS_MAX: u64 = 9;

/// Labels the edges of one micro-op after the other.
#[derive(Clone, Debug)]
pub struct Labeller {
    fixed: Fixed,
    past: History,
    /// How many micro-ops before the next one each width, queue and window reaches.
    fetch: Reach,
    queue: Reach,
    ideal_queue: Reach,
    dispatch: Reach,
    window: Reach,
    ideal_window: Reach,
    loads: Reach,
    retire: Reach,
    /// The last micro-op, if it was a branch that the next instruction has to do with.
    branch: Option<Branch>,
    /// The latest taken branches.
    taken: VecDeque<u64>,
    is_first: bool,
    /// The micro-op that brings each line, and how long after its completion the line is there.
    lines: Latest<(u64, u64)>,
    /// The latest misses, as in `lines`: as many as may be under way.
    misses: VecDeque<(u64, u64)>,
    /// When the first was dispatched.
    origin: u64,
    /// When each page walker is free, the soonest first.
    walkers: VecDeque<u64>,
    /// The micro-op that brought the data last written to each word.
    words: Latest<u64>,
    /// When the latest stores were written, by the graph's own rule.
    written: VecDeque<u64>,
    /// Of the store whose data comes next: when its address issued, and the cycles of its line.
    store: (u64, u32),
    /// The store whose address was known last of all so far, and when.
    addressed: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Branch {
    sequence: u64,
    flow: Flow,
    mispredicted: bool,
    resteered: bool,
    taken: bool,
}

impl Labeller {
    /// For a machine's numbers.
    pub fn new(fixed: Fixed) -> Labeller {
        Labeller {
            fixed,
            past: History::new(),
            fetch: Reach::slots(fixed.fetch_width),
            queue: Reach::slots(fixed.queue),
            ideal_queue: Reach::slots(IDEAL_WINDOW * fixed.queue),
            dispatch: Reach::slots(fixed.dispatch_width),
            window: Reach::slots(fixed.window),
            ideal_window: Reach::slots(IDEAL_WINDOW * fixed.window),
            loads: Reach::loads(fixed.load_queue),
            retire: Reach::slots(fixed.retire_width),
            branch: None,
            taken: VecDeque::new(),
            is_first: true,
            lines: Latest::new(),
            misses: VecDeque::new(),
            origin: 0,
            walkers: VecDeque::from(vec![0; fixed.walkers as usize]),
            words: Latest::new(),
            written: VecDeque::new(),
            store: (0, 0),
            addressed: (NOBODY, 0),
        }
    }

    /// The numbers.
    pub fn fixed(&self) -> Fixed {
        self.fixed
    }

    /// The edges of the next micro-op.
    pub fn label(&mut self, life: &Life) -> Step {
        let mut step = Step {
            instruction: life.instruction,
            queue: Some(0),
            ports: self.fixed.ports[life.class as usize & 63],
            ..Step::default()
        };
        if let Some(&last) = self.past.before(1) {
            if self.is_first {
                self.label_fetch(life, &last, &mut step);
            }
            self.label_dispatch(life, &last, &mut step);
        } else {
            self.origin = life.dispatched;
        }
        self.label_readiness(life, &mut step);
        self.label_work(life, &mut step);
        self.label_commit(life, &mut step);
        self.remember(life, &mut step);
        step
    }

    fn arrived(&self, life: &Life) -> u64 {
        life.fetched + u64::from(self.fixed.front)
    }

    fn label_dispatch(&mut self, life: &Life, last: &Past, step: &mut Step) {
        let mut known = last.dispatched.max(self.arrived(life));
        if life.slots > 0 {
            step.width = self.dispatch.beside(life.slots, &self.past);
            step.window = self.window.full(&self.past);
            step.ideal_window = self.ideal_window.full(&self.past);
        }
        if life.class.is_load() {
            step.load_room = self.loads.full(&self.past);
        }
        let committed = |distance| self.past.before(distance).map_or(0, |past| past.committed);
        let width = self.past.before(step.width).map_or(0, |past| past.dispatched + 1);
        let (window, load_room) = (committed(step.window), committed(step.load_room));
        for (edge, there) in
            [(&mut step.width, width), (&mut step.window, window), (&mut step.load_room, load_room)]
        {
            if there > life.dispatched {
                *edge = 0;
            } else {
                known = known.max(there);
            }
        }
        if life.class == Class::StoreAddress {
            let room = self.fixed.store_queue as usize;
            let place = self.written.len().checked_sub(room);
            let there = place.and_then(|place| self.written.get(place)).copied().unwrap_or(0);
            step.takes_store = there <= life.dispatched;
            if step.takes_store {
                known = known.max(there);
            }
        }
        if life.dispatched > known {
            self.explain_dispatch(life, step, (life.dispatched - last.dispatched) as u32);
        }
    }

    /// Dispatch came later than any edge says: a full scheduler or queue.
    fn explain_dispatch(&self, life: &Life, step: &mut Step, gap: u32) {
        let freed = |past: &Past| {
            if past.issued == life.dispatched {
                Some(Wait::Issue)
            } else if past.committed == life.dispatched {
                Some(Wait::Commit)
            } else {
                None
            }
        };
        // The oldest that left then: what is younger left early.
        let mut in_window = (1..=2 * self.fixed.window).rev();
        let found = in_window.find_map(|k| Some((k, freed(self.past.before(k)?)?)));
        match found {
            Some((distance, from)) => {
                step.wait = Some(DispatchWait { from, distance, label: 0 });
            }
            None => step.stuck = gap,
        }
    }

    fn label_readiness(&mut self, life: &Life, step: &mut Step) {
        let mut ready = life.dispatched + u64::from(self.fixed.to_issue);
        for (edge, &producer) in step.producers.iter_mut().zip(&life.producers) {
            let distance = if producer == NOBODY { 0 } else { self.past.distance(producer) };
            let Some(past) = self.past.before(distance) else { continue };
            let there = past.completed + u64::from(self.fixed.wakeup);
            if there <= life.issued {
                *edge = distance;
                ready = ready.max(there);
            }
        }
        if life.class.is_load() && life.ready > ready {
            ready = ready.max(self.label_hold(life, step));
        }
        step.contention = life.issued.saturating_sub(ready) as u32;
    }

    /// The store for whose address a load was held back though its operands were there; when that
    /// was known. Which of them it had to wait for it could not tell, so it is the last.
    fn label_hold(&self, life: &Life, step: &mut Step) -> u64 {
        let (store, known) = self.addressed;
        let there = known + u64::from(self.fixed.wakeup);
        if store == NOBODY || there > life.ready {
            return 0;
        }
        step.data = self.past.distance(store);
        there
    }

    fn label_work(&mut self, life: &Life, step: &mut Step) {
        let total = life.completed.saturating_sub(life.issued) as u32;
        if life.class.is_load() {
            self.label_load(life, step, total);
        } else if life.class.is_store_data() || life.class == Class::StoreAddress {
            step.fixed = total;
        } else if total <= 1 && life.class < Class::VecStoreData {
            step.short = total;
        } else {
            step.long = total;
        }
    }

    fn label_load(&mut self, life: &Life, step: &mut Step, total: u32) {
        step.hit = self.fixed.hit.min(total);
        if self.label_forward(life, step) {
            return;
        }
        let own = life.miss_cycles.min(total - step.hit);
        step.fixed = total - step.hit - own;
        step.translation = life.translation_cycles.min(own);
        step.miss = own - step.translation;
        step.walk = self.label_walk(life, true);
        if step.walk.is_some() {
            step.translation = 0;
        }
        step.level = match life.level {
            Level::L1 => Kind::Line,
            Level::L2 => Kind::L2,
            Level::L3 => Kind::L3,
            Level::Memory => Kind::Memory,
        };
        let Some(line) = life.address.map(|address| address >> self.fixed.line_shift) else {
            return;
        };
        if let Some((first, after)) = self.lines.get(line) {
            let distance = self.past.distance(first);
            let there = self.past.before(distance).map_or(u64::MAX, |past| past.completed + after);
            let is_shared = own == 0 || there > life.issued;
            if is_shared && there <= life.completed {
                let rest = if own == 0 { 0 } else { life.completed - there };
                step.line = (distance, (after + rest) as u32);
                if own > 0 {
                    // It waits for the other's line alone.
                    (step.miss, step.translation) = (0, 0);
                }
                return;
            }
        }
        if own > 0 {
            self.label_room(life, step);
            self.lines.put(line, (life.sequence, 0));
            self.miss((life.sequence, 0));
        }
    }

    /// When a walker is free again, by the graph's clock, which begins with the first dispatch.
    fn walker_free(&self, end: u64) -> u64 {
        let since = end.saturating_sub(self.origin);
        self.origin + (since & !(SPELL_CYCLES - 1))
    }

    /// The walk of the page tables that a translation took, if it took one.
    fn label_walk(&mut self, life: &Life, holds_up: bool) -> Option<Walk> {
        let cycles = life.translation_cycles.min(life.miss_cycles);
        if cycles <= self.fixed.translation {
            return None;
        }
        let end = life.issued + u64::from(cycles);
        let free = self.walkers.pop_front().unwrap_or(0);
        // The core gives walkers out in the order of time: where it went ahead, no edge stands.
        let waits = free < end;
        let start = if waits { life.issued.max(free) } else { life.issued };
        let until = self.walker_free(end).max(free);
        let place = self.walkers.partition_point(|&other| other < until);
        self.walkers.insert(place, until);
        Some(Walk { cycles: (end - start) as u32, waits, holds_up })
    }

    /// The miss that ends before this one begins where as many as may be are under way.
    fn label_room(&self, life: &Life, step: &mut Step) {
        let full = self.misses.len() >= self.fixed.misses as usize;
        let Some(&(first, after)) = self.misses.front().filter(|_| full) else { return };
        let distance = self.past.distance(first);
        let Some(past) = self.past.before(distance) else { return };
        let there = past.completed + after;
        // As observed there was room, or it waited: its own time begins with the other's end.
        let own = u64::from(step.hit + step.miss).min(life.completed.saturating_sub(there));
        if there <= life.completed {
            step.miss_room = (distance, (after + own) as u32);
        }
    }

    fn miss(&mut self, miss: (u64, u64)) {
        self.misses.push_back(miss);
        if self.misses.len() > self.fixed.misses as usize {
            self.misses.pop_front();
        }
    }

    /// The store whose data a load reads. Whether it was taken from the store queue.
    fn label_forward(&mut self, life: &Life, step: &mut Step) -> bool {
        // The data of a store is the micro-op behind its address.
        let from_queue = (life.store != NOBODY).then(|| life.store + 1);
        let words = words(life);
        let written = || words.filter_map(|word| self.words.get(word)).max();
        let Some(data) = from_queue.or_else(written) else { return false };
        let distance = self.past.distance(data);
        let (Some(store), Some(address)) =
            (self.past.before(distance), self.past.before(distance + 1))
        else {
            return false;
        };
        let there = store.completed.max(address.completed);
        let Some(after) = life.completed.checked_sub(there) else { return false };
        let label = u64::from(self.fixed.forward).min(after);
        step.forward = (distance, label as u32);
        if from_queue.is_none() {
            return false;
        }
        let known = (there + label).max(life.issued + u64::from(step.hit));
        // What neither explains comes behind both, so that it stays on the path.
        let rest = life.completed.saturating_sub(known) as u32;
        step.forward.1 += rest;
        step.fixed = rest;
        true
    }

    fn label_commit(&mut self, life: &Life, step: &mut Step) {
        if life.slots > 0 {
            step.retire_width = self.retire.beside(life.slots, &self.past);
        }
        let done = life.completed + u64::from(self.fixed.to_retire);
        let in_order = self.past.before(1).map_or(0, |past| past.committed);
        let width = self.past.before(step.retire_width).map_or(0, |past| past.committed + 1);
        if width > life.committed {
            step.retire_width = 0;
            step.late = life.committed.saturating_sub(done.max(in_order)) as u32;
        } else {
            step.late = life.committed.saturating_sub(done.max(in_order).max(width)) as u32;
        }
    }

    fn remember(&mut self, life: &Life, step: &mut Step) {
        if life.class == Class::StoreAddress {
            words(life).for_each(|word| self.words.put(word, life.sequence + 1));
            self.store = (life.issued, life.miss_cycles);
            if life.completed >= self.addressed.1 {
                self.addressed = (life.sequence, life.completed);
            }
            step.walk = self.label_walk(life, false);
            if life.missed_l1d
                && let Some(address) = life.address
            {
                let there = life.issued + u64::from(life.miss_cycles);
                let after = there.saturating_sub(life.completed);
                self.lines.put(address >> self.fixed.line_shift, (life.sequence, after));
                self.miss((life.sequence, after));
            }
        }
        if life.class.is_store_data() {
            step.write = Some(self.store.1);
            self.write(life);
        }
        let past = Past {
            sequence: life.sequence,
            // The first begins the graph with its dispatch.
            arrived: self.past.before(1).map_or(life.dispatched, |_| self.arrived(life)),
            dispatched: life.dispatched,
            issued: life.issued,
            completed: life.completed,
            committed: life.committed,
        };
        self.past.push(past, life.slots, life.class.is_load());
        self.is_first = life.is_last;
        self.branch = (life.is_last && life.flow.is_branch()).then_some(Branch {
            sequence: life.sequence,
            flow: life.flow,
            mispredicted: life.mispredicted,
            resteered: life.resteered,
            taken: life.taken,
        });
        if life.is_last && life.taken {
            self.taken.push_back(life.sequence);
            if self.taken.len() > self.fixed.taken as usize {
                self.taken.pop_front();
            }
        }
    }

    /// When a store is written.
    fn write(&mut self, life: &Life) {
        let line = self.store.0 + u64::from(self.store.1);
        let ported = self.written.len().checked_sub(self.fixed.stores_per_cycle as usize);
        let ported = ported.and_then(|place| self.written.get(place)).map_or(0, |at| at + 1);
        let in_order = self.written.back().copied().unwrap_or(0);
        self.written.push_back((life.committed + 1).max(line).max(ported).max(in_order));
        if self.written.len() > SPAN / 4 {
            self.written.pop_front();
        }
    }
}

/// The words of eight bytes that an access touches.
fn words(life: &Life) -> impl Iterator<Item = u64> + use<> {
    let first = life.address.unwrap_or(0);
    let last = first.saturating_add(u64::from(life.bytes.max(1)) - 1) >> WORD_SHIFT;
    let first = first >> WORD_SHIFT;
    let count = if life.address.is_some() { (last - first + 1).min(WORDS_MAX) } else { 0 };
    first..first + count
}
