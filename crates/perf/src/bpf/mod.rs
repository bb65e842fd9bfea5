//! `bpf()`: programs in the kernel, memory shared with them, and whether this process may have
//! either.

mod array;
mod assemble;
mod bell;
mod call;
mod program;

pub use array::SharedArray;
pub use assemble::{Alu, Assembler, If, Label, Reg, Width};
pub use bell::{Bell, FORCE_WAKEUP, RING_THE_BELL};
pub use program::{NotLoaded, Program};

use crate::Refusal;

/// `bpf_get_current_pid_tgid`, for [`Assembler::call`].
pub const CURRENT_PID_TGID: i32 = 14;

/// What `bpf()` allowed when it was tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BpfAbilities {
    /// An array that user space can map, as the collector's tables are.
    pub table: Result<(), Refusal>,
    /// A program for perf events, verified and loaded.
    pub program: Result<(), Refusal>,
    /// A way for the program to wake whoever reads the table.
    pub bell: Result<(), Refusal>,
}

/// `r0 = 0; exit`, the smallest program that the verifier accepts.
const RETURN_ZERO: [u64; 2] = [0x0000_0000_0000_00b7, 0x0000_0000_0000_0095];

/// Tries both, and keeps nothing.
pub fn probe_bpf() -> BpfAbilities {
    BpfAbilities {
        table: SharedArray::new(8).map(drop),
        program: Program::load(&RETURN_ZERO).map(drop).map_err(|failed| failed.refusal),
        bell: Bell::new().map(drop),
    }
}
