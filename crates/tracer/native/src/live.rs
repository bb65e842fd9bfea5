//! Which registers a block is done with: those may be used between its instructions.

use iced_x86::{OpAccess, UsedRegister};

use crate::emit::Gpr;
use crate::plan::gpr;

/// What each instruction of a block reads of registers, and what it writes whole.
#[derive(Default)]
pub(crate) struct Liveness {
    uses: Vec<(u16, u16)>,
}

impl Liveness {
    pub(crate) fn add(&mut self, used: &[UsedRegister]) {
        let (mut reads, mut kills) = (0u16, 0u16);
        for one in used {
            let Some(Gpr(number)) = gpr(one.register()) else { continue };
            let is_whole = one.register().is_gpr64() || one.register().is_gpr32();
            match one.access() {
                OpAccess::Write if is_whole => kills |= 1 << number,
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
}
