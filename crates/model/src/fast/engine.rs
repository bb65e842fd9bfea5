//! The hot path: one micro-op after the other.

use super::front::Front;
use super::group::{Group, WaitingStore};
use super::retire::Retire;
use super::stores::{Meeting, Stores};
use super::window::Window;
use crate::cause::Cause;
use crate::core::{
    Accesses, Account, Ideal, Life, NOBODY, Piece, Shape, Watcher, count_load, count_store,
};
use crate::event::Event;
use crate::machine::Class;
use crate::program::{Kind, Op, StaticInstruction};
use crate::units::Level;
use crate::units::memory::Memory;
use crate::uop::{Flow, Reg};

/// A branch whose outcome the next block will tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBranch {
    pub(super) place: usize,
    pub(super) fetched: u64,
    pub(super) completed: u64,
}

/// What executing a micro-op found.
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

impl Found {
    #[inline]
    fn at(completed: u64, cause: Cause) -> Found {
        Found {
            completed,
            cause,
            miss_cycles: 0,
            address: None,
            store: NOBODY,
            level: Level::L1,
            missed_tlb: false,
        }
    }
}

/// Everything that moves while instructions stream by.
#[derive(Clone, Debug)]
pub(super) struct Engine<W: Watcher> {
    pub(super) shape: Shape,
    pub(super) memory: Memory,
    pub(super) front: Front,
    pub(super) window: Window,
    pub(super) stores: Stores,
    pub(super) retire: Retire,
    pub(super) group: Group,
    pub(super) account: Account,
    registers: [u64; Reg::COUNT],
    writers: [u64; Reg::COUNT],
    sequence: u64,
    pub(super) branch: Option<OpenBranch>,
    waiting: Vec<WaitingStore>,
    pending_until: u64,
    pub(super) lives: Vec<Life>,
    pub(super) watcher: W,
}

impl<W: Watcher> Engine<W> {
    pub(super) fn new(shape: Shape, memory: Memory, watcher: W) -> Engine<W> {
        Engine {
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

    /// Times one instruction. `PLAIN` when the machine has no groups, keeps no order and nothing
    /// is idealised: the common case is spared the questions.
    #[inline]
    pub(super) fn step<const PLAIN: bool>(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        ops: &[Op],
        mut accesses: Accesses<'_>,
    ) {
        let fetched =
            self.front.fetch(&self.shape, &mut self.memory, &mut self.account, place, instruction);
        let mut loads_left = instruction.loads;
        let mut completed = 0;
        for (k, op) in ops.iter().enumerate() {
            let is_first = k == 0;
            if !PLAIN
                && self.shape.has_groups()
                && self.group.is_over(&self.shape, u64::from(op.slots), is_first)
            {
                self.next_group();
            }
            let is_last = k + 1 == ops.len();
            let context = (place, instruction, is_last);
            let left = &mut loads_left;
            completed = self.execute::<PLAIN>(context, op, fetched, &mut accesses, left);
        }
        if !PLAIN && self.shape.has_groups() {
            self.group.members.push(place as u32);
            self.group.loads += u64::from(instruction.loads);
        } else {
            self.retire.finish(place as u32);
            if instruction.has_memory {
                self.leave_queues(u64::from(instruction.loads));
            }
        }
        if instruction.flow.is_branch() {
            self.branch = Some(OpenBranch { place, fetched, completed });
        }
    }

    /// Times an instruction of one micro-op that meets no memory: most of a program. It does what
    /// `step` does on a plain machine, less what such an instruction cannot need.
    #[inline]
    pub(super) fn step_simply(&mut self, place: usize, instruction: &StaticInstruction, op: &Op) {
        let fetched =
            self.front.fetch(&self.shape, &mut self.memory, &mut self.account, place, instruction);
        let earliest = fetched + self.shape.front;
        let dispatched = self.window.dispatch_simply(&self.shape, &mut self.account, op, earliest);
        if op.slots > 0 {
            self.front.queue.push(dispatched);
        }
        let [a, b, c, d] = op.sources.map(|reg| self.registers[usize::from(reg) & 63]);
        let ready = (dispatched + self.shape.to_issue).max(a.max(b)).max(c.max(d));
        let issued = self.window.issue::<true>(&self.shape, op, ready);
        let completed = issued + u64::from(op.latency);
        let available = completed + self.shape.wakeup;
        for &target in &op.targets {
            self.registers[usize::from(target) & 63] = available;
        }
        let done = completed + self.shape.to_retire;
        let gap = self.retire.op(&self.shape, &mut self.account, done, op.slots, place as u32);
        if gap > 0 {
            let work = Cause::of_work(op.class);
            let why = self.why(place, dispatched, false, fetched, work);
            self.retire.stall(&mut self.account, gap, &why);
        }
        let committed = self.retire.cycle();
        if op.slots > 0 {
            self.window.rob.push(committed);
        } else {
            self.window.rob.extend(committed);
        }
        self.retire.finish(place as u32);
        self.sequence += 1;
        if op.kind == Kind::Branch {
            self.branch = Some(OpenBranch { place, fetched, completed });
        }
    }

    /// Times one micro-op. Returns when its result is there.
    #[inline(always)]
    fn execute<const PLAIN: bool>(
        &mut self,
        (place, instruction, is_last): (usize, &StaticInstruction, bool),
        op: &Op,
        fetched: u64,
        accesses: &mut Accesses<'_>,
        loads_left: &mut u8,
    ) -> u64 {
        let earliest = fetched + self.shape.front;
        let in_group = !PLAIN && self.shape.has_groups();
        let (dispatched, by_stores) =
            self.window.dispatch(&self.shape, &mut self.account, op, earliest, in_group);
        if op.slots > 0 {
            self.front.queue.push(dispatched);
        }
        let mut ready = dispatched + self.shape.to_issue;
        if PLAIN || !self.shape.ideal.has(Ideal::DEPENDENCES) {
            let [a, b, c, d] = op.sources.map(|reg| self.registers[usize::from(reg) & 63]);
            ready = ready.max(a.max(b)).max(c.max(d));
        }
        if !PLAIN && self.shape.waits_for_group {
            ready = ready.max(self.retire.cycle());
        }
        if op.class == Class::Fence {
            ready = ready.max(self.stores.drained());
        }
        let issued = self.window.issue::<PLAIN>(&self.shape, op, ready);
        let found = match op.kind {
            Kind::Plain | Kind::Branch => {
                Found::at(issued + u64::from(op.latency), Cause::of_work(op.class))
            }
            Kind::Load => {
                *loads_left = loads_left.saturating_sub(1);
                self.load(place, instruction, op, issued, accesses, *loads_left == 0)
            }
            Kind::StoreAddress => self.store_address(place, instruction, op, issued, accesses),
            Kind::StoreData => self.store_data(op, issued),
        };
        let available = found.completed + self.shape.wakeup;
        for &target in &op.targets {
            self.registers[usize::from(target) & 63] = available;
        }
        let done = found.completed + self.shape.to_retire;
        let mut committed = 0;
        if in_group {
            let why = self.why(place, dispatched, by_stores, fetched, found.cause);
            self.group.add(u64::from(op.slots), op.kind == Kind::Branch, done, &why);
        } else {
            let gap = self.retire.op(&self.shape, &mut self.account, done, op.slots, place as u32);
            if gap > 0 {
                let why = self.why(place, dispatched, by_stores, fetched, found.cause);
                self.retire.stall(&mut self.account, gap, &why);
            }
            committed = self.retire.cycle();
            if op.slots > 0 {
                self.window.rob.push(committed);
            } else {
                self.window.rob.extend(committed);
            }
        }
        if W::LISTENS {
            let times = (dispatched, ready, issued, committed);
            self.remember((place, instruction, is_last), op, fetched, &found, times);
        }
        self.sequence += 1;
        found.completed
    }

    /// What may have held a micro-op up.
    #[inline(never)]
    fn why(
        &self,
        place: usize,
        dispatched: u64,
        by_stores: bool,
        fetched: u64,
        work: Cause,
    ) -> super::retire::Why {
        let front_is_fresh = fetched <= self.front.since + 1;
        super::retire::Why {
            instruction: place as u32,
            dispatched,
            front: match (by_stores, front_is_fresh) {
                (true, _) => Cause::Store,
                (false, true) => self.front.cause,
                (false, false) => Cause::Fetch,
            },
            blame: self.front.blame,
            work,
        }
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
        let Some(piece) = accesses.next(false) else {
            return Found::at(issued + hit + extra, Cause::L1d);
        };
        let found = self.load_piece(place, instruction.pc, op, piece, issued, hit);
        if takes_rest && accesses.has_more() {
            return self.load_rest((place, instruction.pc), op, accesses, found, issued, hit);
        }
        found
    }

    /// The other pieces of a gather or a string move, one a cycle.
    #[cold]
    fn load_rest(
        &mut self,
        (place, pc): (usize, u64),
        op: &Op,
        accesses: &mut Accesses<'_>,
        mut found: Found,
        issued: u64,
        hit: u64,
    ) -> Found {
        let mut at = issued;
        while let Some(piece) = accesses.next(false) {
            at += 1;
            let one = self.load_piece(place, pc, op, piece, at, hit);
            if one.completed > found.completed {
                found = Found { address: found.address, ..one };
            }
        }
        found
    }

    #[inline(always)]
    fn load_piece(
        &mut self,
        place: usize,
        pc: u64,
        op: &Op,
        piece: Piece,
        at: u64,
        hit: u64,
    ) -> Found {
        let extra = u64::from(op.latency);
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
            Some(Meeting::Forwarded(data, sequence, spelling)) => {
                self.account.happened(place, Event::Forwards);
                completed =
                    if spelling == op.spelling && self.shape.renamed_forward < self.shape.forward {
                        // Renaming joined them: the load need not even have its address.
                        data + self.shape.renamed_forward
                    } else {
                        (at + hit).max(data + self.shape.forward) + extra
                    };
                completed = completed.max(at);
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
        op: &Op,
        issued: u64,
        accesses: &mut Accesses<'_>,
    ) -> Found {
        let mut found = Found::at(issued + 1, Cause::Integer);
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
                spelling: op.spelling,
            });
            found.address = found.address.or(Some(piece.address));
            found.level = found.level.max(outcome.level);
            found.missed_tlb |= outcome.translation.missed_l1;
        }
        found
    }

    fn store_data(&mut self, op: &Op, issued: u64) -> Found {
        let completed = issued + u64::from(op.latency);
        let sequence = self.sequence;
        for store in self.waiting.iter_mut().rev().take_while(|s| s.sequence + 1 == sequence) {
            store.data = store.data.max(completed);
        }
        Found::at(completed, Cause::of_work(op.class))
    }

    /// Loads and stores whose retirement is known leave their queues.
    fn leave_queues(&mut self, loads: u64) {
        let retired = self.retire.cycle();
        for _ in 0..loads {
            self.window.loads.push(retired);
        }
        for store in &self.waiting {
            let written = self.stores.write(self.shape.stores_per_cycle, retired, store.line);
            self.window.stores.push(written);
            self.stores.remember(
                store.address,
                store.size,
                store.data,
                written,
                store.sequence,
                store.spelling,
            );
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

    pub(super) fn close_group(&mut self) {
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

    /// Tells the watcher the lives that are complete, the last one's branch being settled.
    #[inline]
    pub(super) fn tell(&mut self, taken: bool, mispredicted: bool) {
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

    fn remember(
        &mut self,
        (place, instruction, is_last): (usize, &StaticInstruction, bool),
        op: &Op,
        fetched: u64,
        found: &Found,
        (dispatched, ready, issued, committed): (u64, u64, u64, u64),
    ) {
        let met = if is_last { std::mem::take(&mut self.front.met) } else { self.front.met };
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
            fetched,
            code_cycles: met.code_cycles,
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
            missed_l1i: met.missed_l1,
            missed_l2i: met.missed_l2,
            missed_tlb: met.missed_tlb || found.missed_tlb,
        });
        for &target in &op.targets {
            if target != Reg::SINK.0 {
                self.writers[usize::from(target) & 63] = self.sequence;
            }
        }
    }
}
