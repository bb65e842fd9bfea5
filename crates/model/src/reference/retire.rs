//! Retirement, one cycle at a time, and who owns each cycle.

use super::ReferenceCore;
use crate::cause::Cause;
use crate::core::{Life, TICKS, Watcher, Why, refill};
use crate::event::Event;
use crate::program::Kind;
use crate::uop::Flow;

impl<W: Watcher> ReferenceCore<W> {
    pub(super) fn retire(&mut self) {
        let mut members: Vec<u32> = Vec::new();
        let first = self.retire_at;
        if self.shape.has_groups() {
            self.retire_group(&mut members);
        } else {
            let mut slots = 0;
            while self.retire_at < self.dispatch_at {
                let entry = self.at(self.retire_at);
                let needed = u64::from(entry.op.slots);
                if !self.may_retire(self.retire_at) || slots + needed > self.shape.retire_width {
                    break;
                }
                slots += needed;
                self.in_flight -= usize::from(entry.op.slots);
                self.leave(&mut members);
            }
        }
        if self.retire_at == first {
            self.stalled();
            return;
        }
        self.end_stall(first);
        self.account.totals[Event::RetireCycles] += 1;
        match members.first() {
            Some(_) => self.account.share(&members),
            None => {
                let place = self.at(first).place;
                self.account.took(place as usize, TICKS);
            }
        }
    }

    fn may_retire(&self, sequence: u64) -> bool {
        let entry = self.at(sequence);
        entry.is_timed() && entry.completed + self.shape.to_retire <= self.cycle
    }

    /// Retires the oldest group if it is complete: all of it is dispatched and done.
    fn retire_group(&mut self, members: &mut Vec<u32>) {
        if self.retire_at == self.dispatch_at {
            return;
        }
        let group = self.at(self.retire_at).group;
        let mut end = self.retire_at;
        while end < self.dispatch_at && self.at(end).group == group {
            if !self.may_retire(end) {
                return;
            }
            end += 1;
        }
        // A younger group may be open already, still empty.
        if self.group.number == group {
            if !self.group_is_whole() {
                return;
            }
            self.group.is_open = false;
        }
        while self.retire_at < end {
            self.leave(members);
        }
        self.in_flight -= 1;
        self.groups_retired = group;
    }

    /// Whether nothing more will join the youngest group.
    fn group_is_whole(&self) -> bool {
        let newest = self.at(self.dispatch_at - 1);
        // A group that has waited for a cycle is sent off as it is.
        self.group.slots >= self.shape.group_slots
            || self.group.branches >= self.shape.group_branches
            || self.shape.is_single && newest.is_last
            || self.cycle > newest.dispatched + 1
    }

    fn leave(&mut self, members: &mut Vec<u32>) {
        let sequence = self.retire_at;
        self.retire_at += 1;
        let cycle = self.cycle;
        let entry = self.at(sequence);
        let (place, kind, is_last) = (entry.place, entry.op.kind, entry.is_last);
        if is_last {
            members.push(place);
        }
        match kind {
            Kind::Load => {
                self.loads -= 1;
                let is_harmed = self.at(sequence).is_harmed;
                let pc = self.program.instructions[place as usize].pc;
                if let Some(ordering) = &mut self.ordering {
                    ordering.learn(pc, is_harmed, cycle);
                }
            }
            Kind::StoreData => {
                for store in self.stores.iter_mut().filter(|s| s.sequence + 1 == sequence) {
                    store.retired = cycle;
                }
            }
            _ => {}
        }
        if W::LISTENS {
            let life = self.life(sequence);
            self.watcher.lived(&life);
        }
    }

    fn stalled(&mut self) {
        if self.fetch_at == 0 && self.retire_at == 0 && self.arrivals.is_empty() {
            return;
        }
        self.stall_cycles += 1;
    }

    /// Charges the stall that has just ended to the micro-op that ended it: the first to leave, or
    /// the last of its group to be done.
    fn end_stall(&mut self, first: u64) {
        let cycles = std::mem::take(&mut self.stall_cycles);
        if cycles == 0 {
            return;
        }
        let ended = if self.shape.has_groups() {
            (first..self.retire_at).max_by_key(|&k| self.at(k).completed).unwrap_or(first)
        } else {
            first
        };
        let entry = self.at(ended);
        let why = Why {
            instruction: entry.place,
            dispatched: entry.dispatched,
            front: if entry.by_stores { Cause::Store } else { entry.front.0 },
            blame: entry.front.1,
            work: entry.cause,
        };
        let before = self.cycle - cycles - 1;
        why.charge(&mut self.account, refill(&self.shape), before, cycles);
        if W::LISTENS {
            self.watcher.stalled(&why.told(refill(&self.shape), before, cycles));
        }
    }

    fn life(&self, sequence: u64) -> Life {
        let entry = self.at(sequence);
        let instruction = &self.program.instructions[entry.place as usize];
        Life {
            sequence,
            instruction: entry.place,
            pc: instruction.pc,
            class: entry.op.class,
            slots: entry.op.slots,
            instruction_slots: instruction.slots,
            is_last: entry.is_last,
            flow: if entry.is_last { instruction.flow } else { Flow::Next },
            producers: entry.producers,
            store: entry.store,
            fetched: entry.fetched,
            code_cycles: entry.met.code_cycles,
            code_translation_cycles: entry.met.translation_cycles,
            dispatched: entry.dispatched,
            ready: entry.ready,
            issued: entry.issued,
            completed: entry.completed,
            committed: self.cycle,
            miss_cycles: entry.miss_cycles,
            translation_cycles: entry.translation_cycles,
            level: entry.level,
            from: entry.from,
            address: entry.pieces.first().map(|piece| piece.address),
            bytes: entry.pieces.first().map_or(0, |piece| piece.size.min(64) as u8),
            mispredicted: entry.mispredicted,
            resteered: entry.resteered,
            taken: entry.taken,
            missed_l1d: entry.level > crate::units::Level::L1,
            missed_l2d: entry.level > crate::units::Level::L2,
            missed_l1i: entry.met.missed_l1,
            missed_l2i: entry.met.missed_l2,
            missed_tlb: entry.met.missed_tlb || entry.missed_tlb,
        }
    }
}
