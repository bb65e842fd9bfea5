//! Instructions that the engine carries out in the program's place.

use iced_x86::{Instruction, Mnemonic};

/// Such an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Special {
    /// A system call.
    Call,
    /// One as 32-bit programs make them.
    NarrowCall,
    /// The question what the processor is.
    Cpuid,
}

/// The interrupt by which 32-bit programs call the kernel.
const NARROW_GATE: u8 = 0x80;

impl Special {
    /// Which of them an instruction is, whatever prefixes stand before it.
    pub(crate) fn of(instruction: &Instruction) -> Option<Special> {
        match instruction.mnemonic() {
            Mnemonic::Syscall => Some(Special::Call),
            Mnemonic::Int if instruction.immediate8() == NARROW_GATE => Some(Special::NarrowCall),
            Mnemonic::Cpuid => Some(Special::Cpuid),
            _ => None,
        }
    }
}
