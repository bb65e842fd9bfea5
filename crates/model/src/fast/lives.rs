//! The lives of micro-ops, put together only where someone listens.

use super::engine::{Engine, Found};
use crate::core::{Life, Watcher};
use crate::program::{Op, StaticInstruction};
use crate::units::Level;
use crate::uop::{Flow, Reg};

impl<W: Watcher> Engine<W> {
    /// Tells the watcher the lives that are complete, the last one's branch being settled.
    #[inline]
    pub(super) fn tell(&mut self, taken: bool, mispredicted: bool, resteered: bool) {
        if !W::LISTENS {
            return;
        }
        if let Some(last) = self.lives.last_mut()
            && last.is_last
            && last.flow.is_branch()
        {
            last.taken = taken;
            last.mispredicted = mispredicted;
            last.resteered = resteered && !mispredicted;
        }
        // Lives of an open group do not know their retirement yet.
        let known = if self.group.is_open { self.group.lives_from } else { self.lives.len() };
        for life in self.lives.get(..known).unwrap_or_default() {
            self.watcher.lived(life);
        }
        self.lives.drain(..known);
        self.group.lives_from = 0;
    }

    pub(super) fn remember(
        &mut self,
        (place, instruction, is_last): (usize, &StaticInstruction, bool),
        op: &Op,
        fetched: u64,
        found: &Found,
        (dispatched, ready, issued, committed): (u64, u64, u64, u64),
    ) {
        let met = if is_last { std::mem::take(&mut self.front.met) } else { self.front.met };
        self.lives.push(Life {
            sequence: self.sequence,
            instruction: place as u32,
            pc: instruction.pc,
            class: op.class,
            slots: op.slots,
            instruction_slots: instruction.slots,
            is_last,
            flow: if is_last { instruction.flow } else { Flow::Next },
            producers: op.sources.map(|reg| self.writers[usize::from(reg) & 63]),
            store: found.store,
            fetched,
            code_cycles: met.code_cycles,
            code_translation_cycles: met.translation_cycles,
            dispatched,
            ready,
            issued,
            completed: found.completed,
            committed,
            miss_cycles: found.miss_cycles,
            translation_cycles: found.translation_cycles,
            level: found.level,
            from: found.from,
            address: found.address,
            bytes: found.bytes,
            mispredicted: false,
            resteered: false,
            taken: false,
            missed_l1d: found.level > Level::L1,
            missed_l2d: found.level > Level::L2,
            missed_l1i: met.missed_l1,
            missed_l2i: met.missed_l2,
            missed_tlb: met.missed_tlb || found.missed_tlb,
        });
        for &target in &op.targets {
            if target != Reg::SINK.0 {
                self.writers[usize::from(target) & 63] = self.sequence;
            }
        }
    }
}
