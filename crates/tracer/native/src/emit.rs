//! Writing the few instructions that stand between those of the program.
//!
//! None of them changes a flag that the program reads: keeping flags would cost more than all that is
//! done here. What has to be decided is decided by `jrcxz` where they are in use.

use crate::context::at;

/// A register by its number in the encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gpr(pub(crate) u8);

pub(crate) const RAX: Gpr = Gpr(0);
pub(crate) const RCX: Gpr = Gpr(1);
pub(crate) const RSP: Gpr = Gpr(4);
pub(crate) const R10: Gpr = Gpr(10);
pub(crate) const R11: Gpr = Gpr(11);

/// Code that is being written, and where it will lie.
pub(crate) struct Emitter {
    pub(crate) bytes: Vec<u8>,
    pub(crate) base: u64,
    /// Constants that code reads, put behind it: where each is read, and its value.
    constants: Vec<(usize, u64)>,
}

impl Emitter {
    pub(crate) fn new(base: u64) -> Emitter {
        Emitter { bytes: Vec::with_capacity(1024), base, constants: Vec::new() }
    }

    /// The address of what is written next.
    pub(crate) fn here(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn put_i32(&mut self, value: i32) {
        self.put(&value.to_le_bytes());
    }

    /// An instruction whose memory operand is `gs:[offset]`.
    fn gs(&mut self, opcode: u8, register: Gpr, is_wide: bool, offset: i32) {
        let rex = 0x40 | u8::from(is_wide) << 3 | (register.0 >> 3) << 2;
        self.put(&[0x65]);
        if rex != 0x40 {
            self.put(&[rex]);
        }
        self.put(&[opcode, (register.0 & 7) << 3 | 4, 0x25]);
        self.put_i32(offset);
    }

    /// `mov gs:[offset], register`
    pub(crate) fn store(&mut self, offset: i32, register: Gpr) {
        self.gs(0x89, register, true, offset);
    }

    /// `mov register, gs:[offset]`
    pub(crate) fn load(&mut self, register: Gpr, offset: i32) {
        self.gs(0x8b, register, true, offset);
    }

    /// `mov dword gs:[offset], register`
    pub(crate) fn store_half(&mut self, offset: i32, register: Gpr) {
        self.gs(0x89, register, false, offset);
    }

    /// `mov register, dword gs:[offset]`, which clears its upper half.
    pub(crate) fn load_half(&mut self, register: Gpr, offset: i32) {
        self.gs(0x8b, register, false, offset);
    }

    /// `mov dword gs:[offset], value`
    pub(crate) fn store_number(&mut self, offset: i32, value: u32) {
        self.gs(0xc7, Gpr(0), false, offset);
        self.put(&value.to_le_bytes());
    }

    /// `jmp gs:[offset]`
    pub(crate) fn jump_through(&mut self, offset: i32) {
        self.gs(0xff, Gpr(4), false, offset);
    }

    /// `mov to, from`
    pub(crate) fn copy(&mut self, to: Gpr, from: Gpr) {
        let rex = 0x48 | (from.0 >> 3) << 2 | to.0 >> 3;
        self.put(&[rex, 0x89, 0xc0 | (from.0 & 7) << 3 | to.0 & 7]);
    }

    /// `mov register, value`
    pub(crate) fn set(&mut self, register: Gpr, value: u64) {
        self.put(&[0x48 | register.0 >> 3, 0xb8 | register.0 & 7]);
        self.put(&value.to_le_bytes());
    }

    /// An instruction whose memory operand is `[base + offset]`.
    fn based(&mut self, opcode: u8, register: Gpr, base: Gpr, offset: i32) {
        let rex = 0x48 | (register.0 >> 3) << 2 | base.0 >> 3;
        self.put(&[rex, opcode, 0x80 | (register.0 & 7) << 3 | base.0 & 7]);
        if base.0 & 7 == 4 {
            self.put(&[0x24]);
        }
        self.put_i32(offset);
    }

    /// `mov [base + offset], register`
    pub(crate) fn store_at(&mut self, base: Gpr, offset: i32, register: Gpr) {
        self.based(0x89, register, base, offset);
    }

    /// `lea register, [base + offset]`
    pub(crate) fn add(&mut self, register: Gpr, base: Gpr, offset: i32) {
        self.based(0x8d, register, base, offset);
    }

    /// `jmp target`
    pub(crate) fn jump(&mut self, target: u64) {
        self.put(&[0xe9]);
        self.relative(target);
    }

    /// The last four bytes of a branch, which say how far it goes.
    pub(crate) fn relative(&mut self, target: u64) {
        let from = self.here() + 4;
        self.put_i32(target.wrapping_sub(from) as i32);
    }

    /// A branch whose distance will be changed while others run it: it is put so that it is written at
    /// once. `opcode` is what comes before the distance. Says where the distance is.
    pub(crate) fn branch(&mut self, opcode: &[u8], target: u64) -> u64 {
        while (self.here() + opcode.len() as u64) % 8 > 4 {
            self.put(&[0x90]);
        }
        self.put(opcode);
        let place = self.here();
        self.relative(target);
        place
    }

    /// `jrcxz` to something written later; its place is to be given to `land`.
    pub(crate) fn jump_if_rcx_is_0(&mut self) -> usize {
        self.put(&[0xe3, 0]);
        self.bytes.len()
    }

    /// What was jumped to comes here.
    pub(crate) fn land(&mut self, jump: usize) {
        let distance = self.bytes.len() - jump;
        debug_assert!(distance < 128);
        self.bytes[jump - 1] = distance as u8;
    }

    /// An instruction whose memory operand is a constant, `rip`-relative: the opcode with its prefixes,
    /// and the register field.
    pub(crate) fn constant(&mut self, opcode: &[u8], field: u8, value: u64) {
        self.put(opcode);
        self.put(&[field << 3 | 5]);
        self.constants.push((self.bytes.len(), value));
        self.put_i32(0);
    }

    /// `push value`
    pub(crate) fn push(&mut self, value: u64) {
        self.constant(&[0xff], 6, value);
    }

    /// Notes that a block begins, given what is left in a register.
    pub(crate) fn note(&mut self, left: Gpr, id: u32) {
        // mov dword gs:[left + IDS_END], id
        self.put(&[0x65]);
        if left.0 > 7 {
            self.put(&[0x41]);
        }
        self.put(&[0xc7, 0x80 | left.0 & 7]);
        if left.0 & 7 == 4 {
            self.put(&[0x24]);
        }
        self.put_i32(at::IDS_END);
        self.put(&id.to_le_bytes());
        self.add(left, left, 4);
        self.store(at::LEFT, left);
    }

    /// `test register, register`: the one instruction here that changes flags, for where nobody reads
    /// them any more.
    pub(crate) fn test(&mut self, register: Gpr) {
        let rex = 0x48 | (register.0 >> 3) << 2 | register.0 >> 3;
        self.put(&[rex, 0x85, 0xc0 | (register.0 & 7) << 3 | register.0 & 7]);
    }

    /// Loads from the table: `mov register, gs:[offset + r10 * 8]`.
    pub(crate) fn load_table(&mut self, register: Gpr, offset: i32) {
        self.put(&[0x65, 0x4a | (register.0 >> 3) << 2, 0x8b, (register.0 & 7) << 3 | 4, 0xd5]);
        self.put_i32(offset);
    }

    /// Leaves translated code.
    pub(crate) fn leave(&mut self, why: u32, argument: u32, leave: u64) {
        self.store_number(at::WHY, why);
        self.store_number(at::ARGUMENT, argument);
        self.jump(leave);
    }

    /// Puts the constants behind the code and says where they are.
    pub(crate) fn finish(&mut self) {
        while !self.constants.is_empty() && !self.bytes.len().is_multiple_of(8) {
            self.put(&[0xcc]);
        }
        for (place, value) in std::mem::take(&mut self.constants) {
            let distance = (self.bytes.len() - place - 4) as i32;
            self.bytes[place..place + 4].copy_from_slice(&distance.to_le_bytes());
            self.put(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};

    fn written(write: impl FnOnce(&mut Emitter)) -> iced_x86::Instruction {
        let mut emitter = Emitter::new(0x1000);
        write(&mut emitter);
        emitter.finish();
        Decoder::with_ip(64, &emitter.bytes, 0x1000, DecoderOptions::NONE).decode()
    }

    #[test]
    fn what_is_written_is_what_a_decoder_reads() {
        let load = written(|e| e.load(Gpr(9), 0x1234));
        assert_eq!((load.mnemonic(), load.op0_register()), (Mnemonic::Mov, Register::R9));
        assert_eq!((load.memory_segment(), load.memory_displacement64()), (Register::GS, 0x1234));
        let store = written(|e| e.store_at(Gpr(12), -8, Gpr(15)));
        assert_eq!((store.memory_base(), store.op1_register()), (Register::R12, Register::R15));
        assert_eq!(store.memory_displacement64() as i64, -8);
        let store = written(|e| e.store_at(RSP, 16, RCX));
        assert_eq!((store.memory_base(), store.memory_displacement64()), (Register::RSP, 16));
        let push = written(|e| e.push(7));
        assert_eq!((push.mnemonic(), push.ip_rel_memory_address()), (Mnemonic::Push, 0x1008));
        let set = written(|e| e.set(Gpr(11), u64::MAX - 1));
        assert_eq!((set.op0_register(), set.immediate(1)), (Register::R11, u64::MAX - 1));
        let copy = written(|e| e.copy(Gpr(1), Gpr(14)));
        assert_eq!((copy.op0_register(), copy.op1_register()), (Register::RCX, Register::R14));
        let table = written(|e| e.load_table(RAX, 0x40));
        assert_eq!((table.memory_index(), table.memory_index_scale()), (Register::R10, 8));
        let note = written(|e| e.note(Gpr(13), 9));
        assert_eq!((note.memory_base(), note.immediate32()), (Register::R13, 9));
        let note = written(|e| e.note(Gpr(12), 9));
        assert_eq!((note.memory_base(), note.immediate32()), (Register::R12, 9));
        let test = written(|e| e.test(Gpr(9)));
        assert_eq!((test.op0_register(), test.op1_register()), (Register::R9, Register::R9));
    }

    #[test]
    fn a_distance_that_will_be_changed_lies_in_one_word() {
        for before in 0..16 {
            let mut emitter = Emitter::new(0x1000);
            emitter.put(&vec![0x90; before]);
            let place = emitter.branch(&[0x0f, 0x85], 0x9000);
            assert!(place % 8 <= 4, "{before}");
        }
    }
}
