//! Small programs for tests: instruction bytes, and a way to run them on any core.

use crate::machine::{Machine, text_of};
use crate::stream::{Access, BlockId, Code, CoreListener, StaticBlock};

pub(crate) const NOP: &[u8] = &[0x90];
/// add rax,rax
pub(crate) const ADD_RAX_RAX: &[u8] = &[0x48, 0x01, 0xc0];
/// mov ecx,1
pub(crate) const MOV_ECX_1: &[u8] = &[0xb9, 1, 0, 0, 0];
/// imul rax,rax
pub(crate) const IMUL_RAX_RAX: &[u8] = &[0x48, 0x0f, 0xaf, 0xc0];
/// imul ecx,edx,3
pub(crate) const IMUL_ECX_EDX_3: &[u8] = &[0x6b, 0xca, 0x03];
/// div ebx
pub(crate) const DIV_EBX: &[u8] = &[0xf7, 0xf3];
/// addsd xmm0,xmm0
pub(crate) const ADDSD: &[u8] = &[0xf2, 0x0f, 0x58, 0xc0];
/// mov rax,[rax]
pub(crate) const CHASE: &[u8] = &[0x48, 0x8b, 0x00];
/// mov rcx,[rbx]
pub(crate) const LOAD: &[u8] = &[0x48, 0x8b, 0x0b];
/// mov [rdi],rax
pub(crate) const STORE_RAX: &[u8] = &[0x48, 0x89, 0x07];
/// mov rax,[rdi]
pub(crate) const RELOAD_RAX: &[u8] = &[0x48, 0x8b, 0x07];
/// jne +0x10
pub(crate) const JNE: &[u8] = &[0x75, 0x10];

/// A block of instructions at an address.
pub(crate) fn block(pc: u64, instructions: &[&[u8]]) -> StaticBlock {
    let mut at = pc;
    let codes = instructions.iter().map(|text| {
        let mut bytes = [0; 15];
        bytes[..text.len()].copy_from_slice(text);
        let code = Code { pc: at, bytes, len: text.len() as u8 };
        at += text.len() as u64;
        code
    });
    StaticBlock { instructions: codes.collect() }
}

pub(crate) fn load(instruction: u16, address: u64) -> Access {
    Access { address, instruction, size: 8, is_store: false }
}

pub(crate) fn store(instruction: u16, address: u64) -> Access {
    Access { address, instruction, size: 8, is_store: true }
}

/// A machine of the tool with some facts changed.
pub(crate) fn machine(name: &str, overrides: &[(&str, &str)]) -> Machine {
    Machine::load(name, text_of(name).unwrap(), overrides).unwrap()
}

/// Translates blocks, numbered in order.
pub(crate) fn translate(core: &mut impl CoreListener, blocks: &[StaticBlock]) {
    for (id, block) in blocks.iter().enumerate() {
        core.translated(BlockId(id as u32), block);
    }
}

/// Runs one block of one kind of instruction, repeated.
pub(crate) fn repeat(core: &mut impl CoreListener, text: &[u8], times: u32) {
    let body: Vec<&[u8]> = vec![text; 64];
    translate(core, &[block(0x1000, &body)]);
    for _ in 0..times / 64 {
        core.executed(BlockId(0), 64, &[]);
    }
}

/// A fixed source of random bits.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}
