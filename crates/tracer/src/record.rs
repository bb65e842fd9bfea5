//! What is said once about a process, in the order in which it happened.
//!
//! The order matters: a block belongs to the image that was mapped when the block was recorded, and
//! blocks are numbered by their order among the records.
//!
//! ```text
//! record = tag, length of the rest, rest        all numbers as in `varint`
//! block  = start, instructions × (gap after the one before, length, bytes)
//! ```

use model::stream::{Code, StaticBlock};

use crate::varint::{Input, put, put_bytes, put_signed};

/// A file as it lies in the process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImageMap {
    /// The first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Where in the file `start` is.
    pub file_offset: u64,
    /// The file. Untrusted text: it comes from the traced program.
    pub path: String,
}

/// One thing said about a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProcessRecord {
    /// A block was seen for the first time.
    Block(StaticBlock),
    /// A file was mapped.
    Mapped(ImageMap),
    /// A range holds none of the recorded maps any more.
    Unmapped {
        /// The first address.
        start: u64,
        /// The first address after it.
        end: u64,
    },
    /// A thread ran its first block.
    ThreadBegan {
        /// Its number in the process, from 0 in order of beginning.
        thread: u32,
        /// The kernel's number for it.
        tid: u32,
    },
    /// A thread ended by itself.
    ThreadEnded {
        /// Its number in the process.
        thread: u32,
    },
    /// The process asked for another program.
    Exec {
        /// The program. Untrusted text.
        path: String,
        /// Whether the program is traced as well, or runs on its own.
        is_followed: bool,
    },
    /// The command of the process as the plugin found it.
    Program {
        /// The file that runs. Untrusted text.
        path: String,
    },
}

impl ProcessRecord {
    /// Appends the record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut rest = Vec::new();
        let tag = match self {
            ProcessRecord::Block(block) => {
                encode_block(block, &mut rest);
                1
            }
            ProcessRecord::Mapped(map) => {
                put(&mut rest, map.start);
                put(&mut rest, map.end);
                put(&mut rest, map.file_offset);
                put_bytes(&mut rest, map.path.as_bytes());
                2
            }
            ProcessRecord::Unmapped { start, end } => {
                put(&mut rest, *start);
                put(&mut rest, *end);
                3
            }
            ProcessRecord::ThreadBegan { thread, tid } => {
                put(&mut rest, u64::from(*thread));
                put(&mut rest, u64::from(*tid));
                4
            }
            ProcessRecord::ThreadEnded { thread } => {
                put(&mut rest, u64::from(*thread));
                5
            }
            ProcessRecord::Exec { path, is_followed } => {
                put(&mut rest, u64::from(*is_followed));
                put_bytes(&mut rest, path.as_bytes());
                6
            }
            ProcessRecord::Program { path } => {
                put_bytes(&mut rest, path.as_bytes());
                7
            }
        };
        put(out, tag);
        put_bytes(out, &rest);
    }

    /// Reads one record; `None` if the bytes hold none. Tags of later versions are skipped.
    pub fn decode(input: &mut Input<'_>) -> Option<ProcessRecord> {
        loop {
            let tag = input.varint()?;
            let mut rest = Input(input.bytes()?);
            return Some(match tag {
                1 => ProcessRecord::Block(decode_block(&mut rest)?),
                2 => ProcessRecord::Mapped(ImageMap {
                    start: rest.varint()?,
                    end: rest.varint()?,
                    file_offset: rest.varint()?,
                    path: text(&mut rest)?,
                }),
                3 => ProcessRecord::Unmapped { start: rest.varint()?, end: rest.varint()? },
                4 => ProcessRecord::ThreadBegan { thread: rest.small()?, tid: rest.small()? },
                5 => ProcessRecord::ThreadEnded { thread: rest.small()? },
                6 => {
                    ProcessRecord::Exec { is_followed: rest.varint()? != 0, path: text(&mut rest)? }
                }
                7 => ProcessRecord::Program { path: text(&mut rest)? },
                _ => continue,
            });
        }
    }
}

fn text(input: &mut Input<'_>) -> Option<String> {
    Some(String::from_utf8_lossy(input.bytes()?).into_owned())
}

fn encode_block(block: &StaticBlock, out: &mut Vec<u8>) {
    let mut expected = 0u64;
    for code in &block.instructions {
        put_signed(out, code.pc.wrapping_sub(expected) as i64);
        let bytes = code.bytes.get(..usize::from(code.len)).unwrap_or(&code.bytes);
        put_bytes(out, bytes);
        expected = code.pc.wrapping_add(u64::from(code.len));
    }
}

fn decode_block(input: &mut Input<'_>) -> Option<StaticBlock> {
    let mut instructions = Vec::new();
    let mut expected = 0u64;
    while !input.is_empty() {
        let pc = expected.wrapping_add(input.signed()? as u64);
        let found = input.bytes()?;
        let mut bytes = [0; 15];
        bytes.get_mut(..found.len())?.copy_from_slice(found);
        instructions.push(Code { pc, bytes, len: found.len() as u8 });
        expected = pc.wrapping_add(found.len() as u64);
    }
    // A block is never empty, and its instructions are numbered in 16 bits.
    let is_block = !instructions.is_empty() && instructions.len() <= usize::from(u16::MAX);
    is_block.then(|| StaticBlock { instructions: instructions.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(pc: u64, bytes: &[u8]) -> Code {
        let mut all = [0; 15];
        all[..bytes.len()].copy_from_slice(bytes);
        Code { pc, bytes: all, len: bytes.len() as u8 }
    }

    #[test]
    fn records_come_back_in_order_and_unknown_tags_are_passed_over() {
        let map = ImageMap { start: 0x1000, end: 0x3000, file_offset: 0x200, path: "/a b".into() };
        let block = StaticBlock {
            instructions: [code(0x1000, &[0x90]), code(0x1001, &[0x0f, 0x05]), code(7, &[0xc3])]
                .into(),
        };
        let records = [
            ProcessRecord::Program { path: "/bin/x".into() },
            ProcessRecord::Mapped(map),
            ProcessRecord::Block(block),
            ProcessRecord::Unmapped { start: 1, end: u64::MAX },
            ProcessRecord::ThreadBegan { thread: 3, tid: 1234 },
            ProcessRecord::Exec { path: "/bin/y".into(), is_followed: true },
            ProcessRecord::ThreadEnded { thread: 3 },
        ];
        let mut bytes = vec![99, 2, 1, 1];
        records.iter().for_each(|record| record.encode(&mut bytes));
        let mut input = Input(&bytes);
        let back: Vec<_> = std::iter::from_fn(|| ProcessRecord::decode(&mut input)).collect();
        assert_eq!(back, records);
        assert!(input.is_empty());
    }

    #[test]
    fn a_block_without_instructions_or_with_a_long_one_is_none() {
        assert_eq!(ProcessRecord::decode(&mut Input(&[1, 0])), None);
        let mut bytes = vec![1, 18, 0, 16];
        bytes.extend([0x90; 16]);
        assert_eq!(ProcessRecord::decode(&mut Input(&bytes)), None);
    }
}
