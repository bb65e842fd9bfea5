//! A small assembler for the kernel's bytecode: the instructions that the collector's program
//! needs, and labels.
//!
//! ```text
//! opcode u8 | destination u4 | source u4 | offset i16 | immediate i32      (one word)
//! ```

/// A register of the kernel's machine. R0 is the result, R1 to R5 are arguments and do not survive
/// a call, R6 to R9 do, and R10 is the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "numbered, explained above")]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// Arithmetic on 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "named after what they do")]
pub enum Alu {
    Add = 0x00,
    Mul = 0x20,
    Or = 0x40,
    And = 0x50,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    Xor = 0xa0,
    Move = 0xb0,
}

/// When to jump; comparisons are unsigned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
#[allow(missing_docs, reason = "named after what they ask")]
pub enum If {
    Equal = 0x10,
    AtLeast = 0x30,
    NotEqual = 0x50,
}

/// How much is loaded or stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Width {
    /// Four bytes, the rest of the register zero.
    Word = 0x00,
    /// Eight bytes.
    Double = 0x18,
}

/// A place in the program, bound once and jumped to from before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Label(usize);

/// Instructions in the making.
#[derive(Clone, Debug, Default)]
pub struct Assembler {
    words: Vec<u64>,
    bound: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

const REGISTER: u8 = 0x08;
const PSEUDO_MAP_FD: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;

impl Assembler {
    fn word(&mut self, opcode: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        self.words.push(
            u64::from(opcode)
                | u64::from(to) << 8
                | u64::from(from) << 12
                | u64::from(offset as u16) << 16
                | u64::from(immediate as u32) << 32,
        );
    }

    /// `to op= immediate`
    pub fn alu(&mut self, op: Alu, to: Reg, immediate: i32) {
        self.word(0x07 | op as u8, to as u8, 0, 0, immediate);
    }

    /// `to op= from`
    pub fn alu_reg(&mut self, op: Alu, to: Reg, from: Reg) {
        self.word(0x07 | REGISTER | op as u8, to as u8, from as u8, 0, 0);
    }

    /// `to = *(from + offset)`
    pub fn load(&mut self, width: Width, to: Reg, from: Reg, offset: i16) {
        self.word(0x61 | width as u8, to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`
    pub fn store(&mut self, width: Width, to: Reg, offset: i16, from: Reg) {
        self.word(0x63 | width as u8, to as u8, from as u8, offset, 0);
    }

    /// `to = constant`
    pub fn constant(&mut self, to: Reg, constant: u64) {
        self.wide(to, 0, constant as u32, (constant >> 32) as u32);
    }

    /// `to = address of byte `offset` of a one-entry array's value`
    pub fn map_value(&mut self, to: Reg, map: i32, offset: u32) {
        self.wide(to, PSEUDO_MAP_VALUE, map as u32, offset);
    }

    /// `to = the map itself`, as helpers want it.
    pub fn map(&mut self, to: Reg, map: i32) {
        self.wide(to, PSEUDO_MAP_FD, map as u32, 0);
    }

    fn wide(&mut self, to: Reg, kind: u8, low: u32, high: u32) {
        self.word(0x18, to as u8, kind, 0, low as i32);
        self.word(0, 0, 0, 0, high as i32);
    }

    /// `*(to + offset) += from`, atomically; with `fetch` fully ordered on every processor (on
    /// x86-64 it is either way, and kernels before 5.12 know only the form without).
    pub fn atomic_add(&mut self, to: Reg, offset: i16, from: Reg, fetch: bool) {
        self.word(0xdb, to as u8, from as u8, offset, i32::from(fetch));
    }

    /// A helper by its number.
    pub fn call(&mut self, helper: i32) {
        self.word(0x85, 0, 0, 0, helper);
    }

    /// Returns R0.
    pub fn exit(&mut self) {
        self.word(0x95, 0, 0, 0, 0);
    }

    /// A place to be bound later.
    pub fn label(&mut self) -> Label {
        self.bound.push(None);
        Label(self.bound.len() - 1)
    }

    /// The next instruction is here.
    pub fn bind(&mut self, label: Label) {
        let here = self.words.len();
        if let Some(slot) = self.bound.get_mut(label.0) {
            *slot = Some(here);
        }
    }

    /// Jumps always.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.words.len(), to));
        self.word(0x05, 0, 0, 0, 0);
    }

    /// Jumps if `left` compares so with a constant.
    pub fn jump_if(&mut self, when: If, left: Reg, right: i32, to: Label) {
        self.jumps.push((self.words.len(), to));
        self.word(0x05 | when as u8, left as u8, 0, 0, right);
    }

    /// Jumps if `left` compares so with `right`.
    pub fn jump_if_reg(&mut self, when: If, left: Reg, right: Reg, to: Label) {
        self.jumps.push((self.words.len(), to));
        self.word(0x05 | REGISTER | when as u8, left as u8, right as u8, 0, 0);
    }

    /// The program; none if a jump leads nowhere or too far.
    pub fn finish(mut self) -> Option<Vec<u64>> {
        for (from, label) in self.jumps {
            let to = (*self.bound.get(label.0)?)?;
            let distance = i16::try_from(to as i64 - from as i64 - 1).ok()?;
            *self.words.get_mut(from)? |= u64::from(distance as u16) << 16;
        }
        Some(self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Encodings as the kernel's own documentation gives them.
    #[test]
    fn instructions_are_encoded_as_the_kernel_reads_them() {
        let mut code = Assembler::default();
        code.alu(Alu::Move, Reg::R0, 0);
        code.alu_reg(Alu::Move, Reg::R6, Reg::R1);
        code.load(Width::Double, Reg::R8, Reg::R6, 128);
        code.store(Width::Word, Reg::R10, -4, Reg::R1);
        code.atomic_add(Reg::R7, 8, Reg::R1, false);
        code.constant(Reg::R2, 0x1122_3344_5566_7788);
        code.exit();
        assert_eq!(
            code.finish().unwrap(),
            [
                0x0000_0000_0000_00b7,
                0x0000_0000_0000_16bf,
                0x0000_0000_0080_6879,
                0x0000_0000_fffc_1a63,
                0x0000_0000_0008_17db,
                0x5566_7788_0000_0218,
                0x1122_3344_0000_0000,
                0x0000_0000_0000_0095,
            ]
        );
    }

    #[test]
    fn jumps_count_from_the_instruction_after_them() {
        let mut code = Assembler::default();
        let (end, never) = (code.label(), code.label());
        code.jump_if(If::NotEqual, Reg::R1, 7, end);
        code.alu(Alu::Move, Reg::R0, 1);
        code.bind(end);
        code.exit();
        assert_eq!(code.clone().finish().unwrap()[0], 0x0000_0007_0001_0155);
        code.jump(never);
        assert_eq!(code.finish(), None);
    }
}
