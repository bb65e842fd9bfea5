//! What a thread ran, written as the difference from what was to be expected.

use model::stream::{Access, BlockId};

use crate::varint::{put, put_signed};

/// The control byte of an event: what follows it.
pub(super) mod control {
    pub(in super::super) const BLOCK: u8 = 1;
    pub(in super::super) const SHAPE: u8 = 2;
    pub(in super::super) const RAN: u8 = 4;
    /// Everything else has this bit.
    pub(in super::super) const OTHER: u8 = 8;
    pub(in super::super) const CONTINUED: u8 = 8 | 1 << 4;
    pub(in super::super) const INTERRUPTED: u8 = 8 | 2 << 4;
    pub(in super::super) const SYSTEM_CALL: u8 = 8 | 3 << 4;
}

/// What is remembered of one access of a block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slot {
    pub(super) instruction: u16,
    pub(super) size: u8,
    pub(super) is_store: bool,
    last: u64,
    stride: u64,
}

impl Slot {
    /// Where the access is expected: as far on as the last time.
    pub(super) fn expected(&self) -> u64 {
        self.last.wrapping_add(self.stride)
    }

    /// Learns where it was.
    pub(super) fn learn(&mut self, address: u64) {
        self.stride = address.wrapping_sub(self.last);
        self.last = address;
    }

    fn fits(&self, access: &Access) -> bool {
        (self.instruction, self.size, self.is_store)
            == (access.instruction, access.size, access.is_store)
    }
}

/// What is remembered of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory {
    /// Which block came after it.
    pub(super) next: u32,
    pub(super) slots: Vec<Slot>,
}

/// What both sides remember of a thread. They learn alike, so that they expect alike.
#[derive(Clone, Debug, Default)]
pub(super) struct Expectation {
    pub(super) blocks: Vec<Memory>,
    pub(super) last: u32,
}

impl Expectation {
    /// What is remembered of a block; nothing on first sight.
    pub(super) fn block(&mut self, id: u32) -> &mut Memory {
        let index = id as usize;
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, Memory::default);
        }
        &mut self.blocks[index]
    }

    /// The block that is expected next.
    pub(super) fn next(&mut self) -> u32 {
        self.block(self.last).next
    }

    /// Learns which block came next.
    pub(super) fn learn(&mut self, id: u32) {
        self.block(self.last).next = id;
        self.last = id;
    }
}

/// Writes what a thread ran.
#[derive(Clone, Debug, Default)]
pub struct Encoder {
    expectation: Expectation,
}

impl Encoder {
    /// Appends a block that ran; `is_whole` if it ran to its end.
    pub fn executed(
        &mut self,
        id: BlockId,
        ran: u16,
        is_whole: bool,
        accesses: &[Access],
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let mut what = 0;
        out.push(0);
        if self.expectation.next() != id.0 {
            what |= control::BLOCK;
            put_signed(out, i64::from(id.0) - i64::from(self.expectation.last));
        }
        self.expectation.learn(id.0);
        if !is_whole {
            what |= control::RAN;
            put(out, u64::from(ran));
        }
        let slots = &mut self.expectation.block(id.0).slots;
        let fits = slots.len() == accesses.len()
            && slots.iter().zip(accesses).all(|(slot, access)| slot.fits(access));
        if !fits {
            what |= control::SHAPE;
            reshape(slots, accesses, out);
        }
        for (slot, access) in slots.iter_mut().zip(accesses) {
            put_signed(out, access.address.wrapping_sub(slot.expected()) as i64);
            slot.learn(access.address);
        }
        if let Some(control) = out.get_mut(start) {
            *control = what;
        }
    }

    /// Appends more accesses of the last instruction of the block that ran last.
    pub fn continued(&mut self, accesses: &[Access], out: &mut Vec<u8>) {
        out.push(control::CONTINUED);
        put(out, accesses.len() as u64);
        let mut ends = [0u64; 2];
        for access in accesses {
            put(out, u64::from(access.instruction));
            put(out, u64::from(access.size) << 1 | u64::from(access.is_store));
            let end = &mut ends[usize::from(access.is_store)];
            put_signed(out, access.address.wrapping_sub(*end) as i64);
            *end = access.address.wrapping_add(u64::from(access.size));
        }
    }

    /// Appends that a signal handler begins.
    pub fn interrupted(&mut self, out: &mut Vec<u8>) {
        out.push(control::INTERRUPTED);
    }

    /// Appends that the thread entered the kernel.
    pub fn system_call(&mut self, number: u64, out: &mut Vec<u8>) {
        out.push(control::SYSTEM_CALL);
        put(out, number);
    }
}

/// Writes a block's new accesses but for their addresses. What was known of the addresses stays with
/// the first accesses: a block that touches more or less does so at its end.
fn reshape(slots: &mut Vec<Slot>, accesses: &[Access], out: &mut Vec<u8>) {
    slots.resize_with(accesses.len(), Slot::default);
    put(out, accesses.len() as u64);
    for (slot, access) in slots.iter_mut().zip(accesses) {
        (slot.instruction, slot.size, slot.is_store) =
            (access.instruction, access.size, access.is_store);
        put(out, u64::from(access.instruction));
        put(out, u64::from(access.size) << 1 | u64::from(access.is_store));
    }
}
