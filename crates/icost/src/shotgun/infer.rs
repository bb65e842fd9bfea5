//! Labels for an instruction that no detailed sample speaks of: from its code, its own two bits
//! and the machine's numbers.

use model::machine::{Class, Machine};
use model::monitor::Bits;
use model::program::{Kind, Op};

use super::{Labels, Stands};
use crate::Fixed;

/// The machine's latencies where nothing was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Defaults {
    hit: u32,
    /// Beyond a first-level hit: the second level, and memory.
    second: u32,
    memory: u32,
}

impl Defaults {
    /// Of a machine.
    pub fn of(machine: &Machine) -> Defaults {
        let hit = Fixed::of(machine).hit;
        let second = machine.caches.l2.latency_cycles;
        let memory = second + machine.memory.latency_cycles;
        Defaults { hit, second, memory }
    }

    /// The labels of a micro-op of an instruction with these bits.
    pub fn labels(&self, op: &Op, is_first: bool, touches_memory: bool, bits: Bits) -> Labels {
        let mut labels = Labels { operands: u8::MAX, stands: Stands::ALL, ..Labels::default() };
        // Bit 2 means data where bit 1 was reset, or where there is an access at all.
        let missed = bits.second();
        match op.kind {
            Kind::Load => {
                labels.hit = self.hit;
                labels.fixed = u32::from(op.latency);
                (labels.miss, labels.level) = match (missed, bits.first()) {
                    (true, false) => (self.memory, crate::Kind::Memory),
                    (true, true) => (self.second, crate::Kind::L2),
                    (false, _) => (0, crate::Kind::Line),
                };
            }
            Kind::StoreAddress => labels.fixed = u32::from(op.latency),
            Kind::StoreData => {
                labels.fixed = u32::from(op.latency);
                labels.write = Some(if missed { self.memory } else { 0 });
            }
            Kind::Plain | Kind::Branch if is_short(op) => labels.short = u32::from(op.latency),
            Kind::Plain | Kind::Branch => labels.long = u32::from(op.latency),
        }
        if missed && is_first && !touches_memory {
            // What no sample ever met runs seldom, so that its code has been driven out.
            labels.code = self.memory;
        }
        labels
    }
}

fn is_short(op: &Op) -> bool {
    op.latency <= 1 && op.class < Class::VecStoreData
}
