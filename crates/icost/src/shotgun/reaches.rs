//! How far back each width, queue and window reaches: what the code and the machine tell.

use std::collections::VecDeque;

use model::monitor::Bits;
use model::program::{Kind, Op};
use model::uop::Flow;

use super::Stands;
use super::code::Known;
use crate::history::{History, IDEAL_WINDOW, Past, Reach};
use crate::{Fixed, Step};

/// Micro-ops of a path, as far as the machine's sizes have to do with them.
#[derive(Clone, Debug)]
pub(super) struct Reaches {
    fixed: Fixed,
    past: History,
    count: u64,
    fetch: Reach,
    queue: Reach,
    ideal_queue: Reach,
    dispatch: Reach,
    window: Reach,
    ideal_window: Reach,
    loads: Reach,
    retire: Reach,
    /// The latest taken branches.
    taken: VecDeque<u64>,
    /// How the last instruction left the straight line, if it did.
    left: Option<Flow>,
}

impl Reaches {
    pub(super) fn new(fixed: Fixed) -> Reaches {
        Reaches {
            fixed,
            past: History::new(),
            count: 0,
            fetch: Reach::slots(fixed.fetch_width),
            queue: Reach::slots(fixed.queue),
            ideal_queue: Reach::slots(IDEAL_WINDOW * fixed.queue),
            dispatch: Reach::slots(fixed.dispatch_width),
            window: Reach::slots(fixed.window),
            ideal_window: Reach::slots(IDEAL_WINDOW * fixed.window),
            loads: Reach::loads(fixed.load_queue),
            retire: Reach::slots(fixed.retire_width),
            taken: VecDeque::new(),
            left: None,
        }
    }

    /// The edges of the next micro-op that stand.
    pub(super) fn label(
        &mut self,
        known: &Known<'_>,
        (op, is_first): (&Op, bool),
        stands: Stands,
        step: &mut Step,
    ) {
        let past = &self.past;
        let if_stands = |edge: u8, distance: u32| if stands.has(edge) { distance } else { 0 };
        step.queue = Some(0);
        if is_first {
            step.queue = Some(if_stands(Stands::QUEUE, self.queue.full(past)));
            step.ideal_queue = self.ideal_queue.full(past);
            let slots = known.instruction.slots.max(1);
            step.fetch_width = if_stands(Stands::FETCH_WIDTH, self.fetch.beside(slots, past));
        }
        if op.slots > 0 {
            step.width = if_stands(Stands::WIDTH, self.dispatch.beside(op.slots, past));
            step.window = if_stands(Stands::WINDOW, self.window.full(past));
            step.ideal_window = self.ideal_window.full(past);
            let retire = self.retire.beside(op.slots, past);
            step.retire_width = if_stands(Stands::RETIRE_WIDTH, retire);
        }
        if op.kind == Kind::Load {
            step.load_room = if_stands(Stands::LOADS, self.loads.full(past));
        }
        step.takes_store = op.kind == Kind::StoreAddress && stands.has(Stands::STORES);
        if is_first && stands.has(Stands::TAKEN) {
            step.taken = self.behind_taken();
        }
    }

    /// Where fetch ended if the last instruction was a taken branch, and the cycles after it.
    fn behind_taken(&self) -> (u32, u32) {
        let Some(flow) = self.left else { return (0, 0) };
        let (bubble, call) = self.fixed.taken_bubbles;
        let is_call = matches!(flow, Flow::Call | Flow::IndirectCall | Flow::Return);
        let lost = bubble + if is_call { call } else { 0 };
        let first = match lost {
            0 => self.taken.front().filter(|_| self.taken.len() >= self.fixed.taken as usize),
            _ => self.taken.back(),
        };
        let distance = first.and_then(|&first| u32::try_from(self.count - first).ok());
        distance.map_or((0, 0), |distance| (distance, 1 + lost))
    }

    pub(super) fn push(&mut self, op: &Op) {
        let past = Past { sequence: self.count, ..Past::default() };
        self.past.push(past, op.slots, op.kind == Kind::Load);
        self.count += 1;
    }

    /// An instruction is over; whether it left the straight line.
    pub(super) fn branch(&mut self, flow: Flow, bits: Bits) {
        let is_taken = match flow {
            Flow::Next => false,
            Flow::Conditional => bits.first(),
            _ => true,
        };
        self.left = is_taken.then_some(flow);
        if is_taken {
            self.taken.push_back(self.count.saturating_sub(1));
            if self.taken.len() > self.fixed.taken as usize {
                self.taken.pop_front();
            }
        }
    }
}
