//! Loads that go ahead of stores whose addresses are not known, and what is done again when that
//! was wrong.
//!
//! ```text
//! entries: | retired | in the window .. load .. younger .. | in the queue .. |
//!                                        ^ dispatch_at goes back to here; what follows is fetched
//!                                          again as it was, and asks no cache twice
//! ```

use super::ReferenceCore;
use crate::cause::Cause;
use crate::core::{NOBODY, Watcher};
use crate::event::Event;
use crate::program::Kind;
use crate::uop::Reg;

impl<W: Watcher> ReferenceCore<W> {
    fn pc(&self, sequence: u64) -> u64 {
        self.program.instructions[self.at(sequence).place as usize].pc
    }

    /// Whether a store's address was not known yet before this cycle.
    fn is_unknown(&self, store: u64) -> bool {
        if store < self.retire_at {
            return false;
        }
        let entry = self.at(store);
        !entry.is_issued || entry.issued >= self.cycle
    }

    /// Whether a load that is not trusted has to wait for the address of an older store.
    pub(super) fn is_held_back(&mut self, load: u64) -> bool {
        let Some(ordering) = &self.ordering else { return false };
        let cycle = self.cycle;
        let trusts = ordering.trusts_from(self.pc(load)).is_some_and(|from| from <= cycle);
        let mut older = self.stores.iter().filter(|store| store.sequence < load);
        let waits = !trusts && older.any(|store| self.is_unknown(store.sequence));
        let entry = self.at_mut(load);
        if waits && entry.held_since == 0 {
            entry.held_since = cycle;
            let (place, is_again) = (entry.place as usize, entry.is_again);
            if !is_again {
                self.account.happened(place, Event::HeldLoads);
            }
        } else if !waits && entry.held_since > 0 && !entry.is_released {
            (entry.is_released, entry.ready) = (true, cycle);
        }
        waits
    }

    /// Whether a load that issues now overtakes a store. Notes whether it would have, had it not
    /// been held back.
    pub(super) fn overtakes(&mut self, load: u64, store: u64) -> bool {
        if self.ordering.is_none() {
            return false;
        }
        let known = match store >= self.retire_at && self.at(store).is_issued {
            true => self.at(store).issued + 1,
            false => 0,
        };
        let entry = self.at_mut(load);
        entry.is_harmed |= entry.held_since > 0 && known > entry.held_since;
        self.is_unknown(store)
    }

    /// Finds the oldest load that has overtaken a store whose address was found in the last cycle.
    pub(super) fn look_back(&mut self) {
        if self.addressed.is_empty() {
            return;
        }
        let stores = std::mem::take(&mut self.addressed);
        let overtaken = stores.iter().filter_map(|&store| {
            let mut younger = store + 1..self.dispatch_at;
            younger.find(|&load| self.has_overtaken(load, store))
        });
        if let Some(load) = overtaken.min() {
            self.do_again(load);
        }
    }

    fn has_overtaken(&self, load: u64, store: u64) -> bool {
        let entry = self.at(load);
        let needs =
            |&piece| self.source(load, piece).is_some_and(|source| source.sequence == store);
        entry.op.kind == Kind::Load
            && entry.is_issued
            && entry.store != store
            && entry.pieces.iter().any(needs)
    }

    /// A load and all that follows are done again.
    fn do_again(&mut self, load: u64) {
        let Some(facts) = self.shape.disambiguation else { return };
        let again = self.cycle + facts.restart;
        let place = self.at(load).place;
        self.account.happened(place as usize, Event::OrderingRestarts);
        self.account.happened(place as usize, Event::Replays);
        for sequence in load..self.dispatch_at {
            self.leave_window(sequence);
        }
        self.dispatch_at = load;
        self.stores.retain(|store| store.sequence < load);
        self.timed.retain(|waiting| waiting.0.1 < load);
        self.ready.retain(|&sequence| sequence < load);
        self.held.retain(|held| held.load < load);
        for sequence in self.retire_at..load {
            self.at_mut(sequence).consumers.retain(|&consumer| consumer < load);
        }
        self.find_writers(load);
        let entry = self.at_mut(load);
        entry.is_harmed = true;
        entry.not_before = again;
        entry.front = (Cause::Forward, place);
        if let Some(ordering) = &mut self.ordering {
            ordering.learn(self.program.instructions[place as usize].pc, true, self.cycle);
        }
        self.fetch_again(load, again - self.shape.front, place);
    }

    /// A micro-op goes back from the window into the queue.
    fn leave_window(&mut self, sequence: u64) {
        let entry = self.at_mut(sequence);
        let (op, was_issued) = (entry.op, entry.is_issued);
        entry.is_again |= was_issued;
        (entry.is_issued, entry.is_released) = (false, false);
        (entry.completed, entry.known, entry.unknown) = (0, 0, 0);
        (entry.store, entry.by_stores) = (NOBODY, false);
        entry.consumers.clear();
        if !was_issued {
            self.waiting[usize::from(op.scheduler.min(8))] -= 1;
        }
        self.in_flight -= usize::from(op.slots);
        self.loads -= usize::from(op.kind == Kind::Load);
        self.queued += usize::from(op.slots);
    }

    /// Who wrote each register last before a micro-op. Those who retired are remembered for as long
    /// as anyone may ask.
    fn find_writers(&mut self, before: u64) {
        self.writers = [NOBODY; Reg::COUNT];
        let room = self.entries.len() as u64 - (self.fetch_at - before);
        for sequence in before.saturating_sub(room)..before {
            for target in self.at(sequence).op.targets {
                if target != Reg::SINK.0 {
                    self.writers[usize::from(target) & 63] = sequence;
                }
            }
        }
    }

    /// Fetches once more what follows a load, from a cycle on.
    fn fetch_again(&mut self, load: u64, from: u64, blame: u32) {
        let (mut at, mut slots) = (from, 0);
        let mut follows = false;
        for sequence in load..self.fetch_at {
            let entry = self.at(sequence);
            let (place, is_first) = (entry.place, entry.is_first);
            if is_first && sequence > load {
                follows = true;
                let needed = u64::from(self.program.instructions[place as usize].slots);
                if slots > 0 && slots + needed > self.shape.fetch_width {
                    (at, slots) = (at + 1, 0);
                }
                slots += needed;
            }
            if follows {
                let entry = self.at_mut(sequence);
                entry.fetched = at;
                let is_fresh = at <= from + 1;
                entry.front =
                    if is_fresh { (Cause::Forward, blame) } else { (Cause::Fetch, blame) };
            }
        }
        self.fetch_resumes(if slots > 0 { at + 1 } else { at }, from, blame);
    }
}
