//! Fetch, one cycle at a time.

use super::ReferenceCore;
use super::entry::{Arrival, Entry};
use crate::cause::Cause;
use crate::core::{Ideal, NOBODY, Shape, Watcher, count_code, count_mispredict};
use crate::event::Event;
use crate::program::{Kind, StaticInstruction};
use crate::units::Level;
use crate::units::branch::Branch;
use crate::units::cache::Cache;

/// Bytes of code that a line of the micro-op cache stands for, as a power of two.
const UOP_LINE_SHIFT: u32 = 6;

/// What fetching an instruction met.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Met {
    pub(super) code_cycles: u32,
    pub(super) translation_cycles: u32,
    pub(super) missed_l1: bool,
    pub(super) missed_l2: bool,
    pub(super) missed_tlb: bool,
}

/// The state of fetch.
#[derive(Clone, Debug)]
pub(super) struct Fetch {
    /// No fetch before this cycle.
    from: u64,
    /// The branch that must execute before fetch goes on.
    pub(super) waits_for: Option<u64>,
    line: u64,
    entered: u64,
    /// Lines of the next instruction that were asked for already.
    asked: u8,
    is_decoded: bool,
    uops: Option<Cache<()>>,
    cause: Cause,
    blame: u32,
    since: u64,
    /// Branches taken in the cycle that fetch goes on with.
    taken: u64,
    met: Met,
}

impl Fetch {
    pub(super) fn new(shape: &Shape) -> Fetch {
        let (lines, ways) = shape.uop_cache;
        Fetch {
            from: 0,
            waits_for: None,
            line: u64::MAX,
            entered: 0,
            asked: 0,
            is_decoded: false,
            uops: (lines > 0).then(|| Cache::new(lines, ways)),
            cause: Cause::Fetch,
            blame: 0,
            since: 0,
            taken: 0,
            met: Met::default(),
        }
    }
}

/// What a cycle of fetch has used up.
#[derive(Default)]
struct Spent {
    slots: u64,
    bytes: u64,
    taken: u64,
}

impl<W: Watcher> ReferenceCore<W> {
    pub(super) fn fetch(&mut self) {
        if let Some(branch) = self.fetch.waits_for {
            let entry = self.at(branch);
            if !entry.is_issued {
                return;
            }
            let again = entry.completed + self.shape.redirect;
            let place = entry.place;
            self.fetch.waits_for = None;
            self.restart(again, Cause::Mispredict, place);
        }
        let mut spent = Spent::default();
        while self.cycle >= self.fetch.from && self.queued < self.shape.queue {
            let Some(arrival) = self.arrivals.front() else { return };
            let instruction = self.program.instructions[arrival.place as usize];
            let place = arrival.place;
            if self.enter_lines(place, &instruction) {
                return;
            }
            let slots = u64::from(instruction.slots);
            let bytes = u64::from(instruction.len);
            let is_full = if self.fetch.is_decoded {
                spent.slots + slots > self.shape.fetch_width
            } else {
                spent.slots + slots > self.shape.decode_width
                    || spent.bytes + bytes > self.shape.fetch_bytes
            };
            if is_full && spent.slots > 0 {
                return;
            }
            spent.slots += slots;
            spent.taken += std::mem::take(&mut self.fetch.taken);
            spent.bytes += bytes;
            let Some(arrival) = self.arrivals.pop_front() else { return };
            let next = arrival.next;
            self.enqueue(arrival, &instruction);
            if instruction.flow.is_branch()
                && let Some(next) = next
                && self.predict(place, &instruction, next, &mut spent)
            {
                return;
            }
        }
    }

    /// Fetch goes on behind what is fetched again, unless it has to wait for longer.
    pub(super) fn fetch_resumes(&mut self, at: u64, again: u64, blame: u32) {
        if at > self.fetch.from {
            self.fetch.from = at;
            (self.fetch.cause, self.fetch.blame, self.fetch.since) = (Cause::Forward, blame, again);
        }
    }

    fn restart(&mut self, from: u64, cause: Cause, blame: u32) {
        if from > self.cycle {
            self.fetch.from = from;
            self.fetch.cause = cause;
            self.fetch.blame = blame;
            self.fetch.since = from;
        }
    }

    /// Asks for the lines of an instruction. Returns whether they are still on their way.
    fn enter_lines(&mut self, place: u32, instruction: &StaticInstruction) -> bool {
        let shift = self.memory.line_shift();
        let first = instruction.pc;
        let last = first.wrapping_add(u64::from(instruction.len)).wrapping_sub(1);
        if self.fetch.asked == 0 {
            self.fetch.asked = 1;
            let is_again = !self.fetch.is_decoded && first <= self.fetch.entered;
            if first >> shift != self.fetch.line || is_again {
                self.enter(place, first);
            }
        }
        if self.fetch.asked == 1 && self.cycle >= self.fetch.from {
            self.fetch.asked = 2;
            if last >> shift != self.fetch.line && last > first {
                self.enter(place, last);
            }
        }
        self.cycle < self.fetch.from
    }

    fn enter(&mut self, place: u32, pc: u64) {
        self.fetch.line = pc >> self.memory.line_shift();
        self.fetch.entered = pc;
        let outcome = self.memory.code::<true>(pc, self.cycle);
        count_code(&mut self.account, place as usize, &outcome);
        if outcome.cycles > 0 && !self.shape.ideal.has(Ideal::CODE_MISSES) {
            let is_translation = outcome.cycles == outcome.translation.cycles;
            let cause = if is_translation { Cause::CodeTlb } else { Cause::Code };
            self.restart(self.cycle + u64::from(outcome.cycles), cause, place);
            self.fetch.met.code_cycles += outcome.cycles;
            self.fetch.met.translation_cycles += outcome.translation.cycles;
        }
        self.fetch.met.missed_l1 |= outcome.level > Level::L1;
        self.fetch.met.missed_l2 |= outcome.level > Level::L2;
        self.fetch.met.missed_tlb |= outcome.translation.missed_l1;
        let Some(uops) = &mut self.fetch.uops else { return };
        self.fetch.is_decoded = uops.touch(pc >> UOP_LINE_SHIFT).is_some();
        if !self.fetch.is_decoded {
            uops.insert(pc >> UOP_LINE_SHIFT, ());
            self.account.happened(place as usize, Event::UopCacheMisses);
        }
    }

    /// Puts the micro-ops of an instruction into the queue.
    fn enqueue(&mut self, mut arrival: Arrival, instruction: &StaticInstruction) {
        let met = std::mem::take(&mut self.fetch.met);
        self.fetch.asked = 0;
        let is_fresh = self.cycle <= self.fetch.since + 1;
        let cause = if is_fresh { self.fetch.cause } else { Cause::Fetch };
        let front = (cause, self.fetch.blame);
        let count = usize::from(instruction.op_count);
        let mut loads = arrival.loads.drain(..);
        let mut loads_left = instruction.loads;
        let mut stores = arrival.stores.drain(..);
        for k in 0..count {
            let op = self.program.ops[instruction.ops as usize + k];
            let mut pieces = Vec::new();
            match op.kind {
                Kind::Load => {
                    loads_left = loads_left.saturating_sub(1);
                    let take = if loads_left == 0 { usize::MAX } else { 1 };
                    pieces.extend(loads.by_ref().take(take));
                }
                Kind::StoreAddress => pieces.extend(stores.by_ref()),
                _ => {}
            }
            let sequence = self.fetch_at;
            let fetched = self.cycle;
            let slot = self.at_mut(sequence);
            let mut consumers = std::mem::take(&mut slot.consumers);
            consumers.clear();
            *slot = Entry {
                op,
                place: arrival.place,
                is_first: k == 0,
                is_last: k + 1 == count,
                pieces,
                fetched,
                consumers,
                met,
                front,
                store: NOBODY,
                ..Entry::default()
            };
            self.fetch_at += 1;
            self.queued += usize::from(op.slots);
        }
    }

    /// Predicts the branch just fetched. Returns whether fetch ends for this cycle.
    fn predict(
        &mut self,
        place: u32,
        instruction: &StaticInstruction,
        next: u64,
        spent: &mut Spent,
    ) -> bool {
        let taken = instruction.flow.is_taken(next, instruction.next(), instruction.target);
        let branch = Branch {
            pc: instruction.pc,
            flow: instruction.flow,
            taken,
            target: next,
            next: instruction.next(),
        };
        let verdict = self.predictor.observe(&branch);
        let at = place as usize;
        if taken {
            self.account.happened(at, Event::TakenBranches);
        }
        if verdict.mispredicted {
            count_mispredict(&mut self.account, at, branch.flow, verdict.wrong_direction);
        }
        if verdict.resteered {
            self.account.happened(at, Event::Resteers);
        }
        let last = self.fetch_at - 1;
        let entry = self.at_mut(last);
        entry.mispredicted = verdict.mispredicted;
        entry.resteered = verdict.resteered && !verdict.mispredicted;
        entry.taken = taken;
        let is_ideal = self.shape.ideal.has(Ideal::MISPREDICTS);
        if verdict.mispredicted && !is_ideal {
            self.fetch.waits_for = Some(last);
            return true;
        }
        if verdict.resteered && !is_ideal {
            self.restart(self.cycle + self.shape.resteer, Cause::Resteer, place);
            return true;
        }
        if taken {
            let bubble = self.shape.bubble_of(branch.flow, &verdict);
            return self.take(bubble, verdict.leads, spent);
        }
        false
    }

    /// A branch was taken as predicted. One that leads comes with the next cycle where another was
    /// taken in this one. Returns whether fetch ends for this cycle.
    fn take(&mut self, bubble: u64, leads: bool, spent: &mut Spent) -> bool {
        let is_late = leads && spent.taken > 0;
        let at = self.cycle + u64::from(is_late);
        spent.taken = if is_late { 1 } else { spent.taken + 1 };
        let is_last = spent.taken >= self.shape.taken_per_cycle || bubble > 0;
        if is_last {
            self.fetch.from = self.fetch.from.max(at + 1 + bubble);
        } else if is_late {
            self.fetch.from = self.fetch.from.max(at);
            self.fetch.taken = spent.taken;
        }
        is_last || is_late
    }
}
