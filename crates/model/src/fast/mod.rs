//! The core in one pass: every instruction is timed as it streams by.
//!
//! Each stage's time is the latest of what must come before it:
//!
//! ```text
//! fetch     >= fetch before it, room in the queue, code there, mispredicted branch executed
//! dispatch  >= fetch + front, width, room in reorder buffer, scheduler, load and store queue
//! ready     >= dispatch + 1.., sources complete
//! issue     >= ready, a port free
//! complete   = issue + latency (of the cache for loads)
//! retire    >= complete, retirement before it, width
//! ```
//!
//! Not modelled: the wrong path, that is what follows a mispredicted branch or a load that wrongly
//! overtakes a store.

mod engine;
mod front;
mod group;
mod lives;
mod memory;
mod ordering;
mod rest;
mod retire;
mod ring;
mod stores;
mod window;

use engine::Engine;
pub(crate) use rest::Moment;

use crate::cause::Cause;
use crate::core::{
    Accesses, Account, Accounting, Ideal, Settings, Shape, Silent, Watcher, add_memory,
    count_mispredict, count_static,
};
use crate::event::{Counts, Event};
use crate::machine::Machine;
use crate::program::{Block, Program};
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};
use crate::units::branch::{Branch, Predictor};
use crate::units::memory::Memory;

/// The one-pass core of one thread.
#[derive(Clone, Debug)]
pub struct FastCore<W: Watcher = Silent> {
    program: Program,
    predictor: Predictor,
    engine: Engine<W>,
    is_plain: bool,
}

impl FastCore {
    /// A cold core.
    pub fn new(machine: &Machine, settings: Settings) -> FastCore {
        FastCore::watched(machine, settings, Silent)
    }
}

impl<W: Watcher> FastCore<W> {
    /// A cold core whose every micro-op is told to a watcher.
    pub fn watched(machine: &Machine, settings: Settings, watcher: W) -> FastCore<W> {
        let shape = Shape::new(machine, settings);
        FastCore {
            program: Program::new(machine, settings.ideal),
            predictor: Predictor::new(&machine.branch),
            is_plain: shape.is_plain(),
            engine: Engine::new(shape, Memory::new(machine), watcher),
        }
    }

    /// Starts from units that have been warmed.
    pub fn with_units(mut self, memory: Memory, predictor: Predictor) -> FastCore<W> {
        self.engine.memory = memory;
        self.predictor = predictor;
        self
    }

    /// The units, to be warmed on or inspected.
    pub fn into_units(self) -> (Memory, Predictor) {
        (self.engine.memory, self.predictor)
    }

    /// The caches and what lies behind them.
    pub fn memory(&self) -> &Memory {
        &self.engine.memory
    }

    /// The units, to be exchanged with a warmer's.
    pub(crate) fn units_mut(&mut self) -> (&mut Memory, &mut Predictor) {
        (&mut self.engine.memory, &mut self.predictor)
    }

    /// Lines of code ran past untimed, in this order: those decoded last are at hand.
    pub(crate) fn pass(&mut self, addresses: &mut dyn Iterator<Item = u64>) {
        for pc in addresses {
            self.engine.front.pass(pc);
        }
    }

    /// What has been translated.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// What has been translated, to be exchanged for other code.
    pub(crate) fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// The exact account by instruction.
    pub fn account(&self) -> &Account {
        &self.engine.account
    }

    /// The watcher.
    pub fn watcher(&self) -> &W {
        &self.engine.watcher
    }

    /// The watcher, to take from it what it has seen.
    pub fn watcher_mut(&mut self) -> &mut W {
        &mut self.engine.watcher
    }

    /// Lets everything in flight retire.
    pub fn finish(&mut self) {
        if self.engine.group.is_open {
            self.engine.close_group();
        }
        self.settle(None);
        let engine = &mut self.engine;
        engine.retire.end(&mut engine.account);
    }

    /// Cycles that have passed.
    pub fn cycles(&self) -> u64 {
        let totals = &self.engine.account.totals;
        totals[Event::RetireCycles] + totals[Event::StallCycles]
    }

    /// Every event's count so far.
    pub fn counts(&self) -> Counts {
        let mut counts = self.engine.account.totals.clone();
        let cycles = self.cycles();
        counts[Event::Cycles] = cycles;
        counts[Event::ReferenceCycles] = cycles;
        counts[Event::PipelineSlots] = cycles.saturating_mul(self.engine.shape.dispatch_width);
        add_memory(&mut counts, &self.engine.memory);
        counts
    }

    /// Learns where the open branch went: to `next`, the first pc of the block that follows.
    #[inline]
    pub(crate) fn settle(&mut self, next: Option<u64>) {
        let engine = &mut self.engine;
        let (Some(open), Some(next)) = (engine.branch.take(), next) else {
            engine.tell(false, false, false);
            return;
        };
        let place = open.place;
        let instruction = &self.program.instructions[place];
        let taken = instruction.flow.is_taken(next, instruction.next(), instruction.target);
        let branch = Branch {
            pc: instruction.pc,
            flow: instruction.flow,
            taken,
            target: next,
            next: instruction.next(),
        };
        let verdict = self.predictor.observe(&branch);
        if taken {
            engine.account.happened(place, Event::TakenBranches);
        }
        let is_ideal = engine.shape.ideal.has(Ideal::MISPREDICTS);
        if verdict.mispredicted {
            count_mispredict(&mut engine.account, place, branch.flow, verdict.wrong_direction);
        }
        if verdict.resteered {
            engine.account.happened(place, Event::Resteers);
        }
        if verdict.mispredicted && !is_ideal {
            let again = open.completed + engine.shape.redirect;
            engine.front.restart(again, Cause::Mispredict, place as u32);
        } else if verdict.resteered && !is_ideal {
            let again = open.fetched + engine.shape.resteer;
            engine.front.restart(again, Cause::Resteer, place as u32);
        } else if taken {
            let bubble = engine.shape.bubble_of(branch.flow, &verdict);
            engine.front.taken(&engine.shape, bubble, verdict.leads);
        }
        engine.tell(taken, verdict.mispredicted, verdict.resteered);
    }

    #[inline]
    fn run<const PLAIN: bool>(&mut self, block: &Block, count: u32, accesses: &[Access]) {
        let mut left = accesses;
        let first = block.first as usize;
        let instructions = &self.program.instructions[first..first + count as usize];
        for (k, instruction) in instructions.iter().enumerate() {
            if PLAIN && !W::LISTENS && instruction.is_simple {
                let op = &self.program.ops[instruction.ops as usize];
                self.engine.step_simply(first + k, instruction, op);
                continue;
            }
            let mine = if instruction.has_memory {
                Accesses::of(&mut left, k as u16)
            } else {
                Accesses::EMPTY
            };
            if PLAIN && !W::LISTENS && instruction.is_load && self.engine.ordering.is_none() {
                let op = &self.program.ops[instruction.ops as usize];
                self.engine.step_load(first + k, instruction, op, mine);
                continue;
            }
            let ops = self.program.ops_of(instruction);
            self.engine.step::<PLAIN>(first + k, instruction, ops, mine);
        }
    }
}

impl<W: Watcher> Accounting for FastCore<W> {
    fn settle_all(&mut self) {
        self.finish();
    }

    fn counts(&self) -> Counts {
        FastCore::counts(self)
    }

    fn account(&self) -> &Account {
        FastCore::account(self)
    }
}

impl<W: Watcher> CoreListener for FastCore<W> {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.program.translate(id, block);
        self.engine.account.grow(self.program.instructions.len());
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(&block) = self.program.blocks.get(id.0 as usize) else { return };
        let count = u32::from(ran).min(block.count);
        let Some(first) = self.program.instructions.get(block.first as usize) else { return };
        if count == 0 {
            return;
        }
        self.settle(Some(first.pc));
        count_static(&mut self.engine.account, &self.program, &block, count);
        self.engine.account.ran(block.first as usize, count as usize);
        if self.is_plain {
            self.run::<true>(&block, count, accesses);
        } else {
            self.run::<false>(&block, count, accesses);
        }
    }

    fn far_looks(&self) -> u64 {
        self.engine.memory.counts.l3
    }

    fn approach(&self, addresses: &[u64]) {
        self.engine.memory.approach(addresses);
    }

    fn interrupted(&mut self) {
        // What follows is no consequence of the branch before it.
        self.settle(None);
    }
}

#[cfg(test)]
mod tests;
