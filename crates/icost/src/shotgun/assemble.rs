//! From fragments to steps of the graph.
//!
//! What the code and the machine tell is worked out here: widths, the window, who made an operand.
//! The rest comes from detailed samples. Fragments follow each other as if the program had run so;
//! what a register holds at the start of one was made in the one before.

use std::collections::VecDeque;

use model::monitor::SignatureSample;
use model::program::Op;
use model::uop::Reg;

use super::code::{CodeBook, Known};
use super::{Defaults, Fragment, Labels, Link};
use crate::label::SPAN;
use crate::{Fixed, Step};

/// How much larger an ideal window is.
const IDEAL_WINDOW: u32 = 20;
/// Instructions that an edge may reach back.
const REACH: usize = SPAN;
/// Nobody in sight wrote a register.
const NOBODY: u64 = u64::MAX;

/// Puts fragments together, one behind the other.
#[derive(Clone, Debug)]
pub struct Assembler {
    fixed: Fixed,
    defaults: Defaults,
    /// Micro-ops so far.
    count: u64,
    writers: [u64; Reg::COUNT],
    slots: Slots,
    /// The pc and the first micro-op of the last instructions.
    past: VecDeque<(u64, u64)>,
    /// Instructions without a detailed sample, and all.
    inferred: u64,
    instructions: u64,
    /// Edges whose other end is not in the fragment.
    lost: u64,
}

impl Assembler {
    /// For a machine's numbers.
    pub fn new(fixed: Fixed, defaults: Defaults) -> Assembler {
        Assembler {
            fixed,
            defaults,
            count: 0,
            writers: [NOBODY; Reg::COUNT],
            slots: Slots::default(),
            past: VecDeque::with_capacity(REACH),
            inferred: 0,
            instructions: 0,
            lost: 0,
        }
    }

    /// Instructions so far, and those of them that no detailed sample spoke of.
    pub fn inferred(&self) -> (u64, u64) {
        (self.instructions, self.inferred)
    }

    /// Edges whose other end was not found.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The steps of a whole fragment, in order.
    pub fn add(
        &mut self,
        fragment: &Fragment<'_>,
        signature: &SignatureSample,
        code: &CodeBook,
        mut step: impl FnMut(&Step),
    ) {
        let chosen = fragment.places.iter().zip(&fragment.details).zip(&signature.bits);
        for ((&place, detail), &bits) in chosen {
            let Some(known) = code.at(place) else { continue };
            self.instructions += 1;
            self.inferred += u64::from(detail.is_none_or(|chosen| !chosen.is_own));
            if self.past.len() == REACH {
                self.past.pop_front();
            }
            self.past.push_back((known.instruction.pc, self.count));
            for (k, op) in known.ops.iter().enumerate() {
                let labels = detail.and_then(|chosen| chosen.sample.ops.get(k)).copied();
                let labels = labels.unwrap_or_else(|| {
                    self.defaults.labels(op, k == 0, known.instruction.has_memory, bits)
                });
                let made = self.step(&known, op, &labels);
                step(&made);
            }
        }
    }

    fn step(&mut self, known: &Known<'_>, op: &Op, labels: &Labels) -> Step {
        let mut step = Step {
            instruction: known.place,
            code: labels.code,
            resteer: labels.resteer,
            bubble: labels.bubble,
            stuck: labels.stuck,
            wait: labels.wait,
            redirect: labels.redirect,
            ports: self.fixed.ports.get(op.class as usize).copied().unwrap_or_default(),
            contention: labels.contention,
            hit: labels.hit,
            short: labels.short,
            long: labels.long,
            miss: labels.miss,
            fixed: labels.fixed,
            late: labels.late,
            ..Step::default()
        };
        if op.slots > 0 {
            let (slots, fixed) = (u32::from(op.slots), self.fixed);
            step.width = self.slots.reach((fixed.dispatch_width + 1).saturating_sub(slots));
            step.retire_width = self.slots.reach((fixed.retire_width + 1).saturating_sub(slots));
            step.window = self.slots.reach(fixed.window);
            step.ideal_window = self.slots.reach(IDEAL_WINDOW * fixed.window);
        }
        self.link_operands(op, labels, &mut step);
        step.data = self.resolve(labels.data);
        self.link_memory(labels, &mut step);
        self.remember(op);
        step
    }

    fn link_operands(&self, op: &Op, labels: &Labels, step: &mut Step) {
        for (k, (edge, &source)) in step.producers.iter_mut().zip(&op.sources).enumerate() {
            let writer = self.writers[usize::from(source) & (Reg::COUNT - 1)];
            if labels.operands >> k & 1 == 1 && writer != NOBODY {
                *edge = u32::try_from(self.count - writer).unwrap_or(0);
            }
        }
    }

    /// A line or data that come from out of sight still take as long as was seen.
    fn link_memory(&mut self, labels: &Labels, step: &mut Step) {
        if let Some((link, label)) = labels.line {
            let distance = self.resolve(Some(link));
            if distance > 0 {
                step.line = (distance, label);
            } else {
                step.miss = labels.beyond;
            }
        }
        if let Some((link, label)) = labels.forward {
            let distance = self.resolve(Some(link));
            if distance > 0 {
                step.forward = (distance, label);
            }
        }
    }

    /// The distance to a linked micro-op; 0 if it is not in sight.
    fn resolve(&mut self, link: Option<Link>) -> u32 {
        let Some(link) = link else { return 0 };
        let Some(newest) = self.past.len().checked_sub(1) else { return 0 };
        let back = link.back as usize;
        let at = |back: usize| self.past.get(newest.checked_sub(back)?);
        let is_it = |back: usize| at(back).is_some_and(|&(pc, _)| pc == link.pc);
        // The path may differ in between: the nearest run of the same instruction, up to twice as
        // far away.
        let near = (0..=back).flat_map(|off| [Some(back + off), back.checked_sub(off)]).flatten();
        let found = near.filter(|&back| back > 0 || link.back == 0).find(|&back| is_it(back));
        let first = found.and_then(at).map(|&(_, first)| first + u64::from(link.op));
        let distance = first.and_then(|op| self.count.checked_sub(op)).filter(|&back| back > 0);
        self.lost += u64::from(distance.is_none());
        distance.and_then(|distance| u32::try_from(distance).ok()).unwrap_or(0)
    }

    fn remember(&mut self, op: &Op) {
        self.slots.push(op.slots);
        for &target in op.targets.iter().filter(|&&target| target != Reg::SINK.0) {
            self.writers[usize::from(target) & (Reg::COUNT - 1)] = self.count;
        }
        self.count += 1;
    }
}

/// Slots taken by the last micro-ops, summed up so that any number of them is found by halving.
#[derive(Clone, Debug)]
struct Slots {
    /// `sums[k]`: slots of all micro-ops before the k-th.
    sums: VecDeque<u64>,
}

impl Default for Slots {
    fn default() -> Slots {
        Slots { sums: VecDeque::from([0]) }
    }
}

impl Slots {
    fn push(&mut self, slots: u8) {
        let last = self.sums.back().copied().unwrap_or(0);
        if self.sums.len() == SPAN {
            self.sums.pop_front();
        }
        self.sums.push_back(last + u64::from(slots));
    }

    /// How many micro-ops back the youngest is that, with all behind it, fills so many slots; 0 if
    /// none in sight does.
    fn reach(&self, slots: u32) -> u32 {
        let last = self.sums.back().copied().unwrap_or(0);
        let Some(limit) = last.checked_sub(u64::from(slots)) else { return 0 };
        let within = self.sums.partition_point(|&sum| sum <= limit);
        if within == 0 { 0 } else { (self.sums.len() - within) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_is_the_youngest_micro_op_that_fills_the_slots() {
        let mut slots = Slots::default();
        assert_eq!(slots.reach(1), 0);
        for taken in [1, 1, 0, 2, 0, 1] {
            slots.push(taken);
        }
        // From the newest back: 1, then 0, then 2.
        assert_eq!([1, 2, 3, 4, 5, 6].map(|n| slots.reach(n)), [1, 3, 3, 5, 6, 0]);
    }
}
