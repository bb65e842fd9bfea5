//! From instruction bytes to micro-ops. The only module that knows x86.
//!
//! Every static instruction is decoded once. What the decoder does not know becomes a generic
//! microcoded micro-op with the registers and memory that the instruction names, and is counted.

mod classify;
mod registers;
mod split;

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

use crate::stream::{Code, StaticBlock};
use crate::uop::{DecodedBlock, Habits, Instruction};

/// Decodes the instructions of a block.
pub fn decode(block: &StaticBlock, habits: Habits) -> DecodedBlock {
    let mut factory = InstructionInfoFactory::new();
    let raw: Vec<iced_x86::Instruction> = block.instructions.iter().map(raw).collect();
    let mut instructions: Vec<Instruction> = Vec::with_capacity(raw.len());
    for (code, raw) in block.instructions.iter().zip(&raw) {
        instructions.push(split::split(code, raw, &mut factory, habits));
    }
    if habits.branch_fusion {
        for place in 1..instructions.len() {
            if split::can_fuse(&raw[place - 1], &raw[place]) {
                let (head, tail) = instructions.split_at_mut(place);
                split::fuse(&mut head[place - 1], &mut tail[0]);
            }
        }
    }
    if habits.nop_fusion {
        split::join_nops(&raw, &mut instructions);
    }
    DecodedBlock { instructions }
}

fn raw(code: &Code) -> iced_x86::Instruction {
    let bytes = code.bytes.get(..usize::from(code.len)).unwrap_or(&code.bytes);
    Decoder::with_ip(64, bytes, code.pc, DecoderOptions::NONE).decode()
}

#[cfg(test)]
mod tests;
