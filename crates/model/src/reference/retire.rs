//! Retirement, one cycle at a time, and who owns each cycle.

use super::ReferenceCore;
use crate::cause::Cause;
use crate::core::{Life, TICKS, Watcher};
use crate::event::Event;
use crate::program::Kind;
use crate::uop::Flow;

/// The stall under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Stall {
    pub(super) cycles: u64,
    /// The window was empty at its start, for this cause.
    front: Option<Cause>,
}

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
        let cause = self.at(first).cause;
        self.end_stall(cause);
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
        entry.is_issued && entry.completed + self.shape.to_retire <= self.cycle
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
            Kind::Load => self.loads -= 1,
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
        let is_empty = self.retire_at == self.dispatch_at;
        self.account.totals[Event::StallCycles] += 1;
        self.stall.cycles += 1;
        let refill = self.shape.to_issue + self.shape.to_retire + 1;
        let (cause, owner) = if is_empty {
            let (cause, owner) = self.front_blame();
            self.stall.front = Some(cause);
            (cause, owner)
        } else {
            let oldest = self.at(self.retire_at);
            let is_refill = self.cycle <= oldest.dispatched + refill;
            match self.stall.front {
                Some(front) if is_refill => {
                    let owner =
                        if front == Cause::Mispredict { oldest.front.1 } else { oldest.place };
                    (front, owner)
                }
                _ => (self.work_of(self.retire_at), oldest.place),
            }
        };
        self.account.totals[cause.exact_event()] += 1;
        self.account.took(owner as usize, TICKS);
    }

    /// What the oldest micro-op is busy with, whether or not it has issued.
    fn work_of(&self, sequence: u64) -> Cause {
        let entry = self.at(sequence);
        if entry.is_issued {
            return entry.cause;
        }
        match entry.op.kind {
            Kind::Load => Cause::L1d,
            _ => Cause::of_work(entry.op.class),
        }
    }

    /// Why the window is empty, and whose cycle it is.
    fn front_blame(&self) -> (Cause, u32) {
        if self.dispatch_at < self.fetch_at {
            let next = self.at(self.dispatch_at);
            let cause = if next.by_stores { Cause::Store } else { next.front.0 };
            let owner = if cause == Cause::Mispredict { next.front.1 } else { next.place };
            return (cause, owner);
        }
        let next = self.arrivals.front().map_or(0, |arrival| arrival.place);
        if let Some(branch) = self.fetch.waits_for {
            return (Cause::Mispredict, self.at(branch).place);
        }
        let (cause, blame) = self.fetch.blame();
        (cause, if cause == Cause::Mispredict { blame } else { next })
    }

    /// Charges a whole stall to what ended it, as a stall counter does.
    pub(super) fn end_stall(&mut self, work: Cause) {
        let stall = std::mem::take(&mut self.stall);
        let cause = stall.front.unwrap_or(work);
        self.account.totals[cause.charged_event()] += stall.cycles;
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
            is_last: entry.is_last,
            flow: if entry.is_last { instruction.flow } else { Flow::Next },
            producers: entry.producers,
            store: entry.store,
            fetched: entry.fetched,
            code_cycles: entry.met.code_cycles,
            dispatched: entry.dispatched,
            ready: entry.ready,
            issued: entry.issued,
            completed: entry.completed,
            committed: self.cycle,
            miss_cycles: entry.miss_cycles,
            address: entry.pieces.first().map(|piece| piece.address),
            mispredicted: entry.mispredicted,
            taken: entry.taken,
            missed_l1d: entry.level > crate::units::Level::L1,
            missed_l2d: entry.level > crate::units::Level::L2,
            missed_l1i: entry.met.missed_l1,
            missed_l2i: entry.met.missed_l2,
            missed_tlb: entry.met.missed_tlb || entry.missed_tlb,
        }
    }
}
