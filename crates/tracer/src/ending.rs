//! Where a block can go when it ends, and which of its instructions must touch memory.
//!
//! The engine says what ran, not why: a signal, a fault and a taken branch all look like a block
//! that starts elsewhere. Knowing where a block can go tells them apart.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    InstructionInfoOptions, Mnemonic, OpAccess, OpKind,
};
use model::stream::{Code, StaticBlock};

/// Where a block goes when it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// To the instruction after it: it was cut off at a page or for its length.
    Falls,
    /// To a fixed address.
    Jumps(u64),
    /// To a fixed address or to the instruction after it.
    Branches(u64),
    /// To itself, or to the instruction after it: a repeated string instruction.
    Repeats,
    /// To an address that its bytes do not tell, or into the kernel.
    Elsewhere,
}

/// The first address after a block.
pub fn end(block: &StaticBlock) -> u64 {
    block.instructions.last().map_or(0, |last| last.pc.wrapping_add(u64::from(last.len)))
}

/// Decodes one instruction; what cannot be decoded is `None`.
fn decode(code: &Code) -> Option<Instruction> {
    let bytes = code.bytes.get(..usize::from(code.len))?;
    let instruction = Decoder::with_ip(64, bytes, code.pc, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// How long the instruction that begins with these bytes is, if they hold it whole.
pub fn whole_len(code: &Code) -> Option<u8> {
    decode(code).map(|instruction| instruction.len() as u8)
}

/// Where a block goes when it ends.
pub fn ending(block: &StaticBlock) -> Ending {
    let Some(last) = block.instructions.last().and_then(decode) else { return Ending::Elsewhere };
    if is_repeated(&last) {
        return Ending::Repeats;
    }
    match last.flow_control() {
        FlowControl::Next => Ending::Falls,
        FlowControl::ConditionalBranch => Ending::Branches(last.near_branch_target()),
        FlowControl::UnconditionalBranch | FlowControl::Call if is_near(&last) => {
            Ending::Jumps(last.near_branch_target())
        }
        _ => Ending::Elsewhere,
    }
}

/// Whether the instruction runs a string operation as often as rcx says.
fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction()
        && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

fn is_near(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::NearBranch64
}

/// Whether the instruction reads, changes and writes memory in one step that no other thread sees
/// in between.
pub fn is_atomic(code: &Code) -> bool {
    decode(code).is_some_and(|instruction| {
        let exchanges = instruction.mnemonic() == Mnemonic::Xchg
            && (0..2).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
        instruction.has_lock_prefix() || exchanges
    })
}

/// How many bytes an instruction may touch, where that is not known.
pub const ANY_BYTES: u16 = u16::MAX;

/// What memory one instruction touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Touch {
    /// Whether it touches memory whenever it completes. Where that depends on a mask or a count it is
    /// not sure.
    pub is_sure: bool,
    /// How many bytes it touches at most, read and written together.
    pub most_bytes: u16,
}

/// What memory the instructions of a block touch.
pub fn touches(block: &StaticBlock) -> Box<[Touch]> {
    let mut factory = InstructionInfoFactory::new();
    block.instructions.iter().map(|code| touch(code, &mut factory)).collect()
}

fn touch(code: &Code, factory: &mut InstructionInfoFactory) -> Touch {
    // What cannot be decoded may do anything.
    let Some(instruction) = decode(code) else {
        return Touch { is_sure: false, most_bytes: ANY_BYTES };
    };
    let options = InstructionInfoOptions::NO_REGISTER_USAGE;
    let used = factory.info_options(&instruction, options).used_memory();
    let is_sure = !is_repeated(&instruction) && used.iter().any(|memory| is_sure(memory.access()));
    let bytes = used.iter().map(|memory| most_bytes(memory.access(), memory.memory_size().size()));
    Touch { is_sure, most_bytes: bytes.fold(0, u16::saturating_add) }
}

fn is_sure(access: OpAccess) -> bool {
    use OpAccess::{Read, ReadCondWrite, ReadWrite, Write};
    matches!(access, Read | Write | ReadWrite | ReadCondWrite)
}

/// The bytes of one operand. Only plain sizes are trusted: what saves or loads state differs between
/// processors.
fn most_bytes(access: OpAccess, size: usize) -> u16 {
    let is_plain = matches!(size, 1 | 2 | 4 | 8 | 10 | 16 | 32);
    match access {
        OpAccess::Read | OpAccess::Write if is_plain => size as u16,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite if is_plain => 2 * size as u16,
        OpAccess::None | OpAccess::NoMemAccess => 0,
        _ => ANY_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(start: u64, instructions: &[&[u8]]) -> StaticBlock {
        let mut pc = start;
        let codes = instructions.iter().map(|found| {
            let mut bytes = [0; 15];
            bytes[..found.len()].copy_from_slice(found);
            let code = Code { pc, bytes, len: found.len() as u8 };
            pc += found.len() as u64;
            code
        });
        StaticBlock { instructions: codes.collect() }
    }

    #[test]
    fn endings_follow_from_the_last_instruction() {
        let of = |bytes: &[u8]| ending(&block(0x1000, &[&[0x90], bytes]));
        assert_eq!(of(&[0x75, 0x10]), Ending::Branches(0x1013));
        assert_eq!(of(&[0xe2, 0xfe]), Ending::Branches(0x1001));
        assert_eq!(of(&[0xeb, 0x10]), Ending::Jumps(0x1013));
        assert_eq!(of(&[0xe8, 0, 0, 0, 0]), Ending::Jumps(0x1006));
        assert_eq!(of(&[0xff, 0xe0]), Ending::Elsewhere);
        assert_eq!(of(&[0xc3]), Ending::Elsewhere);
        assert_eq!(of(&[0x0f, 0x05]), Ending::Elsewhere);
        assert_eq!(of(&[0xf3, 0xa4]), Ending::Repeats);
        assert_eq!(of(&[0xa4]), Ending::Falls);
        // F3 before another instruction is a hint or part of the opcode.
        assert_eq!(of(&[0xf3, 0xc3]), Ending::Elsewhere);
        assert_eq!(of(&[0xf3, 0x90]), Ending::Falls);
        assert_eq!(end(&block(0x1000, &[&[0x90], &[0xeb, 0]])), 0x1003);
    }

    #[test]
    fn a_truncated_instruction_has_no_length() {
        let whole = |bytes: &[u8]| whole_len(&block(0, &[bytes]).instructions[0]);
        assert_eq!(whole(&[0x48, 0x89, 0xe5]), Some(3));
        assert_eq!(whole(&[0x48, 0x89]), None);
        assert_eq!(whole(&[0xe8, 0, 0]), None);
    }

    #[test]
    fn only_sure_accesses_are_sure() {
        let all = block(
            0,
            &[
                &[0x48, 0x8b, 0x07], // mov rax,[rdi]
                &[0x48, 0x8d, 0x07], // lea rax,[rdi]
                &[0x55],             // push rbp
                &[0x01, 0xd8],       // add eax,ebx
                &[0x0f, 0x1f, 0x00], // nop [rax]
                &[0x0f, 0x18, 0x08], // prefetcht0 [rax]
                &[0xe8, 0, 0, 0, 0], // call
            ],
        );
        let touches = touches(&all);
        let sure = touches.iter().map(|touch| touch.is_sure);
        assert!(sure.eq([true, false, true, false, false, false, true]));
        let bytes: Vec<u16> = touches.iter().map(|touch| touch.most_bytes).collect();
        assert_eq!(bytes, [8, 0, 8, 0, 0, 0, 8]);
    }

    #[test]
    fn bytes_are_bounded_where_the_instruction_bounds_them() {
        let most = |bytes: &[u8]| touches(&block(0, &[bytes]))[0].most_bytes;
        assert_eq!(most(&[0x48, 0x01, 0x07]), 16); // add [rdi],rax
        assert_eq!(most(&[0xff, 0x37]), 16); // push qword [rdi]
        assert_eq!(most(&[0xc5, 0xfe, 0x6f, 0x07]), 32); // vmovdqu ymm0,[rdi]
        assert_eq!(most(&[0xf0, 0x48, 0x0f, 0xc7, 0x0f]), 32); // lock cmpxchg16b [rdi]
        assert_eq!(most(&[0xdb, 0x2f]), 10); // fld tbyte [rdi]
        assert_eq!(most(&[0x0f, 0xae, 0x07]), ANY_BYTES); // fxsave [rdi]
        assert_eq!(most(&[0xf3, 0xa4]), ANY_BYTES); // rep movsb
        assert_eq!(most(&[0x06]), ANY_BYTES); // undefined
    }

    #[test]
    fn locked_instructions_and_exchanges_with_memory_are_atomic() {
        let atomic = |bytes: &[u8]| is_atomic(&block(0, &[bytes]).instructions[0]);
        assert!(atomic(&[0xf0, 0x0f, 0xb1, 0x0f])); // lock cmpxchg [rdi],ecx
        assert!(atomic(&[0x87, 0x07])); // xchg [rdi],eax
        assert!(!atomic(&[0x87, 0xc8])); // xchg eax,ecx
        assert!(!atomic(&[0x01, 0x07])); // add [rdi],eax
    }
}
