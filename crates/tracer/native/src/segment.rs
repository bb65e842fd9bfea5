//! The program's GS. The engine has the real one in use, so the program's is a number in the context,
//! and what is found by it is found through a register.
//!
//! ```text
//! mov rax, gs:[rbx+16]    put rcx aside; rcx = the program's GS; rcx += rbx
//!                         mov rax, [rcx+16]
//!                         bring rcx back
//! wrgsbase rdi            the program's GS = rdi
//! ```

use iced_x86::{
    Code as Opcode, FlowControl, Instruction, MemoryOperand, Mnemonic, OpKind, Register,
};

use crate::context::at;
use crate::emit::{Gpr, RCX};
use crate::plan::gpr;
use crate::translate::{Writer, free_register, saves_vectors, wide};

/// Whether an instruction finds memory by GS.
pub(crate) fn is_in_gs(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let names = instruction.memory_segment() == Register::GS
        && (0..instruction.op_count()).any(|op| is_by_segment(instruction.op_kind(op)));
    // These name memory and leave it alone.
    names && !matches!(instruction.mnemonic(), M::Lea | M::Nop | M::Reservednop)
}

fn is_by_segment(kind: OpKind) -> bool {
    use OpKind as K;
    let is_source = matches!(kind, K::MemorySegSI | K::MemorySegESI | K::MemorySegRSI);
    let is_masked = matches!(kind, K::MemorySegDI | K::MemorySegEDI | K::MemorySegRDI);
    kind == K::Memory || is_source || is_masked
}

/// Whether an instruction does with GS what is not done here: it loads the selector, or finds memory in
/// a way that another register cannot stand for.
pub(crate) fn is_beyond(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let loads = match instruction.mnemonic() {
        M::Mov | M::Pop => instruction.op0_register() == Register::GS,
        M::Lgs | M::Swapgs => true,
        _ => false,
    };
    loads || is_in_gs(instruction) && !is_movable(instruction)
}

fn is_movable(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let (base, index) = (instruction.memory_base(), instruction.memory_index());
    let is_plain = |register: Register| register == Register::None || register.is_gpr64();
    let has_operand = (0..instruction.op_count()).any(|op| {
        // All that name it by their encoding alone are left out: string instructions, masked moves.
        instruction.op_kind(op) == OpKind::Memory
    });
    // It counts from where the stack is when it is done.
    let pops = instruction.mnemonic() == M::Pop && base == Register::RSP;
    // What a branch goes to is loaded into RCX.
    let is_taken =
        instruction.flow_control() != FlowControl::Next && [base, index].contains(&Register::RCX);
    has_operand
        && is_plain(base)
        && is_plain(index)
        && !pops
        && !is_taken
        && instruction.mnemonic() != M::Xlatb
        && !saves_vectors(instruction.mnemonic())
}

impl Writer {
    /// The address of an instruction's memory operand without its displacement, by way of another
    /// register.
    pub(crate) fn address_in_gs(&mut self, instruction: &Instruction, address: Gpr, other: Gpr) {
        let (base, index) = (instruction.memory_base(), instruction.memory_index());
        self.emitter.load(other, at::GUEST_GS);
        self.add_base(other, base);
        let scale = instruction.memory_index_scale();
        self.lea(address, MemoryOperand::with_base_index_scale(wide(other), index, scale));
    }

    /// An instruction that finds its memory by GS.
    pub(crate) fn move_from_gs(&mut self, index: usize, instruction: &Instruction) {
        let far = free_register(instruction);
        self.displace(index, far);
        self.emitter.load(far, at::GUEST_GS);
        self.add_base(far, instruction.memory_base());
        self.encode(Ok(based_on(instruction, far)));
        self.emitter.load(far, at::spill(far));
    }

    /// Where a branch goes that finds it by GS, into RCX.
    pub(crate) fn load_target_from_gs(&mut self, last: &Instruction) {
        self.emitter.load(RCX, at::GUEST_GS);
        self.add_base(RCX, last.memory_base());
        let memory = MemoryOperand::new(
            Register::RCX,
            last.memory_index(),
            last.memory_index_scale(),
            last.memory_displacement64() as i64,
            1,
            false,
            Register::None,
        );
        self.encode(Instruction::with2(Opcode::Mov_r64_rm64, Register::RCX, memory));
    }

    /// `rdgsbase` and `wrgsbase`.
    pub(crate) fn exchange_gs(&mut self, instruction: &Instruction) {
        let Some(register) = gpr(instruction.op0_register()) else { return };
        match instruction.code() {
            Opcode::Rdgsbase_r64 => self.emitter.load(register, at::GUEST_GS),
            Opcode::Rdgsbase_r32 => self.emitter.load_half(register, at::GUEST_GS),
            Opcode::Wrgsbase_r64 => self.emitter.store(at::GUEST_GS, register),
            _ => {
                self.emitter.store_half(at::GUEST_GS, register);
                self.emitter.store_number(at::GUEST_GS + 4, 0);
            }
        }
    }

    /// Adds the program's base register, if there is one, and changes no flag.
    fn add_base(&mut self, to: Gpr, base: Register) {
        if base != Register::None {
            // RSP can be a base only.
            self.lea(to, MemoryOperand::with_base_index(base, wide(to)));
        }
    }

    fn lea(&mut self, to: Gpr, memory: MemoryOperand) {
        self.encode(Instruction::with2(Opcode::Lea_r64_m, wide(to), memory));
    }
}

/// The instruction with its base in another register, and no segment.
fn based_on(instruction: &Instruction, base: Gpr) -> Instruction {
    let mut moved = *instruction;
    moved.set_segment_prefix(Register::None);
    moved.set_memory_base(wide(base));
    moved.set_memory_displ_size(1);
    moved
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(bytes: &[u8]) -> Instruction {
        Decoder::new(64, bytes, DecoderOptions::NONE).decode()
    }

    #[test]
    fn what_only_names_memory_is_not_in_gs() {
        assert!(is_in_gs(&decoded(&[0x65, 0x48, 0x8b, 0x43, 0x10]))); // mov rax, gs:[rbx+16]
        assert!(!is_in_gs(&decoded(&[0x65, 0x48, 0x8d, 0x43, 0x10]))); // lea
        assert!(!is_in_gs(&decoded(&[0x65, 0x0f, 0x1f, 0x40, 0x10]))); // nop
        assert!(!is_in_gs(&decoded(&[0x64, 0x48, 0x8b, 0x43, 0x10]))); // mov rax, fs:[rbx+16]
    }

    #[test]
    fn what_a_register_cannot_stand_for_is_withheld() {
        let beyond: [&[u8]; 6] = [
            &[0x8e, 0xe8],                         // mov gs, eax
            &[0x0f, 0xa9],                         // pop gs
            &[0x65, 0xac],                         // lodsb gs:[rsi]
            &[0x65, 0x67, 0x8b, 0x03],             // mov eax, gs:[ebx]
            &[0x65, 0xff, 0x11],                   // call gs:[rcx]
            &[0x65, 0x48, 0x8b, 0x05, 0, 0, 0, 0], // mov rax, gs:[rip]
        ];
        for bytes in beyond {
            assert!(is_beyond(&decoded(bytes)), "{bytes:x?}");
        }
        let done: [&[u8]; 4] = [
            &[0x65, 0x48, 0x8b, 0x04, 0x25, 0x30, 0, 0, 0], // mov rax, gs:[0x30]
            &[0x65, 0xff, 0x13],                            // call gs:[rbx]
            &[0x65, 0xff, 0x34, 0x24],                      // push gs:[rsp]
            &[0x8c, 0xe8],                                  // mov eax, gs
        ];
        for bytes in done {
            assert!(!is_beyond(&decoded(bytes)), "{bytes:x?}");
        }
    }

    #[test]
    fn a_displacement_stays_what_it_was_behind_another_base() {
        let negative = [0x65, 0x48, 0x8b, 0x04, 0x25, 0xf8, 0xff, 0xff, 0xff]; // mov rax, gs:[-8]
        let moved = based_on(&decoded(&negative), RCX);
        let mut encoder = iced_x86::Encoder::new(64);
        encoder.encode(&moved, 0).unwrap();
        assert_eq!(encoder.take_buffer(), [0x48, 0x8b, 0x41, 0xf8]);
    }
}
