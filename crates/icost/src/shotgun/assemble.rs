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
use super::reaches::Reaches;
use super::{Defaults, Fragment, Labels, Link};
use crate::history::SPAN;
use crate::{Fixed, Step};

/// Instructions that are looked through at least for the other end of an edge.
const NEAR: usize = 200;
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
    reaches: Reaches,
    /// The latest misses of their own: as many as may be under way.
    misses: VecDeque<u64>,
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
            reaches: Reaches::new(fixed),
            misses: VecDeque::new(),
            past: VecDeque::with_capacity(SPAN),
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
            if self.past.len() == SPAN {
                self.past.pop_front();
            }
            self.past.push_back((known.instruction.pc, self.count));
            for (k, op) in known.ops.iter().enumerate() {
                let labels = detail.and_then(|chosen| chosen.sample.ops.get(k)).copied();
                let labels = labels.unwrap_or_else(|| {
                    self.defaults.labels(op, k == 0, known.instruction.has_memory, bits)
                });
                let made = self.step(&known, (op, k == 0), &labels);
                step(&made);
            }
            self.reaches.branch(known.instruction.flow, bits);
        }
    }

    fn step(&mut self, known: &Known<'_>, (op, is_first): (&Op, bool), labels: &Labels) -> Step {
        let mut step = Step {
            instruction: known.place,
            code: labels.code,
            code_translation: labels.code_translation,
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
            level: labels.level,
            translation: labels.translation,
            walk: labels.walk,
            fixed: labels.fixed,
            late: labels.late,
            write: labels.write,
            ..Step::default()
        };
        self.reaches.label(known, (op, is_first), labels.stands, &mut step);
        self.link_operands(op, labels, &mut step);
        self.link_memory(labels, &mut step);
        self.link_room(&mut step);
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
            let distance = self.resolve(link);
            if distance > 0 {
                step.line = (distance, label);
            } else {
                // Behind its own miss, if it was one at all.
                step.miss = labels.beyond;
            }
        }
        if let Some((link, label)) = labels.forward {
            let distance = self.resolve(link);
            if distance > 0 {
                step.forward = (distance, label);
            }
        }
    }

    /// The miss that ends before this one begins: where everything else is idealised, the number
    /// that may be under way is what is left.
    fn link_room(&mut self, step: &mut Step) {
        if step.miss == 0 || step.line.0 > 0 {
            return;
        }
        if self.misses.len() >= self.fixed.misses as usize
            && let Some(first) = self.misses.pop_front()
        {
            let distance = u32::try_from(self.count - first).unwrap_or(0);
            step.miss_room = (distance, step.hit + step.miss);
        }
        self.misses.push_back(self.count);
    }

    /// The distance to a linked micro-op; 0 if it is not in sight.
    fn resolve(&mut self, link: Link) -> u32 {
        let Some(newest) = self.past.len().checked_sub(1) else { return 0 };
        let back = link.back as usize;
        let at = |back: usize| self.past.get(newest.checked_sub(back)?);
        let is_it = |back: usize| at(back).is_some_and(|&(pc, _)| pc == link.pc);
        // The path may differ in between, but a value that goes round in memory was left by as late
        // a run of the same instruction as was seen.
        let backwards = usize::from(link.back > 0)..=newest.min(2 * back.max(NEAR));
        let counted = link.runs.and_then(|runs| {
            let mut runs_of_it = backwards.filter(|&back| is_it(back));
            if link.back == 0 { Some(0) } else { runs_of_it.nth(runs as usize) }
        });
        // If there are not as many: the nearest run, up to twice as far away.
        let near = (0..=back).flat_map(|off| [Some(back + off), back.checked_sub(off)]).flatten();
        let mut near = near.filter(|&back| back > 0 || link.back == 0);
        let found = counted.or_else(|| near.find(|&back| is_it(back)));
        let first = found.and_then(at).map(|&(_, first)| first + u64::from(link.op));
        let distance = first.and_then(|op| self.count.checked_sub(op)).filter(|&back| back > 0);
        self.lost += u64::from(distance.is_none());
        distance.and_then(|distance| u32::try_from(distance).ok()).unwrap_or(0)
    }

    fn remember(&mut self, op: &Op) {
        self.reaches.push(op);
        for &target in op.targets.iter().filter(|&&target| target != Reg::SINK.0) {
            self.writers[usize::from(target) & (Reg::COUNT - 1)] = self.count;
        }
        self.count += 1;
    }
}
