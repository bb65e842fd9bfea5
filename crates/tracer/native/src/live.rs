//! Which registers a block is done with: those may be used between its instructions.

use iced_x86::{Instruction, Mnemonic, OpAccess, Register, RflagsBits, UsedRegister};

use crate::emit::Gpr;
use crate::plan::{gpr, is_repeated};

/// What each instruction of a block reads of registers, and what it writes whole.
#[derive(Default)]
pub(crate) struct Liveness {
    uses: Vec<(u16, u16)>,
}

impl Liveness {
    pub(crate) fn add(&mut self, instruction: &Instruction, used: &[UsedRegister]) {
        let (mut reads, mut kills) = (0u16, 0u16);
        let may_leave = may_leave_register(instruction);
        for one in used {
            let Some(Gpr(number)) = gpr(one.register()) else { continue };
            let is_whole = one.register().is_gpr64() || one.register().is_gpr32();
            match one.access() {
                OpAccess::Write if is_whole && !may_leave => kills |= 1 << number,
                _ => reads |= 1 << number,
            }
        }
        self.uses.push((reads, kills));
    }

    /// Registers whose values nobody reads any more, before each instruction, as bits. Where a block
    /// ends all are read, and RSP always is.
    pub(crate) fn dead(&self) -> Vec<u16> {
        let mut live = u16::MAX;
        let mut all: Vec<u16> = self
            .uses
            .iter()
            .rev()
            .map(|(reads, kills)| {
                live = live & !kills | reads | 1 << 4;
                !live
            })
            .collect();
        all.reverse();
        all
    }

    /// How many instructions from one on do not use a register: what is put aside and brought back is
    /// late, which matters least for the one that is used last.
    pub(crate) fn rests_for(&self, from: usize, register: Gpr) -> usize {
        let rest = self.uses.iter().skip(from);
        rest.take_while(|(reads, kills)| (reads | kills) >> register.0 & 1 == 0).count()
    }
}

/// Whether an instruction that is said to write a register leaves it alone in some cases: where there is
/// no bit, no such segment, or no shadow stack. Unwinders ask for the last after they have written 0.
fn may_leave_register(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(instruction.mnemonic(), M::Rdsspd | M::Rdsspq | M::Bsf | M::Bsr | M::Lar | M::Lsl)
}

/// Flags that arithmetic sets.
const STATUS: u32 = RflagsBits::OF
    | RflagsBits::SF
    | RflagsBits::ZF
    | RflagsBits::AF
    | RflagsBits::CF
    | RflagsBits::PF;

/// Whether a block sets every flag before it reads it, so that those it begins with do not matter.
pub(crate) fn sets_flags_first(instructions: &[Instruction]) -> bool {
    let mut set = 0;
    for instruction in instructions {
        if instruction.rflags_read() & STATUS & !set != 0 || shows_flags(instruction) {
            return false;
        }
        if !may_leave_flags(instruction) {
            set |= instruction.rflags_modified() & STATUS;
        }
        if set == STATUS {
            return true;
        }
    }
    false
}

/// Whether an instruction hands all flags on, to the kernel.
fn shows_flags(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Syscall
}

/// Whether an instruction that sets flags leaves them alone in some cases: when it counts to 0.
fn may_leave_flags(instruction: &Instruction) -> bool {
    let last = instruction.op_count().saturating_sub(1);
    instruction.op_register(last) == Register::CL || is_repeated(instruction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_is_dead_from_its_last_read_to_its_next_write() {
        // mov rax,[rdi]; mov rcx,rax; xor eax,eax; mov al,1; ret
        let bytes = [0x48, 0x8b, 0x07, 0x48, 0x89, 0xc1, 0x31, 0xc0, 0xb0, 1, 0xc3];
        let plan = crate::plan::read(0x1000, &bytes).unwrap();
        let dead = plan.live.dead();
        let is_dead = |at: usize, register: u8| dead[at] >> register & 1 == 1;
        assert!(is_dead(0, 0) && !is_dead(1, 0), "written by the first, read by the second");
        assert!(is_dead(0, 1) && is_dead(1, 1) && !is_dead(2, 1));
        assert!(!is_dead(3, 0), "a byte of it stays");
        assert!(!is_dead(0, 7) && !is_dead(0, 4));
    }

    #[test]
    fn what_may_stay_is_not_dead() {
        // rdsspq rax; ret, and bsf rax,rcx; ret
        for bytes in [&[0xf3, 0x48, 0x0f, 0x1e, 0xc8, 0xc3][..], &[0x48, 0x0f, 0xbc, 0xc1, 0xc3]] {
            let dead = crate::plan::read(0x1000, bytes).unwrap().live.dead();
            assert_eq!(dead[0] & 1, 0, "{bytes:x?}");
        }
    }

    #[test]
    fn flags_matter_until_all_are_set() {
        let sets = |bytes: &[u8]| {
            sets_flags_first(&crate::plan::read(0x1000, bytes).unwrap().instructions)
        };
        assert!(sets(&[0x89, 0xc1, 0x39, 0xc8, 0x74, 0])); // mov; cmp; je
        assert!(!sets(&[0x74, 0])); // je
        assert!(!sets(&[0xff, 0xc0, 0x72, 0])); // inc leaves the carry; jb
        assert!(!sets(&[0x11, 0xc8, 0xc3])); // adc
        assert!(!sets(&[0x89, 0xc1, 0xc3])); // nothing sets them
        assert!(!sets(&[0xd3, 0xe0, 0xc3])); // shl by cl may leave them all
    }
}
