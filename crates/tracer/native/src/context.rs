//! What translated code and the engine share: one of these a thread, at the thread's GS base.
//!
//! Translated code reaches it as `gs:[offset]`, which needs no register and no flag. Programs for
//! x86-64 Linux keep their own thread pointer in FS, and hardly one uses GS: what those have in it is a
//! number here.
//!
//! ```text
//! ids:    [4  7  7  9  .  .  . ]    numbers of the blocks that began
//!                      ^left         its distance to the end, below 0. At 0 the next block to begin
//!                                    leaves the cache instead
//! slots:  [a0 a1 | b0 | b0 | ..]    what addresses of each block follow from, in the same order
//! ```

use std::mem::offset_of;

use model::stream::BlockId;

/// Blocks that begin before the listener hears of them, at most.
pub(crate) const IDS: usize = 4096;
/// Values that one block may leave.
pub(crate) const SLOTS_MAX: usize = 64;
/// Sets of the table that finds code for an address, as many as two bytes tell apart.
const SETS: usize = 1 << 16;

/// Where the code of one address is.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Way {
    /// The address, negated: translated code adds, and asks whether nothing is left.
    pub(crate) minus_pc: u64,
    /// The code.
    pub(crate) host: u64,
}

/// The two addresses that a set remembers.
pub(crate) type Set = [Way; 2];

/// What is recorded of a block that begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// That it began.
    Noted = 0,
    /// And what addresses it touches.
    Told = 1,
}

/// Why translated code was left. Translated code writes the number.
pub(crate) mod leave {
    /// A way out of a block leads to code that is not linked to it; the argument is the link's number.
    pub(crate) const LINK: u32 = 0;
    /// A branch goes to an address that the table does not know; `pc` is the address.
    pub(crate) const INDIRECT: u32 = 1;
    /// No blocks are left; the argument is the number of the block that would begin.
    pub(crate) const FULL: u32 = 2;
    /// A block ends in an instruction that the engine carries out; the argument is its number.
    pub(crate) const SPECIAL: u32 = 3;
    /// An instruction faulted; `fault` says how.
    pub(crate) const FAULT: u32 = 4;
}

/// The fault that a thread met in translated code.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Fault {
    /// The host's address of the instruction that faulted.
    pub(crate) host: u64,
    /// The signal, and what the kernel said with it.
    pub(crate) signal: u64,
    pub(crate) code: i64,
    pub(crate) address: u64,
    pub(crate) error: u64,
    pub(crate) trap: u64,
}

/// What a thread's translated code works with.
#[repr(C, align(64))]
pub(crate) struct Context {
    /// The program's registers while it is not running, by their number in the encoding.
    pub(crate) registers: [u64; 16],
    pub(crate) flags: u64,
    /// Where the program goes on.
    pub(crate) pc: u64,
    /// The program's registers whose places the engine uses, by number.
    pub(crate) spill: [u64; 16],
    /// How many bytes of numbers are left, negated.
    pub(crate) left: i64,
    /// Where the next block leaves its values.
    pub(crate) slots: u64,
    /// Why translated code was left.
    pub(crate) why: u32,
    pub(crate) argument: u32,
    pub(crate) host_rsp: u64,
    pub(crate) host_fs: u64,
    pub(crate) guest_fs: u64,
    pub(crate) guest_gs: u64,
    /// The code to enter.
    pub(crate) target: u64,
    /// The floating-point and vector registers while the program is not running.
    pub(crate) vectors: *mut Vectors,
    /// Whether a signal waits to be told to the program. Set by the handler.
    pub(crate) has_signal: u64,
    pub(crate) fault: Fault,
    pub(crate) ids: [BlockId; IDS],
    /// By mode.
    pub(crate) tables: [[Set; SETS]; 2],
}

/// As the processor lays out what it saves of x87, SSE and AVX.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Vectors(pub(crate) [u8; 832]);

impl Vectors {
    /// As the kernel gives them to a new program.
    pub(crate) fn fresh() -> Vectors {
        let mut bytes = [0; 832];
        bytes[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        bytes[24..28].copy_from_slice(&0x1f80_u32.to_le_bytes());
        // x87 and SSE are there; AVX is as if never used.
        bytes[512] = 3;
        Vectors(bytes)
    }
}

/// Offsets for translated code.
pub(crate) mod at {
    use super::{Context, Mode, Set, offset_of};
    use crate::emit::Gpr;

    pub(crate) const PC: i32 = offset_of!(Context, pc) as i32;
    pub(crate) const LEFT: i32 = offset_of!(Context, left) as i32;
    pub(crate) const SLOTS: i32 = offset_of!(Context, slots) as i32;
    pub(crate) const WHY: i32 = offset_of!(Context, why) as i32;
    pub(crate) const ARGUMENT: i32 = offset_of!(Context, argument) as i32;
    pub(crate) const GUEST_GS: i32 = offset_of!(Context, guest_gs) as i32;
    pub(crate) const TARGET: i32 = offset_of!(Context, target) as i32;
    /// Behind the last number.
    pub(crate) const IDS_END: i32 = (offset_of!(Context, ids) + super::IDS * 4) as i32;

    pub(crate) const fn spill(register: Gpr) -> i32 {
        (offset_of!(Context, spill) + register.0 as usize * 8) as i32
    }

    pub(crate) const fn table(mode: Mode) -> i32 {
        (offset_of!(Context, tables) + mode as usize * size_of::<[Set; super::SETS]>()) as i32
    }
}

// Displacements have 31 bits.
const _: () = assert!(size_of::<Context>() < 1 << 30);

/// The set that an address falls in, as translated code finds it.
pub(crate) fn set_of(pc: u64) -> usize {
    pc as usize % SETS
}
