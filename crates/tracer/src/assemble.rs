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
//!
//! A listener may idle: it then hears from time to time how often blocks ran (`idle`), and perhaps in
//! which order, and of memory only how far a block came is noted. If it does not even want lines, blocks are put on a list and
//! looked at later (`noted`), and memory is not looked at: a block that a fault cuts short then counts
//! as whole.

use model::stream::{Access, CoreListener};

mod noted;

use noted::Noted;

use crate::block::LiveBlock;
use crate::ending::ANY_BYTES;
use crate::idle::Idle;

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
    idle: Idle,
    noted: Noted,
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
            idle: Idle::default(),
            noted: Noted::default(),
        }
    }

    /// The process ends: what is pending is told, and the listener keeps what should outlive it.
    pub fn ended(&mut self) {
        self.flush();
        self.listener.ended();
    }

    /// A block begins. What is done with one that is only noted calls nothing and saves nothing.
    #[inline]
    pub fn begin(&mut self, block: &'static LiveBlock) {
        if !self.noted.is_on() {
            return self.begin_told(block);
        }
        if self.noted.note(block) {
            self.count_noted();
        }
    }

    /// A block begins that the listener hears of, or that is counted at once.
    ///
    /// The common case ends in the call to the listener, so that nothing is saved around it.
    #[inline(never)]
    fn begin_told(&mut self, block: &'static LiveBlock) {
        let Some(pending) = self.pending else { return self.begin_slowly(block) };
        if block.is_repeat || self.is_told || pending.id.0 >= self.known {
            return self.begin_slowly(block);
        }
        let is_whole = match pending.goes_anywhere {
            true => pending.could_touch_until(self.floor),
            false => pending.leads_to(block.start),
        };
        if !is_whole {
            return self.begin_slowly(block);
        }
        self.pending = Some(block);
        self.base = 0;
        self.floor = 0;
        if self.idle.is_on() {
            return self.count_one(pending);
        }
        if self.idle.is_time_to_ask(pending.len) {
            return self.tell_and_ask(pending);
        }
        let last = std::mem::take(&mut self.last);
        let accesses = self.accesses.get(1..=last).unwrap_or_default();
        self.listener.executed(pending.id, pending.len, accesses);
    }

    /// A block ran whole while the listener idled.
    #[inline(never)]
    fn count_one(&mut self, block: &'static LiveBlock) {
        self.idle.count(block.id, 1);
        if self.idle.is_order_full() {
            self.tell_order();
        }
        if self.idle.add(u64::from(block.len)) {
            self.wake();
        }
    }

    /// Tells of a block that ran whole, and asks whether the listener idles from here on.
    #[cold]
    #[inline(never)]
    fn tell_and_ask(&mut self, block: &'static LiveBlock) {
        let last = std::mem::take(&mut self.last);
        let accesses = self.accesses.get(1..=last).unwrap_or_default();
        self.listener.executed(block.id, block.len, accesses);
        self.idle.begin(self.listener.idles_for(), self.listener.hears_order(), self.known);
        if self.idle.is_on() && !self.listener.hears_lines() {
            self.noted.begin(self.idle.left());
        }
    }

    /// Looks at the blocks that were noted; the last of them is pending.
    #[inline(never)]
    fn count_noted(&mut self) {
        let count = self.noted.take();
        let (mut counted, mut longest) = (0, 0);
        for place in 0..count {
            let (Some(next), Some(pending)) = (self.noted.get(place), self.pending) else { break };
            if next.is_repeat && next.start == pending.last {
                self.base = pending.len - 1;
                continue;
            }
            let is_whole = pending.goes_anywhere | pending.leads_to(next.start);
            if is_whole & (pending.id.0 < self.known) {
                self.idle.count(pending.id, 1);
                counted += u64::from(pending.len);
            } else {
                self.finish_noted(pending, next.start, is_whole);
            }
            longest = longest.max(next.len);
            self.pending = Some(next);
            self.base = 0;
        }
        self.tell_order();
        self.idle.add(counted);
        self.noted.lengthen(longest);
        self.floor = 0;
        self.last = 0;
        if self.idle.is_on() {
            self.noted.begin(self.idle.left());
        } else {
            self.noted.end();
            self.wake();
        }
    }

    /// A noted block that the listener does not know yet, or that was cut short.
    #[cold]
    #[inline(never)]
    fn finish_noted(&mut self, block: &'static LiveBlock, next: u64, is_whole: bool) {
        let (ran, is_signal) = match is_whole {
            true => (block.len, false),
            false => block.cut_short(next, block.sure_accesses_end),
        };
        if ran > 0 {
            self.tell(block, ran, 0);
        }
        if is_signal {
            self.listener.interrupted();
        }
    }

    /// Tells what ran while the listener idled, if it did.
    #[cold]
    #[inline(never)]
    fn wake(&mut self) {
        self.tell_order();
        self.tell_addresses();
        let listener = &mut self.listener;
        self.idle.end(|runs, instructions| listener.ran(runs, instructions));
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
            block.leads_to(next)
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
        let accesses_end = match self.idle.is_on() {
            true => self.floor,
            false => own.clone().last().map_or(0, |access| access.instruction + 1),
        };
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
        self.tell_order();
        let accesses = self.accesses.get(1..=count).unwrap_or_default();
        if self.is_told {
            self.is_told = false;
            self.listener.continued(block.id, accesses);
        } else {
            self.listener.executed(block.id, ran, accesses);
            if self.idle.is_on() && self.idle.spend(ran) && !self.noted.is_on() {
                self.wake();
            }
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

    /// Whether blocks are only noted, and memory is not looked at.
    #[inline]
    pub fn is_noting(&self) -> bool {
        self.noted.is_on()
    }

    /// Whether the listener idles; if so, that an instruction touched memory is noted, since it tells
    /// how far its block came, and so is the line. Not to be asked where blocks are only noted.
    #[inline]
    pub fn idles_past(&mut self, instruction: u16, address: u64) -> bool {
        if !self.idle.is_on() {
            return false;
        }
        self.floor = self.floor.max(instruction + self.base + 1);
        if self.idle.touch(address) {
            self.tell_addresses();
        }
        true
    }

    fn tell_order(&mut self) {
        let listener = &mut self.listener;
        self.idle.tell_order(|blocks| listener.passed(blocks));
    }

    #[cold]
    #[inline(never)]
    fn tell_addresses(&mut self) {
        let listener = &mut self.listener;
        self.idle.tell_addresses(|addresses| listener.touched(addresses));
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
            let Piece { address, size, is_store, is_atomic, .. } = piece;
            self.touch_slowly(instruction, address, size, is_store, is_atomic);
        }
    }

    /// Takes what a piece is made of one by one: as a whole it would be written to memory before it
    /// is known whether this is needed.
    #[cold]
    #[inline(never)]
    fn touch_slowly(
        &mut self,
        instruction: u16,
        address: u64,
        size: u8,
        is_store: bool,
        is_atomic: bool,
    ) {
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
        if self.noted.is_on() {
            self.count_noted();
            self.noted.end();
        }
        if let Some(block) = self.pending.take() {
            self.tell(block, block.len, self.last);
        }
        self.wake();
    }

    /// This is the child of a fork.
    pub fn forked(&mut self) {
        // The system call that forked has told all there was.
        self.idle = Idle::default();
        self.noted = Noted::default();
        self.pending = None;
        self.is_told = false;
        self.listener.forked();
    }
}

#[cfg(test)]
mod tests;
