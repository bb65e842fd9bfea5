//! Loads and stores on the hot path.

use super::engine::{Engine, Found};
use super::group::WaitingStore;
use super::stores::Data;
use crate::cause::Cause;
use crate::core::{Accesses, Ideal, NOBODY, Piece, Watcher, count_load, count_store};
use crate::event::Event;
use crate::machine::Class;
use crate::program::{Op, StaticInstruction};
use crate::units::Level;

impl<W: Watcher> Engine<W> {
    /// Times an instruction that is a single load, on a plain machine: what `step` does, less what
    /// such an instruction cannot need.
    #[inline]
    pub(super) fn step_load(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        op: &Op,
        mut accesses: Accesses<'_>,
    ) {
        let fetched =
            self.front.fetch(&self.shape, &mut self.memory, &mut self.account, place, instruction);
        let earliest = fetched + self.shape.front;
        let (dispatched, _) =
            self.window.dispatch(&self.shape, &mut self.account, op, earliest, false);
        if op.slots > 0 {
            self.front.queue.push(dispatched);
        }
        let [a, b, c, d] = op.sources.map(|reg| self.registers[usize::from(reg) & 63]);
        let ready = (dispatched + self.shape.to_issue).max(a.max(b)).max(c.max(d));
        let issued = self.window.issue::<true>(&self.shape, op, ready);
        let (completed, cause) = self.load_simply(place, instruction, op, issued, &mut accesses);
        let available = completed + self.shape.wakeup;
        for &target in &op.targets {
            self.registers[usize::from(target) & 63] = available;
        }
        let done = completed + self.shape.to_retire;
        let gap = self.retire.op(&self.shape, &mut self.account, done, op.slots, place as u32);
        if gap > 0 {
            let why = self.why(place, dispatched, false, fetched, cause);
            self.retire.stall(&mut self.account, gap, &why);
        }
        let committed = self.retire.cycle();
        if op.slots > 0 {
            self.window.rob.push(committed);
        } else {
            self.window.rob.extend(committed);
        }
        self.window.loads.push(committed);
        self.retire.finish(place as u32);
        self.sequence += 1;
    }

    /// A load that most likely hits and meets no store.
    #[inline]
    fn load_simply(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        op: &Op,
        issued: u64,
        accesses: &mut Accesses<'_>,
    ) -> (u64, Cause) {
        if let Some(piece) = accesses.only_load()
            && self.stores.meet(piece.address, piece.size, issued).is_none()
            && self.memory.plain_load::<true>(instruction.pc, piece.address, piece.size, issued)
        {
            return (issued + self.shape.l1d + u64::from(op.latency), Cause::L1d);
        }
        let found = self.load(place, instruction, op, issued, accesses, true);
        (found.completed, found.cause)
    }

    #[inline]
    pub(super) fn load(
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
            let addressed = found.addressed.max(one.addressed);
            if one.completed > found.completed {
                found = Found { address: found.address, ..one };
            }
            found.addressed = addressed;
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
        let (mut store, mut addressed) = (NOBODY, 0);
        if let Some(met) = self.stores.meet(piece.address, piece.size, at) {
            (store, addressed) = (met.store, met.addressed);
            match met.data {
                Data::Forwarded(data, joins)
                    if joins && self.shape.renames(op.class, piece.size) =>
                {
                    // Renaming joined them: the load need not even have its address.
                    self.account.happened(place, Event::Forwards);
                    completed = (data + self.shape.renamed_forward).max(at);
                    addressed = 0;
                }
                Data::Forwarded(data, _) => {
                    self.account.happened(place, Event::Forwards);
                    completed = (at + hit + extra).max(data + self.shape.forward);
                }
                Data::Blocked(written) => {
                    self.account.happened(place, Event::BlockedForwards);
                    self.account.happened(place, Event::Replays);
                    completed = completed.max(written + hit + extra + self.shape.blocked_forward);
                }
            }
        }
        let translated = outcome.translation.missed_l1;
        Found {
            completed,
            cause: Cause::of_load(outcome.from, translated, store != NOBODY),
            miss_cycles: over as u32,
            translation_cycles: outcome.translation.cycles.min(over as u32),
            address: Some(piece.address),
            bytes: piece.size.min(64) as u8,
            store,
            addressed,
            level: outcome.level,
            from: outcome.from,
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

    pub(super) fn store_address(
        &mut self,
        place: usize,
        instruction: &StaticInstruction,
        issued: u64,
        accesses: &mut Accesses<'_>,
    ) -> Found {
        let mut found = Found::at(issued + 1, Cause::Integer);
        self.addresses_known = self.addresses_known.max(issued + 1);
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
                addressed: issued + 1,
                sequence: self.sequence,
                is_plain: false,
            });
            found.miss_cycles = found.miss_cycles.max(cycles);
            found.translation_cycles = outcome.translation.cycles.min(cycles);
            if found.address.is_none() {
                found.address = Some(piece.address);
                found.bytes = piece.size.min(64) as u8;
            }
            found.level = found.level.max(outcome.level);
            found.missed_tlb |= outcome.translation.missed_l1;
        }
        found
    }

    pub(super) fn store_data(&mut self, op: &Op, issued: u64) -> Found {
        let completed = issued + u64::from(op.latency);
        let sequence = self.sequence;
        for store in self.waiting.iter_mut().rev().take_while(|s| s.sequence + 1 == sequence) {
            store.data = store.data.max(completed);
            store.is_plain = op.class == Class::StoreData;
        }
        Found::at(completed, Cause::of_work(op.class))
    }

    /// Loads and stores whose retirement is known leave their queues.
    pub(super) fn leave_queues(&mut self, loads: u64) {
        let retired = self.retire.cycle();
        for _ in 0..loads {
            self.window.loads.push(retired);
        }
        for store in &self.waiting {
            let place = (store.address, store.size);
            let written = self.stores.write(&self.shape.writing, place, retired, store.line);
            self.window.stores.push(written);
            self.stores.remember(store, written);
        }
        self.waiting.clear();
    }
}
