//! The core cycle by cycle: slow, plain, and what the one-pass core is held against.
//!
//! Every cycle runs the stages from the back, so that what one frees the next may take:
//!
//! ```text
//! retire -> drain stores -> issue -> dispatch -> fetch
//!
//! entries:  | retired ... | in the window ... | in the queue ... | not fetched
//!                         ^ retire_at         ^ dispatch_at      ^ fetch_at
//! ```
//!
//! It meets caches and ports in the order of time, where the one-pass core meets them in the order
//! of the program.

mod again;
mod dispatch;
mod entry;
mod fetch;
mod issue;
mod retire;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use entry::{Arrival, Entry, QueuedStore};
use fetch::Fetch;

use crate::core::{
    Accesses, Account, Accounting, Ideal, Piece, Settings, Shape, Silent, Watcher, add_memory,
    count_static,
};
use crate::event::{Counts, Event};
use crate::machine::Machine;
use crate::program::Program;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::units::branch::Predictor;
use crate::units::memory::Memory;
use crate::units::ordering::Ordering;
use crate::uop::Reg;

/// Instructions that must be at hand beyond the ones fetched, so that fetch never starves.
const AT_HAND: usize = 128;

/// The same for a core: without a limit on bandwidth the whole queue may be filled in a cycle.
fn at_hand(shape: &Shape) -> usize {
    if shape.ideal.has(Ideal::BANDWIDTH) { AT_HAND + shape.queue } else { AT_HAND }
}

/// The cycle-by-cycle core of one thread.
#[derive(Clone, Debug)]
pub struct ReferenceCore<W: Watcher = Silent> {
    shape: Shape,
    program: Program,
    memory: Memory,
    predictor: Predictor,
    account: Account,
    watcher: W,
    cycle: u64,
    /// Instructions that have run but are not fetched yet.
    arrivals: VecDeque<Arrival>,
    at_hand: usize,
    fetch: Fetch,
    entries: Vec<Entry>,
    retire_at: u64,
    dispatch_at: u64,
    fetch_at: u64,
    /// Slots between fetch and dispatch, and in the window (groups where there are groups).
    queued: usize,
    in_flight: usize,
    loads: usize,
    waiting: [usize; 9],
    stores: VecDeque<QueuedStore>,
    writers: [u64; Reg::COUNT],
    /// Micro-ops whose operands will be there at a known time, and those whose are.
    timed: BinaryHeap<Reverse<(u64, u64)>>,
    ready: Vec<u64>,
    /// Loads that wait for an older store.
    held: Vec<issue::Waiting>,
    /// Which loads go ahead of unknown addresses; none where they know whom they depend on.
    ordering: Option<Ordering>,
    /// Stores whose addresses were found in the last cycle.
    addressed: Vec<u64>,
    /// Until when each port is taken.
    ports: [u64; 32],
    /// The next micro-op to issue where order is kept.
    issue_at: u64,
    group: dispatch::OpenGroup,
    groups_retired: u64,
    /// Cycles since something last retired.
    stall_cycles: u64,
    pending_until: u64,
}

impl ReferenceCore {
    /// A cold core.
    pub fn new(machine: &Machine, settings: Settings) -> ReferenceCore {
        ReferenceCore::watched(machine, settings, Silent)
    }
}

impl<W: Watcher> ReferenceCore<W> {
    /// A cold core whose every micro-op is told to a watcher.
    pub fn watched(machine: &Machine, settings: Settings, watcher: W) -> ReferenceCore<W> {
        let shape = Shape::new(machine, settings);
        let slots = if shape.has_groups() { shape.group_slots as usize } else { 1 };
        // A slot may hold the halves of a store and a stack adjustment: four micro-ops at most.
        let room = 4 * (shape.rob * slots + shape.queue) + 1024;
        let memory = Memory::new(machine);
        ReferenceCore {
            program: Program::new(machine, settings.ideal),
            predictor: Predictor::new(&machine.branch),
            account: Account::default(),
            watcher,
            cycle: 1,
            arrivals: VecDeque::new(),
            at_hand: at_hand(&shape),
            fetch: Fetch::new(&shape),
            entries: vec![Entry::default(); room.next_power_of_two()],
            retire_at: 0,
            dispatch_at: 0,
            fetch_at: 0,
            queued: 0,
            in_flight: 0,
            loads: 0,
            waiting: [0; 9],
            stores: VecDeque::new(),
            writers: [crate::core::NOBODY; Reg::COUNT],
            timed: BinaryHeap::new(),
            ready: Vec::new(),
            held: Vec::new(),
            ordering: shape.disambiguation.map(Ordering::new),
            addressed: Vec::new(),
            ports: [0; 32],
            issue_at: 0,
            group: dispatch::OpenGroup::default(),
            groups_retired: 0,
            stall_cycles: 0,
            pending_until: 0,
            memory,
            shape,
        }
    }

    /// Starts from units that have been warmed.
    pub fn with_units(mut self, memory: Memory, predictor: Predictor) -> ReferenceCore<W> {
        self.memory = memory;
        self.predictor = predictor;
        self
    }

    /// What has been translated.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The exact account by instruction.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The watcher.
    pub fn watcher(&self) -> &W {
        &self.watcher
    }

    /// The watcher, to take from it what it has seen.
    pub fn watcher_mut(&mut self) -> &mut W {
        &mut self.watcher
    }

    /// Cycles that have passed.
    pub fn cycles(&self) -> u64 {
        self.account.totals[Event::RetireCycles] + self.account.totals[Event::StallCycles]
    }

    /// Every event's count so far. Those that depend on the code alone run ahead of retirement
    /// until `finish`.
    pub fn counts(&self) -> Counts {
        let mut counts = self.account.totals.clone();
        let cycles = self.cycles();
        counts[Event::Cycles] = cycles;
        counts[Event::ReferenceCycles] = cycles;
        counts[Event::PipelineSlots] = cycles.saturating_mul(self.shape.dispatch_width);
        add_memory(&mut counts, &self.memory);
        counts
    }

    /// Lets everything in flight retire.
    pub fn finish(&mut self) {
        while !self.arrivals.is_empty() || self.retire_at < self.fetch_at {
            self.step();
        }
    }

    fn step(&mut self) {
        self.look_back();
        self.retire();
        self.drain();
        self.issue();
        self.dispatch();
        if self.shape.to_issue == 0 {
            self.issue();
        }
        self.fetch();
        #[cfg(test)]
        assert!(self.stall_cycles < 1_000_000, "stuck at {:?}", self.at(self.retire_at));
        self.cycle += 1;
    }

    fn at(&self, sequence: u64) -> &Entry {
        &self.entries[sequence as usize & (self.entries.len() - 1)]
    }

    fn at_mut(&mut self, sequence: u64) -> &mut Entry {
        let mask = self.entries.len() - 1;
        &mut self.entries[sequence as usize & mask]
    }

    /// Writes retired stores to the cache, in order.
    fn drain(&mut self) {
        let mut place = None;
        for _ in 0..self.shape.writing.per_cycle {
            let writing = self.shape.writing;
            let Some(first) = self.stores.front_mut() else { return };
            if first.retired >= self.cycle || first.line > self.cycle {
                return;
            }
            let here = writing.place(first.piece.address);
            let is_twice = writing.is_twice(first.piece.address, first.piece.size);
            let is_alone = is_twice && writing.halves_go_alone();
            if place.is_some_and(|place| place != here || is_alone) {
                return;
            }
            place = Some(here);
            if is_twice && !first.is_half {
                first.is_half = true;
                if is_alone {
                    return;
                }
                continue;
            }
            let sequence = first.sequence;
            self.stores.pop_front();
            if self.stores.front().is_none_or(|next| next.sequence != sequence) {
                self.release(sequence, true, self.cycle);
            }
            if is_alone {
                return;
            }
        }
    }
}

impl<W: Watcher> Accounting for ReferenceCore<W> {
    fn settle_all(&mut self) {
        self.finish();
    }

    fn counts(&self) -> Counts {
        ReferenceCore::counts(self)
    }

    fn account(&self) -> &Account {
        ReferenceCore::account(self)
    }
}

impl<W: Watcher> CoreListener for ReferenceCore<W> {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.program.translate(id, block);
        self.account.grow(self.program.instructions.len());
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(&block) = self.program.blocks.get(id.0 as usize) else { return };
        let count = u32::from(ran).min(block.count);
        let Some(first) = self.program.instructions.get(block.first as usize) else { return };
        if count == 0 {
            return;
        }
        if let Some(last) = self.arrivals.back_mut() {
            last.next = Some(first.pc);
        }
        count_static(&mut self.account, &self.program, &block, count);
        self.account.ran(block.first as usize, count as usize);
        let mut left = accesses;
        for k in 0..count {
            let place = block.first + k;
            let has_memory = self.program.instructions[place as usize].has_memory;
            let mut mine =
                if has_memory { Accesses::of(&mut left, k as u16) } else { Accesses::EMPTY };
            let all = |is_store: bool, mine: &mut Accesses<'_>| -> Vec<Piece> {
                std::iter::from_fn(|| mine.next(is_store)).collect()
            };
            let loads = all(false, &mut mine);
            let stores = all(true, &mut mine);
            self.arrivals.push_back(Arrival { place, loads, stores, next: None });
        }
        while self.arrivals.len() > self.at_hand {
            self.step();
        }
    }
}

#[cfg(test)]
mod tests;
