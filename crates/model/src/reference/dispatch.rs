//! Dispatch, one cycle at a time.

use std::cmp::Reverse;

use super::ReferenceCore;
use super::entry::QueuedStore;
use crate::core::{Ideal, NOBODY, Watcher};
use crate::event::Event;
use crate::machine::Class;
use crate::program::Kind;
use crate::uop::Reg;

/// The group that is being put together.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenGroup {
    pub(super) number: u64,
    pub(super) is_open: bool,
    pub(super) slots: u64,
    pub(super) branches: u64,
    /// Micro-ops in it.
    ops: u64,
}

impl<W: Watcher> ReferenceCore<W> {
    pub(super) fn dispatch(&mut self) {
        let mut slots = 0;
        let mut opened = false;
        while self.dispatch_at < self.fetch_at {
            let entry = self.at(self.dispatch_at);
            if self.cycle < (entry.fetched + self.shape.front).max(entry.not_before) {
                return;
            }
            let (op, is_first) = (entry.op, entry.is_first);
            if self.shape.has_groups() {
                if self.group_is_over(u64::from(op.slots), is_first) {
                    // One group a cycle.
                    if opened || !self.open_group() {
                        return;
                    }
                    opened = true;
                }
            } else if op.slots > 0 {
                if slots + u64::from(op.slots) > self.shape.dispatch_width {
                    return;
                }
                if self.in_flight >= self.shape.rob {
                    self.account.totals[Event::RobFull] += 1;
                    return;
                }
            }
            if !self.has_room(op.kind, op.scheduler) {
                return;
            }
            slots += u64::from(op.slots);
            self.enter_window();
        }
    }

    fn group_is_over(&self, slots: u64, starts_instruction: bool) -> bool {
        if self.group.is_open && self.group.ops == 0 {
            return false;
        }
        !self.group.is_open
            || self.group.slots + slots > self.shape.group_slots
            || self.group.branches >= self.shape.group_branches
            || self.shape.is_single && starts_instruction
    }

    fn open_group(&mut self) -> bool {
        if self.in_flight >= self.shape.rob {
            self.account.totals[Event::RobFull] += 1;
            return false;
        }
        let number = self.group.number + 1;
        self.group = OpenGroup { number, is_open: true, ..OpenGroup::default() };
        self.in_flight += 1;
        true
    }

    /// Whether the queues and the scheduler have room; counts what is full.
    fn has_room(&mut self, kind: Kind, scheduler: u8) -> bool {
        let full = if kind == Kind::Load && self.loads >= self.shape.load_queue {
            Event::LoadQueueFull
        } else if kind == Kind::StoreAddress && self.stores.len() >= self.shape.store_queue {
            let at = self.dispatch_at;
            self.at_mut(at).by_stores = true;
            Event::StoreQueueFull
        } else if scheduler < 8 && self.scheduler_is_full(scheduler) {
            Event::SchedulerFull
        } else {
            return true;
        };
        self.account.totals[full] += 1;
        false
    }

    fn scheduler_is_full(&self, scheduler: u8) -> bool {
        let limit = self.shape.schedulers[usize::from(scheduler)];
        limit < u8::MAX && self.waiting[usize::from(scheduler)] >= usize::from(limit)
    }

    /// Moves the next micro-op from the queue into the window and finds its producers.
    fn enter_window(&mut self) {
        let sequence = self.dispatch_at;
        self.dispatch_at += 1;
        let cycle = self.cycle;
        let group = self.group.number;
        let entry = self.at_mut(sequence);
        entry.dispatched = cycle;
        entry.group = group;
        let op = entry.op;
        self.queued -= usize::from(op.slots);
        if self.shape.has_groups() {
            self.group.ops += 1;
            self.group.slots += u64::from(op.slots);
            self.group.branches += u64::from(op.kind == Kind::Branch);
        } else {
            self.in_flight += usize::from(op.slots);
        }
        self.loads += usize::from(op.kind == Kind::Load);
        self.waiting[usize::from(op.scheduler.min(8))] += 1;
        if op.kind == Kind::StoreAddress {
            let pieces = self.at(sequence).pieces.clone();
            let is_plain = self.at(sequence + 1).op.class == Class::StoreData;
            for piece in pieces {
                self.stores.push_back(QueuedStore {
                    sequence,
                    piece,
                    is_plain,
                    is_half: false,
                    line: u64::MAX,
                    retired: u64::MAX,
                });
            }
        }
        self.rename(sequence);
    }

    fn rename(&mut self, sequence: u64) {
        let op = self.at(sequence).op;
        let producers = op.sources.map(|reg| self.writers[usize::from(reg) & 63]);
        let mut ready = self.cycle + self.shape.to_issue;
        let mut unknown = 0;
        if !self.shape.ideal.has(Ideal::DEPENDENCES) {
            let oldest = self.retire_at;
            for producer in producers.into_iter().filter(|&p| p != NOBODY && p >= oldest) {
                let source = self.at(producer);
                if source.is_timed() {
                    ready = ready.max(source.completed + self.shape.wakeup);
                } else {
                    unknown += 1;
                    self.at_mut(producer).consumers.push(sequence);
                }
            }
        }
        let entry = self.at_mut(sequence);
        entry.producers = producers;
        entry.ready = ready;
        entry.unknown = unknown;
        if unknown == 0 {
            self.timed.push(Reverse((ready, sequence)));
        }
        for &target in &op.targets {
            if target != Reg::SINK.0 {
                self.writers[usize::from(target) & 63] = sequence;
            }
        }
    }
}
