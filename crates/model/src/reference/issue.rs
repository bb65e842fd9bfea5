//! Issue and execution, one cycle at a time.

use std::cmp::Reverse;

use super::ReferenceCore;
use crate::cause::Cause;
use crate::core::{Ideal, NOBODY, Piece, Watcher, count_load, count_store};
use crate::event::Event;
use crate::machine::Class;
use crate::program::{Kind, Op};
use crate::units::Level;

/// What stands between a load and its data.
enum Older {
    /// No store in flight.
    None,
    /// A store brings all of it, at a time; its number and how its address is spelt.
    Whole(u64, u64, u16),
    /// A store whose data is not there yet.
    Coming(u64),
    /// A store brings part of it and must be written first.
    Part,
}

impl<W: Watcher> ReferenceCore<W> {
    /// Sends off what is ready. Work that takes no time wakes others within the cycle.
    pub(super) fn issue(&mut self) {
        while self.wake() {
            let mut kept = 0;
            for k in 0..self.ready.len() {
                let sequence = self.ready[k];
                if !self.try_issue(sequence) {
                    self.ready[kept] = sequence;
                    kept += 1;
                }
            }
            self.ready.truncate(kept);
            if self.timed.peek().is_none_or(|Reverse((ready, _))| *ready > self.cycle) {
                return;
            }
        }
    }

    /// Moves those whose operands are there to the ready list, oldest first; whether any is there.
    fn wake(&mut self) -> bool {
        while let Some(&Reverse((ready, sequence))) = self.timed.peek() {
            if ready > self.cycle {
                break;
            }
            self.timed.pop();
            let place = self.ready.partition_point(|&other| other < sequence);
            self.ready.insert(place, sequence);
        }
        !self.ready.is_empty()
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
        if op.class == Class::Fence && self.stores.front().is_some_and(|s| s.sequence < sequence) {
            return false;
        }
        let port = match self.free_port(&op) {
            Some(port) => port,
            None => return false,
        };
        if op.kind == Kind::Load && self.must_wait(sequence) {
            return !self.ready_stays(sequence);
        }
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

    /// Whether a load meets a store that it must wait for; if its data is coming, it is told.
    fn must_wait(&mut self, sequence: u64) -> bool {
        let pieces = std::mem::take(&mut self.at_mut(sequence).pieces);
        let met: Vec<Older> = pieces.iter().map(|&piece| self.older(sequence, piece)).collect();
        self.at_mut(sequence).pieces = pieces;
        for older in met {
            match older {
                Older::Coming(data) => {
                    self.at_mut(data).consumers.push(sequence);
                    self.at_mut(sequence).unknown = 1;
                    return true;
                }
                Older::Part => return true,
                Older::None | Older::Whole(..) => {}
            }
        }
        false
    }

    /// Whether a load that must wait stays in the ready list: it polls for a store to be written.
    fn ready_stays(&self, sequence: u64) -> bool {
        self.at(sequence).unknown == 0
    }

    fn older(&self, sequence: u64, piece: Piece) -> Older {
        let overlaps = |other: &Piece| {
            other.address < piece.address.saturating_add(piece.size)
                && piece.address < other.address.saturating_add(other.size)
        };
        let older = self.stores.iter().rev().filter(|store| store.sequence < sequence);
        let Some(store) = older.into_iter().find(|store| overlaps(&store.piece)) else {
            return Older::None;
        };
        let is_whole = store.piece.address <= piece.address
            && piece.address + piece.size <= store.piece.address + store.piece.size;
        if !is_whole {
            return Older::Part;
        }
        let data = store.sequence + 1;
        if data < self.retire_at {
            return Older::Whole(0, store.sequence, store.spelling);
        }
        let entry = self.at(data);
        if entry.is_issued {
            Older::Whole(entry.completed, store.sequence, store.spelling)
        } else {
            Older::Coming(data)
        }
    }

    fn execute(&mut self, sequence: u64, op: &Op) {
        let cycle = self.cycle;
        let completed = match op.kind {
            Kind::Load => self.load(sequence, op),
            Kind::StoreAddress => self.store_address(sequence),
            _ => {
                self.at_mut(sequence).cause = Cause::of_work(op.class);
                cycle + u64::from(op.latency)
            }
        };
        self.issue_at = sequence + 1;
        self.waiting[usize::from(op.scheduler.min(8))] -= 1;
        let entry = self.at_mut(sequence);
        entry.is_issued = true;
        entry.issued = cycle;
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

    fn load(&mut self, sequence: u64, op: &Op) -> u64 {
        let hit = if self.shape.ideal.has(Ideal::L1D_LATENCY) { 0 } else { self.shape.l1d };
        let extra = u64::from(op.latency);
        let mut completed = self.cycle + hit + extra;
        self.at_mut(sequence).cause = Cause::L1d;
        let place = self.at(sequence).place as usize;
        let pc = self.program.instructions[place].pc;
        let pieces = std::mem::take(&mut self.at_mut(sequence).pieces);
        for (k, &piece) in pieces.iter().enumerate() {
            let at = self.cycle + k as u64;
            let outcome = self.memory.data::<true>(pc, piece.address, piece.size, false, at);
            if outcome.level > Level::L1 || outcome.joined {
                self.pending(at, at + u64::from(outcome.cycles));
            }
            count_load(&mut self.account, place, &outcome);
            let over = u64::from(outcome.cycles).saturating_sub(self.shape.l1d);
            let over = if self.shape.ideal.has(Ideal::DATA_MISSES) { 0 } else { over };
            let mut done = at + hit + over + extra;
            let mut store = NOBODY;
            if let Older::Whole(data, from, spelling) = self.older(sequence, piece) {
                self.account.happened(place, Event::Forwards);
                let is_renamed =
                    spelling == op.spelling && self.shape.renamed_forward < self.shape.forward;
                done = if is_renamed {
                    (data + self.shape.renamed_forward).max(at)
                } else {
                    (at + hit).max(data + self.shape.forward) + extra
                };
                store = from;
            }
            let translated = outcome.translation.missed_l1;
            let entry = self.at_mut(sequence);
            if k == 0 || done > completed {
                completed = done;
                entry.cause = Cause::of_load(outcome.level, translated, store != NOBODY);
                entry.level = outcome.level;
                entry.miss_cycles = over as u32;
                entry.store = store;
            }
            entry.missed_tlb |= translated;
        }
        self.at_mut(sequence).pieces = pieces;
        completed
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
            let piece = self.stores[k].piece;
            let outcome = self.memory.data::<true>(pc, piece.address, piece.size, true, cycle);
            count_store(&mut self.account, place, &outcome);
            let is_ideal = self.shape.ideal.has(Ideal::DATA_MISSES);
            let cycles = if is_ideal { 0 } else { outcome.cycles };
            self.stores[k].line = cycle + u64::from(cycles);
            let entry = self.at_mut(sequence);
            entry.level = entry.level.max(outcome.level);
            entry.missed_tlb |= outcome.translation.missed_l1;
        }
        self.at_mut(sequence).cause = Cause::Integer;
        cycle + 1
    }
}
