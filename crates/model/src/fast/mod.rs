//! The core in one pass: every instruction is timed as it streams by.
//!
//! Each stage's time is the latest of what must come before it:
//!
//! ```text
//! fetch     >= fetch before it, room in the queue, code there, mispredicted branch executed
//! dispatch  >= fetch + front, width, room in reorder buffer, scheduler, load and store queue
//! ready     >= dispatch + 1.., sources complete
//! issue     >= ready, a port free
//! complete   = issue + latency (of the cache for loads)
//! retire    >= complete, retirement before it, width
//! ```
//!
//! Not modelled: the wrong path, and a store that a load wrongly overtakes.

mod front;
mod group;
mod retire;
mod ring;
mod stores;
mod window;

pub(crate) use stores::{Meeting, Stores};

use front::{Fetched, Front};
use group::{Group, WaitingStore};
use retire::{Retire, Why};
use window::Window;

use crate::cause::Cause;
use crate::core::{
    Accesses, Account, Accounting, Ideal, Life, NOBODY, Piece, Settings, Shape, Silent, Watcher,
};
use crate::event::{Counts, Event};
use crate::machine::{Class, Machine};
use crate::program::{Kind, Op, Program, StaticInstruction};
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::units::Level;
use crate::units::branch::{Branch, Predictor};
use crate::units::memory::{Memory, Outcome};
use crate::uop::{Flow, Reg};

/// A branch whose outcome the next block will tell.
#[derive(Clone, Copy, Debug)]
struct OpenBranch {
    place: usize,
    fetched: u64,
    completed: u64,
}

/// The one-pass core of one thread.
#[derive(Clone, Debug)]
pub struct FastCore<W: Watcher = Silent> {
    shape: Shape,
    program: Program,
    memory: Memory,
    predictor: Predictor,
    front: Front,
    window: Window,
    stores: Stores,
    retire: Retire,
    group: Group,
    account: Account,
    registers: [u64; Reg::COUNT],
    writers: [u64; Reg::COUNT],
    sequence: u64,
    branch: Option<OpenBranch>,
    waiting: Vec<WaitingStore>,
    pending_until: u64,
    lives: Vec<Life>,
    watcher: W,
}

/// What executing a memory micro-op found.
#[derive(Clone, Copy, Debug)]
struct Found {
    completed: u64,
    cause: Cause,
    miss_cycles: u32,
    address: Option<u64>,
    store: u64,
    level: Level,
    missed_tlb: bool,
}

impl FastCore {
    /// A cold core.
    pub fn new(machine: &Machine, settings: Settings) -> FastCore {
        FastCore::watched(machine, settings, Silent)
    }
}

impl<W: Watcher> FastCore<W> {
    /// A cold core whose every micro-op is told to a watcher.
    pub fn watched(machine: &Machine, settings: Settings, watcher: W) -> FastCore<W> {
        let shape = Shape::new(machine, settings);
        let memory = Memory::new(machine);
        FastCore {
            program: Program::new(machine, settings.ideal),
            predictor: Predictor::new(&machine.branch),
            front: Front::new(&shape, memory.line_shift()),
            window: Window::new(&shape),
            stores: Stores::new(),
            retire: Retire::new(&shape),
            group: Group::default(),
            account: Account::default(),
            registers: [0; Reg::COUNT],
            writers: [NOBODY; Reg::COUNT],
            sequence: 0,
            branch: None,
            waiting: Vec::new(),
            pending_until: 0,
            lives: Vec::new(),
            watcher,
            memory,
            shape,
        }
    }

    /// Starts from units that have been warmed.
    pub fn with_units(mut self, memory: Memory, predictor: Predictor) -> FastCore<W> {
        self.memory = memory;
        self.predictor = predictor;
        self
    }

    /// The units, to be warmed on or inspected.
    pub fn into_units(self) -> (Memory, Predictor) {
        (self.memory, self.predictor)
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

    /// Lets everything in flight retire.
    pub fn finish(&mut self) {
        if self.group.is_open {
            self.close_group();
        }
        self.settle(None);
        self.retire.end(&mut self.account);
    }

    /// Cycles that have passed.
    pub fn cycles(&self) -> u64 {
        self.account.totals[Event::RetireCycles] + self.account.totals[Event::StallCycles]
    }

    /// Every event's count so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.account.totals.clone();
        let cycles = self.cycles();
        counts[Event::Cycles] = cycles;
        counts[Event::ReferenceCycles] = cycles;
        counts[Event::PipelineSlots] = cycles.saturating_mul(self.shape.dispatch_width);
        add_memory(&mut counts, &self.memory);
        counts
    }

    /// Learns where the open branch went: to `next`, the first pc of the block that follows.
    fn settle(&mut self, next: Option<u64>) {
        let Some(open) = self.branch.take() else {
            self.tell(false, false);
            return;
        };
        let instruction = self.program.instructions[open.place];
        let Some(next) = next else {
            self.tell(false, false);
            return;
        };
        let taken = next != instruction.next() || instruction.target == next;
        let branch = Branch {
            pc: instruction.pc,
            flow: instruction.flow,
            taken,
            target: next,
            next: instruction.next(),
        };
        let verdict = self.predictor.observe(&branch);
        let place = open.place;
        if taken {
            self.account.happened(place, Event::TakenBranches);
        }
        let is_ideal = self.shape.ideal.has(Ideal::MISPREDICTS);
        if verdict.mispredicted {
            count_mispredict(&mut self.account, place, instruction.flow, verdict.wrong_direction);
        }
        if verdict.resteered {
            self.account.happened(place, Event::Resteers);
        }
        if verdict.mispredicted && !is_ideal {
            let again = open.completed + self.shape.redirect;
            self.front.restart(again, Cause::Mispredict, place as u32);
        } else if verdict.resteered && !is_ideal {
            let again = open.fetched + self.shape.resteer;
            self.front.restart(again, Cause::Resteer, place as u32);
        } else if taken {
            self.front.taken(&self.shape);
        }
        self.tell(taken, verdict.mispredicted);
    }

    /// Tells the watcher the lives that wait for a branch, where they are complete.
    #[inline]
    fn tell(&mut self, taken: bool, mispredicted: bool) {
        if !W::LISTENS {
            return;
        }
        if let Some(last) = self.lives.last_mut()
            && last.is_last
            && last.flow.is_branch()
        {
            last.taken = taken;
            last.mispredicted = mispredicted;
        }
        // Lives of an open group do not know their retirement yet.
        let known = if self.group.is_open { self.group.lives_from } else { self.lives.len() };
        for life in self.lives.drain(..known) {
            self.watcher.lived(&life);
        }
        self.group.lives_from = 0;
    }

    fn step(&mut self, place: usize, mut accesses: Accesses<'_>) {
        let instruction = self.program.instructions[place];
        let fetched =
            self.front.fetch(&self.shape, &mut self.memory, &mut self.account, place, &instruction);
        self.account.ran(place);
        let is_grouped = self.shape.has_groups();
        let mut loads_left = instruction.loads;
        let mut completed = 0;
        for k in 0..usize::from(instruction.op_count) {
            let op = self.program.ops[instruction.ops as usize + k];
            let is_last = k + 1 == usize::from(instruction.op_count);
            completed = self.execute(
                place,
                &instruction,
                &op,
                (k == 0, is_last),
                fetched,
                &mut accesses,
                &mut loads_left,
                is_grouped,
            );
        }
        if is_grouped {
            self.group.members.push(place as u32);
            self.group.loads += u64::from(instruction.loads);
        } else {
            self.retire.finish(place as u32);
            if instruction.has_memory {
                self.leave_queues(u64::from(instruction.loads));
            }
        }
        if instruction.flow.is_branch() {
            self.branch = Some(OpenBranch { place, fetched: fetched.at, completed });
        }
    }

    /// Times one micro-op. Returns when its result is there.
    #[allow(clippy::too_many_arguments)]
    #[inline]
    fn execute(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        op: &Op,
        (is_first, is_last): (bool, bool),
        fetched: Fetched,
        accesses: &mut Accesses<'_>,
        loads_left: &mut u8,
        is_grouped: bool,
    ) -> u64 {
        if is_grouped && self.group.is_over(&self.shape, u64::from(op.slots), is_first) {
            self.next_group();
        }
        let earliest = fetched.at + self.shape.front;
        let (dispatched, by_stores) =
            self.window.dispatch(&self.shape, &mut self.account, op, earliest, is_grouped);
        if op.slots > 0 {
            self.front.queue.push(dispatched);
        }
        let mut ready = dispatched + self.shape.to_issue;
        if !self.shape.ideal.has(Ideal::DEPENDENCES) {
            let [a, b, c, d] = op.sources.map(|reg| self.registers[usize::from(reg) & 63]);
            ready = ready.max(a.max(b)).max(c.max(d));
        }
        if self.shape.waits_for_group {
            ready = ready.max(self.retire.cycle());
        }
        if op.class == Class::Fence {
            ready = ready.max(self.stores.drained());
        }
        let issued = self.window.issue(&self.shape, op, ready);
        self.account.totals[Event::Issues] += u64::from(op.ports != 0);
        let found = match op.kind {
            Kind::Load => {
                *loads_left -= 1;
                self.load(place, instruction, op, issued, accesses, *loads_left == 0)
            }
            Kind::StoreAddress => self.store_address(place, instruction, issued, accesses),
            _ => plain(op, issued),
        };
        if op.kind == Kind::StoreData {
            self.store_data(found.completed);
        }
        let available = found.completed + self.shape.wakeup;
        for &target in &op.targets {
            self.registers[usize::from(target) & 63] = available;
        }
        let front_is_fresh = fetched.at <= self.front.since + 1;
        let why = Why {
            instruction: place as u32,
            dispatched,
            front: match (by_stores, front_is_fresh) {
                (true, _) => Cause::Store,
                (false, true) => self.front.cause,
                (false, false) => Cause::Fetch,
            },
            blame: self.front.blame,
            work: found.cause,
        };
        let done = found.completed + self.shape.to_retire;
        let committed = if is_grouped {
            self.group.add(u64::from(op.slots), op.kind == Kind::Branch, done, &why);
            0
        } else {
            let at =
                self.retire.op(&self.shape, &mut self.account, done, u64::from(op.slots), &why);
            if op.slots > 0 {
                self.window.rob.push(at);
            } else {
                self.window.rob.extend(at);
            }
            at
        };
        if W::LISTENS {
            let times = (dispatched, ready, issued, committed);
            self.remember(place, instruction, op, is_last, &fetched, &found, times);
        }
        self.sequence += 1;
        found.completed
    }

    #[inline]
    fn load(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        op: &Op,
        issued: u64,
        accesses: &mut Accesses<'_>,
        takes_rest: bool,
    ) -> Found {
        let hit = if self.shape.ideal.has(Ideal::L1D_LATENCY) { 0 } else { self.shape.l1d };
        let extra = u64::from(op.latency);
        let mut found = Found {
            completed: issued + hit + extra,
            cause: Cause::L1d,
            miss_cycles: 0,
            address: None,
            store: NOBODY,
            level: Level::L1,
            missed_tlb: false,
        };
        let mut at = issued;
        while let Some(piece) = accesses.next(false) {
            let one = self.load_piece(place, instruction.pc, piece, at, hit, extra);
            if found.address.is_none() || one.completed > found.completed {
                found = Found { address: found.address.or(one.address), ..one };
            }
            if !takes_rest {
                break;
            }
            at += 1;
        }
        found
    }

    #[inline]
    fn load_piece(
        &mut self,
        place: usize,
        pc: u64,
        piece: Piece,
        at: u64,
        hit: u64,
        extra: u64,
    ) -> Found {
        let outcome = self.memory.data::<true>(pc, piece.address, piece.size, false, at);
        if outcome.level > Level::L1 || outcome.joined {
            self.pending(at, at + u64::from(outcome.cycles));
        }
        count_load(&mut self.account, place, &outcome);
        let over = u64::from(outcome.cycles).saturating_sub(self.shape.l1d);
        let over = if self.shape.ideal.has(Ideal::DATA_MISSES) { 0 } else { over };
        let mut completed = at + hit + over + extra;
        let mut store = NOBODY;
        match self.stores.meet(piece.address, piece.size, at) {
            None => {}
            Some(Meeting::Forwarded(data, sequence)) => {
                self.account.happened(place, Event::Forwards);
                completed = (at + hit).max(data + self.shape.forward) + extra;
                store = sequence;
            }
            Some(Meeting::Blocked(written, sequence)) => {
                self.account.happened(place, Event::BlockedForwards);
                completed = completed.max(written + hit + extra);
                store = sequence;
            }
        }
        let translated = outcome.translation.missed_l1;
        Found {
            completed,
            cause: Cause::of_load(outcome.level, translated, store != NOBODY),
            miss_cycles: over as u32,
            address: Some(piece.address),
            store,
            level: outcome.level,
            missed_tlb: translated,
        }
    }

    /// Cycles in which a first-level miss is under way; an overlap counts once.
    #[inline]
    fn pending(&mut self, from: u64, to: u64) {
        let from = from.max(self.pending_until);
        if to > from {
            self.account.totals[Event::L1dPending] += to - from;
            self.pending_until = to;
        }
    }

    fn store_address(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        issued: u64,
        accesses: &mut Accesses<'_>,
    ) -> Found {
        let mut found = Found {
            completed: issued + 1,
            cause: Cause::Integer,
            miss_cycles: 0,
            address: None,
            store: NOBODY,
            level: Level::L1,
            missed_tlb: false,
        };
        while let Some(piece) = accesses.next(true) {
            let outcome =
                self.memory.data::<true>(instruction.pc, piece.address, piece.size, true, issued);
            count_store(&mut self.account, place, &outcome);
            let cycles = if self.shape.ideal.has(Ideal::DATA_MISSES) { 0 } else { outcome.cycles };
            self.waiting.push(WaitingStore {
                address: piece.address,
                size: piece.size,
                line: issued + u64::from(cycles),
                data: issued + 1,
                sequence: self.sequence,
            });
            found.address = found.address.or(Some(piece.address));
            found.level = found.level.max(outcome.level);
            found.missed_tlb |= outcome.translation.missed_l1;
        }
        found
    }

    #[inline]
    fn store_data(&mut self, completed: u64) {
        let sequence = self.sequence;
        for store in self.waiting.iter_mut().rev().take_while(|s| s.sequence + 1 == sequence) {
            store.data = store.data.max(completed);
        }
    }

    /// Loads and stores whose retirement is known leave their queues.
    #[inline]
    fn leave_queues(&mut self, loads: u64) {
        let retired = self.retire.cycle();
        for _ in 0..loads {
            self.window.loads.push(retired);
        }
        for store in &self.waiting {
            let written = self.stores.write(self.shape.stores_per_cycle, retired, store.line);
            self.window.stores.push(written);
            self.stores.remember(store.address, store.size, store.data, written, store.sequence);
        }
        self.waiting.clear();
    }

    fn next_group(&mut self) {
        if self.group.is_open {
            self.close_group();
            self.window.next_cycle();
        }
        self.window.wait_for_rob(&mut self.account);
        let lives_from = self.lives.len();
        self.group.open();
        self.group.lives_from = lives_from;
    }

    fn close_group(&mut self) {
        self.group.is_open = false;
        let Some(why) = self.group.why else { return };
        let at = self.retire.group(&mut self.account, self.group.done, &why);
        self.window.rob.push(at);
        for k in 0..self.group.members.len() {
            self.retire.finish(self.group.members[k]);
        }
        self.leave_queues(self.group.loads);
        if W::LISTENS {
            let from = self.group.lives_from.min(self.lives.len());
            self.lives[from..].iter_mut().for_each(|life| life.committed = at);
            self.group.lives_from = self.lives.len();
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn remember(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        op: &Op,
        is_last: bool,
        fetched: &Fetched,
        found: &Found,
        (dispatched, ready, issued, committed): (u64, u64, u64, u64),
    ) {
        self.lives.push(Life {
            sequence: self.sequence,
            instruction: place as u32,
            pc: instruction.pc,
            class: op.class,
            slots: op.slots,
            is_last,
            flow: if is_last { instruction.flow } else { Flow::Next },
            producers: op.sources.map(|reg| self.writers[usize::from(reg) & 63]),
            store: found.store,
            fetched: fetched.at,
            code_cycles: fetched.code_cycles,
            dispatched,
            ready,
            issued,
            completed: found.completed,
            committed,
            miss_cycles: found.miss_cycles,
            address: found.address,
            mispredicted: false,
            taken: false,
            missed_l1d: found.level > Level::L1,
            missed_l2d: found.level > Level::L2,
            missed_l1i: fetched.missed_l1,
            missed_l2i: fetched.missed_l2,
            missed_tlb: fetched.missed_tlb || found.missed_tlb,
        });
        for &target in &op.targets {
            if target != Reg::SINK.0 {
                self.writers[usize::from(target) & 63] = self.sequence;
            }
        }
    }

    /// The pc that the program will go on from, were it to stop now.
    pub fn front_cycle(&self) -> u64 {
        self.front.cycle().max(self.window.cycle())
    }
}

#[inline]
fn plain(op: &Op, issued: u64) -> Found {
    Found {
        completed: issued + u64::from(op.latency),
        cause: Cause::of_work(op.class),
        miss_cycles: 0,
        address: None,
        store: NOBODY,
        level: Level::L1,
        missed_tlb: false,
    }
}

/// Counts a mispredicted branch by what was wrong.
pub(crate) fn count_mispredict(account: &mut Account, place: usize, flow: Flow, direction: bool) {
    account.happened(place, Event::BranchMisses);
    let kind = match flow {
        _ if direction => Event::DirectionMisses,
        Flow::Return => Event::ReturnMisses,
        _ => Event::TargetMisses,
    };
    account.happened(place, kind);
}

/// Counts what a load met.
#[inline]
pub(crate) fn count_load(account: &mut Account, place: usize, outcome: &Outcome) {
    let is_plain = outcome.level == Level::L1
        && !outcome.translation.missed_l1
        && !(outcome.joined || outcome.guessed || outcome.split);
    if !is_plain {
        count_load_slowly(account, place, outcome);
    }
}

#[inline(never)]
fn count_load_slowly(account: &mut Account, place: usize, outcome: &Outcome) {
    let level = outcome.level;
    let met = [
        (level > Level::L1, Event::L1dLoadMisses),
        (level > Level::L2, Event::L2LoadMisses),
        (level == Level::Memory, Event::L3LoadMisses),
        (outcome.joined, Event::L1dJoins),
        (outcome.guessed, Event::PrefetchHits),
        (outcome.split, Event::SplitLoads),
        (outcome.translation.missed_l1, Event::DtlbLoadMisses),
        (outcome.translation.walked, Event::DtlbLoadWalks),
    ];
    for (_, event) in met.into_iter().filter(|(did, _)| *did) {
        account.happened(place, event);
    }
}

/// Counts what a store met.
pub(crate) fn count_store(account: &mut Account, place: usize, outcome: &Outcome) {
    let level = outcome.level;
    let met = [
        (level > Level::L1, Event::L1dStoreMisses),
        (level > Level::L2, Event::L2StoreMisses),
        (level == Level::Memory, Event::L3StoreMisses),
        (outcome.split, Event::SplitStores),
        (outcome.translation.missed_l1, Event::DtlbStoreMisses),
        (outcome.translation.walked, Event::DtlbStoreWalks),
    ];
    for (_, event) in met.into_iter().filter(|(did, _)| *did) {
        account.happened(place, event);
    }
}

/// Adds what the units counted.
pub(crate) fn add_memory(counts: &mut Counts, memory: &Memory) {
    let held = &memory.counts;
    for (event, count) in [
        (Event::L2Data, held.l2_data),
        (Event::L2Code, held.l2_code),
        (Event::L2Misses, held.l2_misses),
        (Event::L3Requests, held.l3),
        (Event::L3Misses, held.l3_misses),
        (Event::PrefetchL1, held.prefetches_l1),
        (Event::PrefetchL2, held.prefetches_l2),
        (Event::PrefetchUseful, held.prefetches_useful),
        (Event::PrefetchUseless, held.prefetches_useless),
        (Event::WritebacksL1, held.writebacks_l1),
        (Event::WritebacksMemory, held.writebacks_memory),
        (Event::EvictionsL1, held.evictions_l1),
        (Event::MissWait, held.wait_cycles),
        (Event::MemoryReads, held.memory_reads),
    ] {
        counts[event] = count;
    }
}

impl<W: Watcher> Accounting for FastCore<W> {
    fn settle_all(&mut self) {
        self.finish();
    }

    fn counts(&self) -> Counts {
        FastCore::counts(self)
    }

    fn account(&self) -> &Account {
        FastCore::account(self)
    }
}

impl<W: Watcher> CoreListener for FastCore<W> {
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
        self.settle(Some(first.pc));
        count_static(&mut self.account, &self.program, block.first, count, id);
        let mut left = accesses;
        for k in 0..count {
            let place = (block.first + k) as usize;
            let mine = if self.program.instructions[place].has_memory {
                Accesses::of(&mut left, k as u16)
            } else {
                Accesses::EMPTY
            };
            self.step(place, mine);
        }
    }

    fn interrupted(&mut self) {
        // What follows is no consequence of the branch before it.
        self.settle(None);
    }
}

/// Adds what a run of a block counts whatever it meets.
#[inline]
pub(crate) fn count_static(
    account: &mut Account,
    program: &Program,
    first: u32,
    count: u32,
    id: BlockId,
) {
    let Some(block) = program.blocks.get(id.0 as usize) else { return };
    if count == block.count {
        for (total, &one) in account.totals.0.iter_mut().zip(&block.counts) {
            *total += u64::from(one);
        }
        return;
    }
    for place in first..first + count {
        let Some(counts) = program.counts.get(place as usize) else { return };
        for (total, &one) in account.totals.0.iter_mut().zip(counts) {
            *total += u64::from(one);
        }
    }
}

#[cfg(test)]
mod tests;
