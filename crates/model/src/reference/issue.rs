//! Issue and execution, one cycle at a time.

use std::cmp::Reverse;

use super::ReferenceCore;
use super::entry::QueuedStore;
use crate::cause::Cause;
use crate::core::{Ideal, NOBODY, Piece, Watcher, count_load, count_store};
use crate::event::Event;
use crate::machine::Class;
use crate::program::{Kind, Op};
use crate::units::Level;

/// What stands between a load and its data.
#[derive(Clone, Copy)]
enum Older {
    /// No store in flight.
    None,
    /// A store brings all of it, at a time; its number and whether renaming may join the two.
    Whole(u64, u64, bool),
    /// The same, but when its data will be there is not known yet.
    Coming(u64, bool),
    /// A store brings part of it and must be written first.
    Part(u64),
}

/// What a load that asked the cache knows.
struct Asked {
    /// When its data is there, as far as the cache goes.
    done: u64,
    level: Level,
    from: Level,
    missed_tlb: bool,
    /// Cycles beyond a hit; of them, those of the translation.
    over: u64,
    translation_cycles: u32,
}

/// A load that has issued and waits for an older store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) load: u64,
    store: u64,
    /// Whether it waits for the store to be written, or for its data alone.
    is_blocked: bool,
    /// When the piece that waits was asked for.
    at: u64,
    is_renamed: bool,
}

impl<W: Watcher> ReferenceCore<W> {
    /// Issues what it can. A result that takes no time wakes others within the cycle.
    pub(super) fn issue(&mut self) {
        let mut is_first = true;
        while self.wake() || is_first {
            is_first = false;
            let mut kept = 0;
            for k in 0..self.ready.len() {
                let sequence = self.ready[k];
                if !self.try_issue(sequence) {
                    self.ready[kept] = sequence;
                    kept += 1;
                }
            }
            self.ready.truncate(kept);
        }
    }

    /// Moves those whose operands are there to the ready list, oldest first; tells whether any.
    ///
    /// What takes neither a port nor time, as a move that renaming does, is done at once: whoever
    /// waits for it comes to the ports by its age like all others, not behind younger ones.
    fn wake(&mut self) -> bool {
        let before = self.ready.len();
        let keeps_order = self.shape.in_order || self.shape.waits_for_group;
        while let Some(&Reverse((ready, sequence))) = self.timed.peek() {
            if ready > self.cycle {
                break;
            }
            self.timed.pop();
            let op = self.at(sequence).op;
            if op.ports == 0 && op.latency == 0 && op.class != Class::Fence && !keeps_order {
                self.execute(sequence, &op);
                continue;
            }
            let place = self.ready.partition_point(|&other| other < sequence);
            self.ready.insert(place, sequence);
        }
        self.ready.len() > before
    }

    /// Issues a micro-op if a port is free; returns whether it left the ready list.
    fn try_issue(&mut self, sequence: u64) -> bool {
        let entry = self.at(sequence);
        let op = entry.op;
        if self.shape.in_order && sequence != self.issue_at {
            return false;
        }
        if self.shape.waits_for_group && entry.group > self.groups_retired + 1 {
            return false;
        }
        if op.class == Class::Fence && self.has_to_drain(sequence) {
            return false;
        }
        if op.kind == Kind::Load && self.is_held_back(sequence) {
            return false;
        }
        let port = match self.free_port(&op) {
            Some(port) => port,
            None => return false,
        };
        if let Some(port) = port {
            self.ports[port] = self.cycle + u64::from(op.busy);
        }
        self.execute(sequence, &op);
        true
    }

    /// A port that is free now: `Some(None)` when none is needed.
    fn free_port(&self, op: &Op) -> Option<Option<usize>> {
        if op.ports == 0 {
            return Some(None);
        }
        let mut left = op.ports;
        while left != 0 {
            let port = left.trailing_zeros() as usize;
            if self.ports[port] <= self.cycle {
                return Some(Some(port));
            }
            left &= left - 1;
        }
        None
    }

    /// Whether older stores have yet to be written before a fence. Those of its own group are not
    /// waited for: they retire with it, and are written after that.
    fn has_to_drain(&self, fence: u64) -> bool {
        let first = self.stores.front().map(|store| store.sequence);
        first.is_some_and(|store| store < fence && !self.share_a_group(store, fence))
    }

    /// Whether an older store retires together with a younger micro-op: its data does, which may be
    /// a group behind its address.
    fn share_a_group(&self, store: u64, younger: u64) -> bool {
        let data = store + 1;
        self.shape.has_groups()
            && data >= self.retire_at
            && self.at(data).group == self.at(younger).group
    }

    /// The store in flight that a load depends on: the latest that is older and overlaps it.
    pub(super) fn source(&self, sequence: u64, piece: Piece) -> Option<&QueuedStore> {
        let overlaps = |other: &Piece| {
            other.address < piece.address.saturating_add(piece.size)
                && piece.address < other.address.saturating_add(other.size)
        };
        let mut older = self.stores.iter().rev().filter(|store| store.sequence < sequence);
        older.find(|store| overlaps(&store.piece))
    }

    fn older(&self, sequence: u64, piece: Piece) -> Older {
        let Some(store) = self.source(sequence, piece) else { return Older::None };
        let is_whole = store.piece.address <= piece.address
            && piece.address + piece.size <= store.piece.address + store.piece.size;
        // A store of the load's own group is written only after both have retired: whatever the
        // load lacks of it is taken to come with the store's data.
        if !is_whole && !self.share_a_group(store.sequence, sequence) {
            return Older::Part(store.sequence);
        }
        let joins = is_whole && store.is_plain && store.piece.address == piece.address;
        match self.stored(store.sequence) {
            Some(data) => Older::Whole(data, store.sequence, joins),
            None => Older::Coming(store.sequence, joins),
        }
    }

    /// When address and data of a store are both there, if that is known.
    fn stored(&self, store: u64) -> Option<u64> {
        if store + 1 < self.retire_at {
            return Some(0);
        }
        let (address, data) = (self.at(store), self.at(store + 1));
        let is_known = (store < self.retire_at || address.is_timed()) && data.is_timed();
        is_known.then(|| address.completed.max(data.completed))
    }

    fn execute(&mut self, sequence: u64, op: &Op) {
        let cycle = self.cycle;
        let entry = self.at_mut(sequence);
        entry.is_issued = true;
        entry.issued = cycle;
        entry.completed = u64::MAX;
        self.issue_at = sequence + 1;
        self.waiting[usize::from(op.scheduler.min(8))] -= 1;
        match op.kind {
            Kind::Load => self.load(sequence, op),
            Kind::StoreAddress => {
                let completed = self.store_address(sequence);
                self.complete(sequence, completed);
                self.release_stored(sequence);
            }
            _ => {
                self.at_mut(sequence).cause = Cause::of_work(op.class);
                self.complete(sequence, cycle + u64::from(op.latency));
                if op.kind == Kind::StoreData {
                    self.release_stored(sequence - 1);
                }
            }
        }
    }

    /// The time of a result is known: whoever waits for it is told.
    fn complete(&mut self, sequence: u64, completed: u64) {
        let entry = self.at_mut(sequence);
        entry.completed = completed;
        let consumers = std::mem::take(&mut entry.consumers);
        let available = completed + self.shape.wakeup;
        for &consumer in &consumers {
            let waiting = self.at_mut(consumer);
            waiting.ready = waiting.ready.max(available);
            waiting.unknown -= 1;
            if waiting.unknown == 0 {
                let ready = waiting.ready;
                self.timed.push(Reverse((ready, consumer)));
            }
        }
        self.at_mut(sequence).consumers = consumers;
    }

    /// A load goes to the cache as soon as its address is there, and waits for an older store
    /// there, not in the scheduler.
    fn load(&mut self, sequence: u64, op: &Op) {
        let extra = u64::from(op.latency);
        let pieces = std::mem::take(&mut self.at_mut(sequence).pieces);
        let mut completed = self.cycle + self.hit_cycles() + extra;
        self.at_mut(sequence).cause = Cause::L1d;
        for (k, &piece) in pieces.iter().enumerate() {
            let at = self.cycle + k as u64;
            let asked = self.ask(sequence, piece, at, extra);
            let (store, there) = self.meet(sequence, op, piece, at).unwrap_or((NOBODY, None));
            let done = there.unwrap_or(asked.done);
            let entry = self.at_mut(sequence);
            if k == 0 || done > completed {
                completed = done;
                entry.cause = Cause::of_load(asked.from, asked.missed_tlb, store != NOBODY);
                entry.level = asked.level;
                entry.from = asked.from;
                entry.miss_cycles = asked.over as u32;
                entry.translation_cycles = asked.translation_cycles.min(asked.over as u32);
                entry.store = store;
            }
            entry.missed_tlb |= asked.missed_tlb;
            entry.arrived = entry.arrived.max(asked.done);
        }
        self.at_mut(sequence).pieces = pieces;
        match self.held.iter().any(|held| held.load == sequence) {
            true => self.at_mut(sequence).known = completed,
            false => self.complete(sequence, completed),
        }
    }

    /// Asks the cache for a piece of a load. One that is done again waits for what it asked before.
    fn ask(&mut self, sequence: u64, piece: Piece, at: u64, extra: u64) -> Asked {
        let hit = self.hit_cycles();
        let entry = self.at(sequence);
        let place = entry.place as usize;
        if entry.is_again {
            return Asked {
                done: (at + hit + extra).max(entry.arrived),
                level: entry.level,
                from: entry.from,
                missed_tlb: entry.missed_tlb,
                over: u64::from(entry.miss_cycles),
                translation_cycles: entry.translation_cycles,
            };
        }
        let pc = self.program.instructions[place].pc;
        let outcome = self.memory.data::<true>(pc, piece.address, piece.size, false, at);
        if outcome.level > Level::L1 || outcome.joined {
            self.pending(at, at + u64::from(outcome.cycles));
        }
        count_load(&mut self.account, place, &outcome);
        let over = u64::from(outcome.cycles).saturating_sub(self.shape.l1d);
        let over = if self.shape.ideal.has(Ideal::DATA_MISSES) { 0 } else { over };
        Asked {
            done: at + hit + over + extra,
            level: outcome.level,
            from: outcome.from,
            missed_tlb: outcome.translation.missed_l1,
            over,
            translation_cycles: outcome.translation.cycles,
        }
    }

    /// The older store that a piece of a load meets, and when it has its data from there: 0 while
    /// that is not known, none where it has the cache's data as well. A store that it wrongly
    /// overtakes it does not meet.
    fn meet(
        &mut self,
        sequence: u64,
        op: &Op,
        piece: Piece,
        at: u64,
    ) -> Option<(u64, Option<u64>)> {
        let older = self.older(sequence, piece);
        let renames = self.shape.renames(op.class, piece.size);
        let (store, joins) = match older {
            Older::None => return None,
            Older::Whole(_, store, joins) | Older::Coming(store, joins) => {
                (store, joins && renames)
            }
            Older::Part(store) => (store, false),
        };
        if !joins && self.overtakes(sequence, store) {
            return None;
        }
        self.count_meeting(sequence, matches!(older, Older::Part(_)));
        let there = match older {
            Older::Whole(data, ..) => Some(self.forwarded(data, at, u64::from(op.latency), joins)),
            Older::Coming(..) => Some(0),
            Older::Part(_) | Older::None => None,
        };
        if !matches!(older, Older::Whole(..)) {
            let is_blocked = matches!(older, Older::Part(_));
            self.held.push(Waiting { load: sequence, store, is_blocked, at, is_renamed: joins });
        }
        Some((store, there))
    }

    /// Counts that a load met a store; once, though it be done again.
    fn count_meeting(&mut self, sequence: u64, is_blocked: bool) {
        let may_come_again = self.ordering.is_some();
        let entry = self.at_mut(sequence);
        let place = entry.place as usize;
        if std::mem::replace(&mut entry.is_counted, may_come_again) {
            return;
        }
        if is_blocked {
            self.account.happened(place, Event::BlockedForwards);
            self.account.happened(place, Event::Replays);
        } else {
            self.account.happened(place, Event::Forwards);
        }
    }

    fn hit_cycles(&self) -> u64 {
        if self.shape.ideal.has(Ideal::L1D_LATENCY) { 0 } else { self.shape.l1d }
    }

    /// When a load that asked at a time has the data of an older store.
    fn forwarded(&self, data: u64, at: u64, extra: u64, is_renamed: bool) -> u64 {
        if is_renamed {
            return (data + self.shape.renamed_forward).max(at);
        }
        (at + self.hit_cycles() + extra).max(data + self.shape.forward)
    }

    /// Lets loads go that waited for a store's data once address and data are there.
    fn release_stored(&mut self, store: u64) {
        let is_whole = store + 1 < self.dispatch_at;
        if let Some(data) = self.stored(store).filter(|_| is_whole && !self.held.is_empty()) {
            self.release(store, false, data);
        }
    }

    /// Lets loads go that waited for a store's data, or for it to be written.
    pub(super) fn release(&mut self, store: u64, is_written: bool, at: u64) {
        if self.held.is_empty() {
            return;
        }
        let (freed, held): (Vec<Waiting>, Vec<Waiting>) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|held| held.store == store && held.is_blocked == is_written);
        self.held = held;
        for one in &freed {
            let extra = u64::from(self.at(one.load).op.latency);
            let done = match is_written {
                true => at + self.hit_cycles() + extra + self.shape.blocked_forward,
                false => self.forwarded(at, one.at, extra, one.is_renamed),
            };
            let entry = self.at_mut(one.load);
            if done > entry.known {
                entry.known = done;
                entry.cause = Cause::Forward;
                entry.store = store;
            }
        }
        for one in &freed {
            let entry = self.at(one.load);
            let (is_open, known) = (entry.completed == u64::MAX, entry.known);
            if is_open && !self.held.iter().any(|held| held.load == one.load) {
                self.complete(one.load, known);
            }
        }
    }

    fn pending(&mut self, from: u64, to: u64) {
        let from = from.max(self.pending_until);
        if to > from {
            self.account.totals[Event::L1dPending] += to - from;
            self.pending_until = to;
        }
    }

    fn store_address(&mut self, sequence: u64) -> u64 {
        let cycle = self.cycle;
        let place = self.at(sequence).place as usize;
        let pc = self.program.instructions[place].pc;
        for k in 0..self.stores.len() {
            if self.stores[k].sequence != sequence {
                continue;
            }
            if self.at(sequence).is_again {
                self.stores[k].line = self.at(sequence).arrived.max(cycle);
                continue;
            }
            let piece = self.stores[k].piece;
            let outcome = self.memory.data::<true>(pc, piece.address, piece.size, true, cycle);
            count_store(&mut self.account, place, &outcome);
            let is_ideal = self.shape.ideal.has(Ideal::DATA_MISSES);
            let cycles = if is_ideal { 0 } else { outcome.cycles };
            self.stores[k].line = cycle + u64::from(cycles);
            let entry = self.at_mut(sequence);
            entry.arrived = entry.arrived.max(cycle + u64::from(cycles));
            entry.miss_cycles = entry.miss_cycles.max(cycles);
            entry.translation_cycles = outcome.translation.cycles.min(cycles);
            entry.level = entry.level.max(outcome.level);
            entry.missed_tlb |= outcome.translation.missed_l1;
        }
        self.at_mut(sequence).cause = Cause::Integer;
        if self.ordering.is_some() {
            self.addressed.push(sequence);
        }
        cycle + 1
    }
}
