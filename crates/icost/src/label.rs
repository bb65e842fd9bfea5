//! From the lives of micro-ops to labelled edges.
//!
//! A label is what the machine's numbers say, bounded by what was observed, and whatever the edges
//! of a node do not explain is added to one of them. The longest path therefore *is* the observed
//! time; what is approximate is how labels answer to idealisation.

use std::collections::HashMap;

use model::core::{Life, NOBODY};
use model::machine::{Class, Machine};

use crate::step::{DispatchWait, Step, Wait};

/// The machine's numbers that stand on edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fixed {
    /// Slots dispatched a cycle.
    pub dispatch_width: u32,
    /// Slots retired a cycle.
    pub retire_width: u32,
    /// Slots of the window.
    pub window: u32,
    /// From dispatch to the earliest issue.
    pub to_issue: u32,
    /// From completion to the earliest retirement.
    pub to_retire: u32,
    /// From a result to who waits for it, beyond back to back.
    pub wakeup: u32,
    /// A hit in the first level.
    pub hit: u32,
    /// From the execution of a mispredicted branch to dispatch behind it.
    pub redirect: u32,
    /// From fetch to dispatch.
    pub front: u32,
    /// What a branch costs that the front end sets right by itself.
    pub resteer: u32,
    /// From a store's data to a load that takes it.
    pub forward: u32,
    /// Bytes of a line, as a shift.
    pub line_shift: u32,
    /// Ports of each class, as a mask, and for how many cycles it takes one.
    pub ports: [(u32, u32); 64],
}

impl Fixed {
    /// Of a machine.
    pub fn of(machine: &Machine) -> Fixed {
        let window = &machine.window;
        Fixed {
            dispatch_width: window.dispatch_width,
            retire_width: window.retire_width,
            window: window.rob,
            to_issue: window.dispatch_to_issue_cycles,
            to_retire: window.complete_to_retire_cycles,
            wakeup: window.wakeup_cycles.max(1) - 1,
            hit: machine.caches.l1d.latency_cycles,
            redirect: window.mispredict_cycles,
            front: machine.front.front_cycles,
            resteer: machine.branch.resteer_cycles,
            forward: window.store_forward_cycles,
            line_shift: machine.caches.l1d.line_bytes.trailing_zeros(),
            ports: ports(machine),
        }
    }
}

fn ports(machine: &Machine) -> [(u32, u32); 64] {
    let mut ports = [(0, 1); 64];
    let all: Vec<&str> = machine.ports().collect();
    for &class in Class::ALL {
        let Some(execution) = machine.execution(class) else { continue };
        let place = |name: &String| all.iter().position(|known| known == name);
        let places = execution.ports.iter().filter_map(place);
        let mask = places.fold(0, |mask, place| mask | 1 << place);
        if let Some(entry) = ports.get_mut(class as usize) {
            *entry = (mask, execution.busy.max(1));
        }
    }
    ports
}

/// As many micro-ops as an edge may span.
pub(crate) const SPAN: usize = 1 << 12;
/// Stores and loads meet by words of eight bytes.
const WORD_SHIFT: u32 = 3;
/// How much larger an ideal window is. Where that is more than an edge may span, it has no end.
const IDEAL_WINDOW: u32 = 20;

/// What is kept of a life for those that come after it.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    sequence: u64,
    slots: u8,
    dispatched: u64,
    issued: u64,
    completed: u64,
    committed: u64,
}

/// The latest micro-ops.
#[derive(Clone, Debug)]
struct History {
    ring: Vec<Past>,
    count: u64,
}

impl History {
    /// The micro-op so many before the next.
    fn before(&self, distance: u32) -> Option<&Past> {
        let distance = u64::from(distance);
        let is_near = distance > 0 && distance <= self.count.min(SPAN as u64 - 1);
        is_near.then(|| &self.ring[(self.count - distance) as usize & (SPAN - 1)])
    }

    /// How many before the next the micro-op with a number is; 0 if it is out of sight.
    fn distance(&self, sequence: u64) -> u32 {
        let last = self.before(1).map_or(0, |past| past.sequence);
        let back = last.wrapping_sub(sequence).wrapping_add(1);
        let found = u32::try_from(back).ok().and_then(|back| self.before(back));
        found.filter(|past| past.sequence == sequence).map_or(0, |_| back as u32)
    }

    fn push(&mut self, past: Past) {
        self.ring[self.count as usize & (SPAN - 1)] = past;
        self.count += 1;
    }
}

/// Labels the edges of one micro-op after the other.
#[derive(Clone, Debug)]
pub struct Labeller {
    fixed: Fixed,
    past: History,
    /// How many micro-ops before the next one a full width, window and retirement reach.
    dispatch: Reach,
    window: Reach,
    ideal_window: Reach,
    retire: Reach,
    /// The branch that was mispredicted, if it is the last micro-op.
    branch: Option<u64>,
    is_first: bool,
    /// The last micro-op was a branch.
    after_branch: bool,
    /// The micro-op that brings each line that is on its way.
    lines: HashMap<u64, (u64, u64)>,
    /// The micro-op that brought the data last written to each word.
    stores: HashMap<u64, u64>,
}

impl Labeller {
    /// For a machine's numbers.
    pub fn new(fixed: Fixed) -> Labeller {
        Labeller {
            fixed,
            past: History { ring: vec![Past::default(); SPAN], count: 0 },
            dispatch: Reach::new(fixed.dispatch_width),
            window: Reach::new(fixed.window),
            ideal_window: Reach::new(IDEAL_WINDOW * fixed.window),
            retire: Reach::new(fixed.retire_width),
            branch: None,
            is_first: true,
            after_branch: false,
            lines: HashMap::new(),
            stores: HashMap::new(),
        }
    }

    /// The numbers.
    pub fn fixed(&self) -> Fixed {
        self.fixed
    }

    /// The edges of the next micro-op.
    pub fn label(&mut self, life: &Life) -> Step {
        let mut step = Step { instruction: life.instruction, ..Step::default() };
        self.label_dispatch(life, &mut step);
        self.label_execution(life, &mut step);
        self.label_commit(life, &mut step);
        self.remember(life);
        step
    }

    fn label_dispatch(&mut self, life: &Life, step: &mut Step) {
        let Some(&last) = self.past.before(1) else { return };
        let gap = life.dispatched.saturating_sub(last.dispatched);
        if life.slots > 0 {
            step.width = self.dispatch.of(life.slots, &self.past);
            step.window = self.window.of(0, &self.past);
            step.ideal_window = self.ideal_window.of(0, &self.past);
        }
        if self.is_first && life.code_cycles > 0 {
            step.code = u64::from(life.code_cycles).min(gap) as u32;
        }
        if let Some(branch) = self.branch {
            let distance = self.past.distance(branch);
            if let Some(past) = self.past.before(distance) {
                let after = life.dispatched.saturating_sub(past.completed);
                step.redirect = (distance, u64::from(self.fixed.redirect).min(after) as u32);
            }
        }
        let known = self.known_dispatch(&last, step);
        let rest = life.dispatched.saturating_sub(known);
        if rest > 0 {
            self.explain_dispatch(life, step, gap as u32);
        }
    }

    /// When the edges so far allow dispatch.
    fn known_dispatch(&self, last: &Past, step: &Step) -> u64 {
        let code = last.dispatched + u64::from(step.code);
        let width = self.past.before(step.width).map_or(0, |past| past.dispatched + 1);
        let window = self.past.before(step.window).map_or(0, |past| past.committed);
        let (branch, label) = step.redirect;
        let redirect = self.past.before(branch).map_or(0, |past| past.completed + u64::from(label));
        code.max(width).max(window).max(redirect)
    }

    /// Dispatch came later than any edge says: a full scheduler or queue, or the front end.
    fn explain_dispatch(&self, life: &Life, step: &mut Step, gap: u32) {
        let is_front = life.dispatched <= life.fetched + u64::from(self.fixed.front);
        if is_front {
            // What code misses do not explain of the gap.
            let rest = gap - step.code;
            let is_resteer =
                self.after_branch && self.fixed.resteer > 0 && rest >= self.fixed.resteer;
            if is_resteer {
                step.resteer = rest;
            } else {
                step.bubble = rest;
            }
            return;
        }
        let in_window = (1..=4 * self.fixed.window).map_while(|k| Some((k, self.past.before(k)?)));
        let freed = |past: &Past| {
            if past.issued == life.dispatched {
                Some(Wait::Issue)
            } else if past.committed == life.dispatched {
                Some(Wait::Commit)
            } else {
                None
            }
        };
        let found = in_window.filter_map(|(distance, past)| Some((distance, freed(past)?))).last();
        match found {
            Some((distance, from)) => {
                step.wait = Some(DispatchWait { from, distance, label: 0 });
            }
            None => step.stuck = gap - step.code,
        }
    }

    fn label_execution(&mut self, life: &Life, step: &mut Step) {
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
        let data = self.data_of(life);
        if let Some(past) = self.past.before(data) {
            let there = past.completed + u64::from(self.fixed.wakeup);
            if there <= life.issued {
                step.data = data;
                ready = ready.max(there);
            }
        }
        step.ports = self.fixed.ports[life.class as usize & 63];
        step.contention = life.issued.saturating_sub(ready) as u32;
        let total = life.completed.saturating_sub(life.issued) as u32;
        if life.class.is_load() {
            self.label_load(life, step, total, data);
        } else if life.class.is_store_data() || life.class == Class::StoreAddress {
            step.fixed = total;
        } else if total <= 1 && life.class < Class::VecStoreData {
            step.short = total;
        } else {
            step.long = total;
        }
    }

    /// The micro-op that brought the data which a load reads, as a distance: taken from the store
    /// queue or not. In a larger window the store may still be there.
    fn data_of(&self, life: &Life) -> u32 {
        if !life.class.is_load() {
            return 0;
        }
        // The data of a store is the micro-op behind its address.
        let from_queue = (life.store != NOBODY).then(|| life.store + 1);
        let word = life.address.map(|address| address >> WORD_SHIFT);
        let written = word.and_then(|word| self.stores.get(&word)).copied();
        from_queue.or(written).map_or(0, |data| self.past.distance(data))
    }

    fn label_load(&mut self, life: &Life, step: &mut Step, total: u32, data: u32) {
        step.hit = self.fixed.hit.min(total);
        if life.store != NOBODY
            && let Some(past) = self.past.before(data)
            && let Some(after) = life.completed.checked_sub(past.completed)
        {
            let label = u64::from(self.fixed.forward).min(after);
            step.forward = (data, label as u32);
            let known = (past.completed + label).max(life.issued + u64::from(step.hit));
            // What neither explains comes behind both, so that it stays on the path.
            let rest = life.completed.saturating_sub(known) as u32;
            step.forward.1 += rest;
            step.fixed = rest;
            return;
        }
        let line = life.address.map(|address| address >> self.fixed.line_shift);
        let own = life.miss_cycles.min(total - step.hit);
        step.fixed = total - step.hit - own;
        step.miss = own;
        let Some(line) = line.filter(|_| own > 0) else { return };
        if let Some(&(first, there)) = self.lines.get(&line)
            && there > life.issued
            && there <= life.completed
        {
            let distance = self.past.distance(first);
            if distance > 0 {
                step.line = (distance, (life.completed - there) as u32);
                step.miss = 0;
                step.fixed = 0;
                return;
            }
        }
        if self.lines.len() > 2 * SPAN {
            self.lines.retain(|_, (_, there)| *there > life.dispatched);
        }
        self.lines.insert(line, (life.sequence, life.completed));
    }

    fn label_commit(&mut self, life: &Life, step: &mut Step) {
        if life.slots > 0 {
            step.retire_width = self.retire.of(life.slots, &self.past);
        }
        let done = life.completed + u64::from(self.fixed.to_retire);
        let in_order = self.past.before(1).map_or(0, |past| past.committed);
        let width = self.past.before(step.retire_width).map_or(0, |past| past.committed + 1);
        step.late = life.committed.saturating_sub(done.max(in_order).max(width)) as u32;
    }

    fn remember(&mut self, life: &Life) {
        if life.class == Class::StoreAddress
            && let Some(address) = life.address
        {
            if self.stores.len() > 4 * SPAN {
                self.stores.retain(|_, data| *data + SPAN as u64 > life.sequence);
            }
            self.stores.insert(address >> WORD_SHIFT, life.sequence + 1);
        }
        self.dispatch.push(life.slots);
        self.window.push(life.slots);
        self.ideal_window.push(life.slots);
        self.retire.push(life.slots);
        self.past.push(Past {
            sequence: life.sequence,
            slots: life.slots,
            dispatched: life.dispatched,
            issued: life.issued,
            completed: life.completed,
            committed: life.committed,
        });
        self.is_first = life.is_last;
        self.after_branch = life.is_last && life.flow.is_branch();
        self.branch = life.mispredicted.then_some(life.sequence);
    }
}

/// The youngest micro-op that, with all behind it, fills a number of slots.
#[derive(Clone, Debug)]
struct Reach {
    slots: u32,
    /// How many micro-ops back it is, and the slots from it to the last.
    back: u32,
    held: u32,
}

impl Reach {
    fn new(slots: u32) -> Reach {
        Reach { slots, back: 0, held: 0 }
    }

    fn push(&mut self, slots: u8) {
        self.back += 1;
        self.held += u32::from(slots);
    }

    /// The distance to the youngest micro-op that cannot share a cycle (or the window) with a new
    /// one of so many slots; 0 if there is none in sight.
    fn of(&mut self, slots: u8, past: &History) -> u32 {
        // With `slots` 0 the new one needs a place only after the held ones fill it.
        let full = |held: u32| {
            if slots == 0 { held >= self.slots } else { held + u32::from(slots) > self.slots }
        };
        while let Some(oldest) = past.before(self.back).map(|past| past.slots) {
            if !full(self.held - u32::from(oldest)) {
                break;
            }
            self.held -= u32::from(oldest);
            self.back -= 1;
        }
        if full(self.held) { self.back } else { 0 }
    }
}
