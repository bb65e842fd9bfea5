//! What every engine that runs a program tells the modelled core.
//!
//! A program is a set of static blocks and, per thread, the order in which they ran with the
//! memory that they touched. The direction of a branch is not said: it is where the next block
//! starts.
//!
//! ```text
//! block 7:  0x401000 mov rax,[rdi]      executed(7, 3, [load 0x7f..10 @0, store 0x7f..18 @1])
//!           0x401003 mov [rsi],rax      executed(9, 2, [])          <- 7's jne was taken to 9
//!           0x401006 jne 0x401020
//! ```

/// One instruction as found in memory when it was translated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code {
    /// Its address in the process.
    pub pc: u64,
    /// Its bytes; those after `len` are zero.
    pub bytes: [u8; 15],
    /// How many of the bytes are the instruction.
    pub len: u8,
}

/// A stretch of code that is entered at the top and runs to its end unless it faults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StaticBlock {
    /// Its instructions in order; never empty.
    pub instructions: Box<[Code]>,
}

/// A static block by its number, dense from 0 in order of first translation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(transparent)]
pub struct BlockId(pub u32);

/// A memory access by an executed instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The first byte touched.
    pub address: u64,
    /// Which instruction of the block did it.
    pub instruction: u16,
    /// How many bytes.
    pub size: u8,
    /// Whether it wrote.
    pub is_store: bool,
}

/// One thread of the program, which has a modelled core to itself.
///
/// Implementors own their state, so that threads run without locks.
pub trait CoreListener: Send {
    /// A block seen for the first time by this listener; ids arrive in order.
    fn translated(&mut self, id: BlockId, block: &StaticBlock);

    /// The first `ran` instructions of a block were executed. Accesses are in program order.
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]);

    /// The last instruction of the block just executed touched more memory than one call carries:
    /// a repeated string instruction. No further instruction ran.
    fn continued(&mut self, _id: BlockId, _accesses: &[Access]) {}

    /// How often it asked its outermost tables so far, which are more than the host's near caches hold.
    fn far_looks(&self) -> u64 {
        0
    }

    /// These addresses are touched soon. Nothing follows from it; an engine that tells where `far_looks`
    /// are frequent spares the listener's host some waiting.
    fn approach(&self, _addresses: &[u64]) {}

    /// For how many instructions from now on the listener has no use for accesses or order. An engine
    /// that asks may tell it by `ran` how often blocks ran in that time, or go on as before.
    fn idles_for(&self) -> u64 {
        0
    }

    /// Whether it wants to hear by `touched` what memory is touched while it idles. One that does not
    /// costs its engine least.
    fn hears_lines(&self) -> bool {
        true
    }

    /// Whether it wants to hear by `passed` in which order blocks run while it idles.
    fn hears_order(&self) -> bool {
        false
    }

    /// While the listener idled these blocks ran to their end, in this order. `ran` counts them later.
    fn passed(&mut self, _blocks: &[BlockId]) {}

    /// While the listener idled these blocks ran to their end so many times, `instructions` in all.
    fn ran(&mut self, _runs: &[(BlockId, u32)], _instructions: u64) {}

    /// While the listener idled these addresses were touched, in order. Each stands for its line, and
    /// a line that was touched a short while before (`Reached`) may be left out.
    fn touched(&mut self, _addresses: &[u64]) {}

    /// A signal handler begins with the next block, so that it follows from no branch. After an
    /// indirect branch or a system call any address may follow, so there it is not noticed.
    fn interrupted(&mut self) {}

    /// The thread entered the kernel, and may not come back: what should outlive it is kept now.
    fn system_call(&mut self, _number: u64) {}

    /// The process forked and this is the thread that lives on in the child. What was learnt (caches,
    /// predictors) stays; what was counted belongs to the parent and starts anew.
    fn forked(&mut self) {}

    /// The process ends, and this is the last word of the thread.
    fn ended(&mut self) {}
}

/// Lines that are told apart, about as many as first levels hold; a power of two. What a first level
/// has let go of the outer ones hear of again in truth, and translation with them.
const REACHED: usize = 1024;
/// Instructions after which all are to be forgotten, so that one that is always in use becomes the
/// newest of the outer caches again before they would let go of it.
pub const FORGET_EVERY: u64 = 1 << 18;
/// The power of two of the bytes that count as one line here.
const REACHED_SHIFT: u32 = 6;

/// The lines reached last: each place holds the last of those that share its low bits.
#[derive(Clone, Debug)]
pub struct Reached<const PLACES: usize = REACHED> {
    /// Folded to half a word, so that the usual table stays in the host's first level.
    lines: Box<[u32; PLACES]>,
}

/// No line, as long as nobody uses the last one of the address space.
const NOWHERE: u32 = u32::MAX;

impl<const PLACES: usize> Default for Reached<PLACES> {
    fn default() -> Reached<PLACES> {
        Reached { lines: Box::new([NOWHERE; PLACES]) }
    }
}

impl<const PLACES: usize> Reached<PLACES> {
    /// Whether the line of an address was not reached a short while before.
    #[inline]
    pub fn is_new(&mut self, address: u64) -> bool {
        self.is_new_line(address >> REACHED_SHIFT)
    }

    /// The same of a line by its number.
    #[inline]
    pub fn is_new_line(&mut self, line: u64) -> bool {
        // Lines that differ only in equal bits of both halves are far apart and few.
        let folded = (line ^ line >> 32) as u32;
        let place = &mut self.lines[line as usize % PLACES];
        // No decision: which lines are new the host could not guess.
        let is_new = *place != folded;
        *place = folded;
        is_new
    }

    /// Every line is new from now on.
    pub fn forget(&mut self) {
        self.lines.fill(NOWHERE);
    }
}
