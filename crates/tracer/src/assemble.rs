//! From the engine's callbacks to executed blocks with their accesses.
//!
//! The engine says that a block begins and then, instruction by instruction, what memory it
//! touches. A block is told to the listener when the next one begins, since only then is it known
//! how far it came.
//!
//! ```text
//! engine    begin A   load@0   store@2   begin R   load@0 store@0   begin R   begin B
//! means     A runs: add, .., rep movs (first turn)   second turn      (ends)
//! listener                                                            executed(A, 3, [load@0, ...])
//! ```
//!
//! The engine also reports what it writes itself to deliver a signal, under the index of some earlier
//! instruction. A block's instructions touch memory in order and no more than they can, which tells
//! such pieces apart.

use model::stream::{Access, CoreListener};

use crate::block::LiveBlock;
use crate::ending::ANY_BYTES;

/// How many accesses are kept; one call to the listener carries one fewer at most.
const CAPACITY: usize = 2048;
/// The longest access that pieces are joined to, and the line that a repeated one stays in.
const LINE_BYTES: u64 = 64;

/// A memory event as the engine reports it: one piece of an access.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Which instruction of the block.
    pub instruction: u16,
    /// The first byte touched.
    pub address: u64,
    /// How many bytes.
    pub size: u8,
    /// Whether it wrote.
    pub is_store: bool,
    /// Whether the instruction is atomic, in which case the engine may report its read and its
    /// write as one write.
    pub is_atomic: bool,
}

/// Gives the blocks of the process from a number on.
pub type BlocksSince = fn(u32) -> Vec<&'static LiveBlock>;

/// Puts one thread's blocks together.
pub struct Assembler {
    listener: Box<dyn CoreListener>,
    blocks_since: BlocksSince,
    pending: Option<&'static LiveBlock>,
    /// Whether the listener was already told of the pending block.
    is_told: bool,
    /// The index in the pending block of the engine's instruction 0.
    base: u16,
    /// The number of blocks that the listener knows.
    known: u32,
    accesses: Box<[Access; CAPACITY]>,
    /// How many accesses are set; the first slot is not used.
    last: usize,
    /// One more than the index of the instruction that touched memory last; 0 if none did.
    floor: u16,
}

impl Assembler {
    /// A thread that has run nothing.
    pub fn new(listener: Box<dyn CoreListener>, blocks_since: BlocksSince) -> Assembler {
        let none = Access { address: 0, instruction: 0, size: 0, is_store: false };
        Assembler {
            listener,
            blocks_since,
            pending: None,
            is_told: false,
            base: 0,
            known: 0,
            accesses: Box::new([none; CAPACITY]),
            last: 0,
            floor: 0,
        }
    }

    /// A block begins.
    ///
    /// The common case ends in the call to the listener, so that nothing is saved around it.
    #[inline]
    pub fn begin(&mut self, block: &'static LiveBlock) {
        match self.pending {
            Some(pending) if !block.is_repeat && !self.is_told && pending.id.0 < self.known => {
                let is_whole = if pending.goes_anywhere {
                    pending.could_touch_until(self.floor)
                } else {
                    block.start == pending.end || block.start == pending.target
                };
                if is_whole {
                    self.pending = Some(block);
                    self.base = 0;
                    self.floor = 0;
                    let last = std::mem::take(&mut self.last);
                    let accesses = self.accesses.get(1..=last).unwrap_or_default();
                    return self.listener.executed(pending.id, pending.len, accesses);
                }
                self.begin_slowly(block);
            }
            _ => self.begin_slowly(block),
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_slowly(&mut self, block: &'static LiveBlock) {
        if let Some(pending) = self.pending {
            if block.is_repeat && block.start == pending.last {
                // The next turn of a string instruction, not another instruction.
                self.base = pending.len - 1;
                return;
            }
            self.finish(pending, block.start);
        }
        self.pending = Some(block);
        self.base = 0;
        self.floor = 0;
        self.last = 0;
    }

    fn finish(&mut self, block: &'static LiveBlock, next: u64) {
        let is_whole = if block.goes_anywhere {
            self.is_told || block.could_touch_until(self.floor)
        } else {
            next == block.end || next == block.target
        };
        if !is_whole {
            return self.finish_cut(block, next);
        }
        self.tell(block, block.len, self.last);
    }

    #[cold]
    fn finish_cut(&mut self, block: &'static LiveBlock, next: u64) {
        let all = self.accesses.get(1..=self.last).unwrap_or_default();
        let own = all.iter().take_while(|access| block.most_bytes(access.instruction) > 0);
        let accesses_end = own.clone().last().map_or(0, |access| access.instruction + 1);
        let (ran, is_signal) = block.cut_short(next, accesses_end);
        let kept = own.take_while(|access| access.instruction < ran).count();
        if ran > 0 {
            self.tell(block, ran, kept);
        }
        self.is_told = false;
        if is_signal {
            self.listener.interrupted();
        }
    }

    fn tell(&mut self, block: &'static LiveBlock, ran: u16, count: usize) {
        if block.id.0 >= self.known {
            self.introduce(block);
        }
        let accesses = self.accesses.get(1..=count).unwrap_or_default();
        if self.is_told {
            self.is_told = false;
            self.listener.continued(block.id, accesses);
        } else {
            self.listener.executed(block.id, ran, accesses);
        }
    }

    /// Makes the listener know the blocks up to one that it is about to be told of.
    #[cold]
    fn introduce(&mut self, block: &'static LiveBlock) {
        for next in (self.blocks_since)(self.known) {
            if next.id <= block.id {
                self.listener.translated(next.id, &next.code);
                self.known = next.id.0 + 1;
            }
        }
    }

    /// The pending block touched memory. The common case calls nothing.
    #[inline]
    pub fn touch(&mut self, piece: Piece) {
        let instruction = piece.instruction + self.base;
        if instruction >= self.floor && !piece.is_atomic && self.last + 1 < CAPACITY {
            let Piece { address, size, is_store, .. } = piece;
            self.floor = instruction + 1;
            self.last += 1;
            self.accesses[self.last % CAPACITY] = Access { address, instruction, size, is_store };
        } else {
            self.touch_slowly(piece, instruction);
        }
    }

    #[cold]
    #[inline(never)]
    fn touch_slowly(&mut self, piece: Piece, instruction: u16) {
        let Piece { address, size, is_store, is_atomic, .. } = piece;
        let access = Access { address, instruction, size, is_store };
        let is_another = instruction >= self.floor;
        if !is_another && !self.may_touch_more(instruction, size) {
            return;
        }
        self.floor = instruction + 1;
        if is_another && is_atomic && is_store {
            self.push(Access { is_store: false, ..access });
        }
        if is_another || !self.join(access) {
            self.push(access);
        }
    }

    /// Whether an instruction that touched memory may touch `size` bytes more: it is the last that
    /// did, and can touch as much.
    fn may_touch_more(&self, instruction: u16, size: u8) -> bool {
        let Some(block) = self.pending.filter(|_| instruction + 1 == self.floor) else {
            return false;
        };
        let most = block.most_bytes(instruction);
        if most == ANY_BYTES {
            return true;
        }
        let all = self.accesses.get(1..=self.last).unwrap_or_default();
        let same = all.iter().rev().take_while(|access| access.instruction == instruction);
        let so_far: u16 = same.map(|access| u16::from(access.size)).sum();
        so_far + u16::from(size) <= most
    }

    fn push(&mut self, access: Access) {
        if self.last + 1 >= CAPACITY {
            self.spill();
        }
        self.last += 1;
        self.accesses[self.last % CAPACITY] = access;
    }

    /// Joins a piece to the access that it continues. A repeated instruction reads and writes in
    /// turn, so the access before the last is tried too; and its pieces are joined within a line
    /// only, as a core would move them.
    fn join(&mut self, piece: Access) -> bool {
        let is_repeated = self
            .pending
            .is_some_and(|block| block.target == block.last && piece.instruction + 1 == block.len);
        let look_back = if is_repeated { 2 } else { 1 };
        for slot in (1..=self.last).rev().take(look_back) {
            let earlier = &mut self.accesses[slot % CAPACITY];
            if earlier.instruction != piece.instruction {
                return false;
            }
            let size = u64::from(earlier.size) + u64::from(piece.size);
            let offset = if is_repeated { earlier.address % LINE_BYTES } else { 0 };
            let is_next = earlier.address.wrapping_add(u64::from(earlier.size)) == piece.address;
            if earlier.is_store == piece.is_store && is_next && offset + size <= LINE_BYTES {
                earlier.size = size as u8;
                return true;
            }
        }
        false
    }

    /// Tells the listener what there is so far, so that the buffer never grows.
    #[cold]
    fn spill(&mut self) {
        if let Some(block) = self.pending {
            self.tell(block, block.len, self.last);
            self.is_told = true;
        }
        self.last = 0;
    }

    /// The thread entered the kernel: the pending block is complete.
    pub fn system_call(&mut self, number: u64) {
        self.flush();
        self.listener.system_call(number);
    }

    /// Tells the listener of the pending block, which is complete.
    pub fn flush(&mut self) {
        if let Some(block) = self.pending.take() {
            self.tell(block, block.len, self.last);
        }
    }

    /// This is the child of a fork.
    pub fn forked(&mut self) {
        self.pending = None;
        self.is_told = false;
        self.listener.forked();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BlockTable;
    use model::stream::{BlockId, Code, StaticBlock};
    use std::sync::{Arc, Mutex};

    /// What a listener was told, in words.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<String>>>);

    impl Told {
        fn say(&self, what: String) {
            self.0.lock().unwrap().push(what);
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock().unwrap())
        }
    }

    fn words(accesses: &[Access]) -> String {
        let word = |access: &Access| {
            let kind = if access.is_store { "store" } else { "load" };
            format!(" {kind}@{} {:#x}+{}", access.instruction, access.address, access.size)
        };
        accesses.iter().map(word).collect()
    }

    impl CoreListener for Told {
        fn translated(&mut self, id: BlockId, _: &StaticBlock) {
            self.say(format!("know {}", id.0));
        }

        fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
            self.say(format!("run {} {ran}{}", id.0, words(accesses)));
        }

        fn continued(&mut self, id: BlockId, accesses: &[Access]) {
            self.say(format!("more {} {}", id.0, accesses.len()));
        }

        fn interrupted(&mut self) {
            self.say("signal".into());
        }
    }

    /// Three blocks, leaked as in a process: their numbers are their places.
    fn blocks() -> Vec<&'static LiveBlock> {
        let mut table = BlockTable::new(true);
        let all: [(u64, &[&[u8]]); 5] = [
            // mov rax,[rdi]; vmovdqu ymm0,[rsi]; jne +0x10
            (0x1000, &[&[0x48, 0x8b, 0x07], &[0xc5, 0xfe, 0x6f, 0x06], &[0x75, 0x10]]),
            // lock inc qword [rdi]; ret
            (0x1009, &[&[0xf0, 0x48, 0xff, 0x07], &[0xc3]]),
            // nop; rep movsb
            (0x2000, &[&[0x90], &[0xf3, 0xa4]]),
            // rep movsb alone
            (0x2001, &[&[0xf3, 0xa4]]),
            (0x2003, &[&[0x90], &[0xc3]]),
        ];
        for (start, instructions) in all {
            let mut pc = start;
            let codes = instructions.iter().map(|found| {
                let mut bytes = [0; 15];
                bytes[..found.len()].copy_from_slice(found);
                pc += found.len() as u64;
                Code { pc: pc - found.len() as u64, bytes, len: found.len() as u8 }
            });
            table.intern(codes.collect());
        }
        table.since(0).to_vec()
    }

    fn since(known: u32) -> Vec<&'static LiveBlock> {
        blocks().split_off(known as usize)
    }

    fn load(instruction: u16, address: u64, size: u8) -> Piece {
        Piece { instruction, address, size, is_store: false, is_atomic: false }
    }

    fn store(instruction: u16, address: u64, size: u8) -> Piece {
        Piece { is_store: true, ..load(instruction, address, size) }
    }

    fn start() -> (Assembler, Told, Vec<&'static LiveBlock>) {
        let told = Told::default();
        (Assembler::new(Box::new(told.clone()), since), told, blocks())
    }

    #[test]
    fn pieces_of_a_wide_access_are_one_access() {
        let (mut assembler, told, blocks) = start();
        assembler.begin(blocks[0]);
        assembler.touch(load(0, 0x8, 8));
        (0..4).for_each(|piece| assembler.touch(load(1, 0x10 + piece * 8, 8)));
        assembler.begin(blocks[1]);
        assert_eq!(told.take(), ["know 0", "run 0 3 load@0 0x8+8 load@1 0x10+32"]);
    }

    #[test]
    fn an_atomic_instruction_reads_and_writes_however_it_is_reported() {
        let expected = ["know 0", "know 1", "run 1 2 load@0 0x40+8 store@0 0x40+8 load@1 0x80+8"];
        let atomic = |piece: Piece| Piece { is_atomic: true, ..piece };
        for is_single in [true, false] {
            let (mut assembler, told, blocks) = start();
            assembler.begin(blocks[1]);
            if !is_single {
                assembler.touch(atomic(load(0, 0x40, 8)));
            }
            assembler.touch(atomic(store(0, 0x40, 8)));
            assembler.touch(load(1, 0x80, 8));
            assembler.begin(blocks[0]);
            assert_eq!(told.take(), expected);
        }
    }

    #[test]
    fn turns_of_a_string_instruction_are_one_instruction_within_lines() {
        let (mut assembler, told, blocks) = start();
        let turn = |assembler: &mut Assembler, index, at: u64| {
            assembler.touch(load(index, 0x103c + at, 1));
            assembler.touch(store(index, 0x2000 + at, 1));
        };
        assembler.begin(blocks[2]);
        turn(&mut assembler, 1, 0);
        for at in 1..6 {
            assembler.begin(blocks[3]);
            turn(&mut assembler, 0, at);
        }
        assembler.begin(blocks[3]);
        assembler.begin(blocks[4]);
        let run = told.take().pop().unwrap();
        // The read crosses a line after four bytes; the write does not.
        assert_eq!(run, "run 2 2 load@1 0x103c+4 store@1 0x2000+6 load@1 0x1040+2");
    }

    #[test]
    fn what_does_not_fit_follows() {
        let (mut assembler, told, blocks) = start();
        assembler.begin(blocks[3]);
        for line in 0..5000 {
            assembler.touch(store(0, line * 64, 64));
        }
        assembler.begin(blocks[4]);
        let told = told.take();
        assert!(told.iter().any(|what| what.starts_with("run 3 1 store@0 0x0+64")));
        assert_eq!(told[told.len() - 2..], ["more 3 2047", "more 3 906"]);
    }

    #[test]
    fn a_fault_ends_a_block_before_the_access_that_failed() {
        let (mut assembler, told, blocks) = start();
        assembler.begin(blocks[0]);
        assembler.touch(load(0, 0x8, 8));
        assembler.begin(blocks[4]);
        assert_eq!(told.take(), ["know 0", "run 0 1 load@0 0x8+8", "signal"]);
        // A fault at the first instruction runs nothing.
        assembler.begin(blocks[0]);
        assembler.begin(blocks[4]);
        let told = told.take();
        assert_eq!(told.last().unwrap(), "signal");
        assert!(!told.iter().any(|what| what.starts_with("run 0")));
    }

    #[test]
    fn what_the_engine_writes_to_deliver_a_signal_is_no_access_of_the_program() {
        // Under the index of an earlier instruction, of the last, or of one that touches nothing.
        for stale in 0..3 {
            let (mut assembler, told, blocks) = start();
            assembler.begin(blocks[0]);
            assembler.touch(load(0, 0x8, 8));
            (0..4).for_each(|piece| assembler.touch(load(1, 0x10 + piece * 8, 8)));
            (0..30).for_each(|piece| assembler.touch(store(stale, 0x7000 + piece * 16, 8)));
            assembler.begin(blocks[4]);
            let expected = ["know 0", "run 0 3 load@0 0x8+8 load@1 0x10+32", "signal"];
            assert_eq!(told.take(), expected, "stale {stale}");
        }
    }
}
