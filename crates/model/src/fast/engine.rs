//! The hot path: one micro-op after the other.

use super::front::Front;
use super::group::{Group, WaitingStore};
use super::ordering::Times;
use super::retire::Retire;
use super::stores::Stores;
use super::window::Window;
use crate::cause::Cause;
use crate::core::{Accesses, Account, Ideal, Life, NOBODY, Shape, Watcher, Why};
use crate::machine::Class;
use crate::program::{Kind, Op, StaticInstruction};
use crate::units::Level;
use crate::units::memory::Memory;
use crate::units::ordering::Ordering;
use crate::uop::Reg;

/// A branch whose outcome the next block will tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBranch {
    pub(super) place: usize,
    pub(super) fetched: u64,
    pub(super) completed: u64,
}

/// What executing a micro-op found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) completed: u64,
    pub(super) cause: Cause,
    pub(super) miss_cycles: u32,
    pub(super) translation_cycles: u32,
    pub(super) address: Option<u64>,
    pub(super) bytes: u8,
    pub(super) store: u64,
    /// Of a load that met a store, when that store's address was known; 0 where it need not be.
    pub(super) addressed: u64,
    pub(super) level: Level,
    pub(super) from: Level,
    pub(super) missed_tlb: bool,
}

impl Found {
    #[inline]
    pub(super) fn at(completed: u64, cause: Cause) -> Found {
        Found {
            completed,
            cause,
            miss_cycles: 0,
            translation_cycles: 0,
            address: None,
            bytes: 0,
            store: NOBODY,
            addressed: 0,
            level: Level::L1,
            from: Level::L1,
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
    pub(super) registers: [u64; Reg::COUNT],
    pub(super) writers: [u64; Reg::COUNT],
    pub(super) sequence: u64,
    pub(super) branch: Option<OpenBranch>,
    pub(super) waiting: Vec<WaitingStore>,
    /// Which loads go ahead; none where they know whom they depend on.
    pub(super) ordering: Option<Ordering>,
    /// When the addresses of all stores so far are known.
    pub(super) addresses_known: u64,
    pub(super) pending_until: u64,
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
            ordering: shape.disambiguation.map(Ordering::new),
            addresses_known: 0,
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
        let (mut dispatched, by_stores) =
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
        let free = ready;
        if op.kind == Kind::Load && self.ordering.is_some() {
            ready = self.hold_back(place, instruction.pc, ready);
        }
        let mut issued = self.window.issue::<PLAIN>(&self.shape, op, ready);
        let mut found = match op.kind {
            Kind::Plain | Kind::Branch => {
                Found::at(issued + u64::from(op.latency), Cause::of_work(op.class))
            }
            Kind::Load => {
                *loads_left = loads_left.saturating_sub(1);
                self.load(place, instruction, op, issued, accesses, *loads_left == 0)
            }
            Kind::StoreAddress => self.store_address(place, instruction, issued, accesses),
            Kind::StoreData => self.store_data(op, issued),
        };
        let mut is_harmed = false;
        if op.kind == Kind::Load && self.ordering.is_some() {
            let times = Times { free, ready, issued };
            is_harmed = times.are_harmed_by(found.addressed);
            if let Some(again) = self.look_back(place, op, times, &mut found) {
                (dispatched, ready, issued) = (again.dispatched, again.ready, again.issued);
            }
        }
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
                if W::LISTENS {
                    self.watcher.stalled(&self.retire.told(gap, &why));
                }
            }
            committed = self.retire.cycle();
            if op.slots > 0 {
                self.window.rob.push(committed);
            } else {
                self.window.rob.extend(committed);
            }
            if op.kind == Kind::Load && self.ordering.is_some() {
                self.learn_from(instruction.pc, is_harmed, committed);
            }
        }
        if W::LISTENS && self.watcher.is_listening() {
            let times = (dispatched, ready, issued, committed);
            self.remember((place, instruction, is_last), op, fetched, &found, times);
        }
        self.sequence += 1;
        found.completed
    }

    /// What may have held a micro-op up.
    #[inline(never)]
    pub(super) fn why(
        &self,
        place: usize,
        dispatched: u64,
        by_stores: bool,
        fetched: u64,
        work: Cause,
    ) -> Why {
        let front_is_fresh = fetched <= self.front.since + 1;
        Why {
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
}
