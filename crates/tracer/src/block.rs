//! The blocks of a process, each kept once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::select_unpredictable;

use model::stream::{BlockId, Code, StaticBlock};

use crate::ending::{Ending, Touch, end, ending, touches, whole_len};

/// A block as the running process needs it: what follows from its bytes, worked out once.
///
/// What is looked at whenever the block runs comes first, in one line of the host's caches.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct LiveBlock {
    /// The address of its first instruction.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Where else it goes by itself; `end` again if nowhere.
    pub target: u64,
    /// The address of its last instruction.
    pub last: u64,
    /// Its number.
    pub id: BlockId,
    /// How many instructions it has.
    pub len: u16,
    /// One more than the index of the last instruction that must touch memory; 0 if none does.
    pub sure_accesses_end: u16,
    /// One more than the index of the last instruction that may touch memory; 0 if none does.
    pub accesses_end_max: u16,
    /// Whether it may go to an address that its bytes do not tell.
    pub goes_anywhere: bool,
    /// Whether it is one repeated string instruction and nothing else.
    pub is_repeat: bool,
    /// Its instructions.
    pub code: StaticBlock,
    /// What memory each instruction touches; empty if accesses are not reported.
    touches: Box<[Touch]>,
}

const _: () = assert!(std::mem::offset_of!(LiveBlock, code) <= 64);

impl LiveBlock {
    fn new(id: BlockId, code: StaticBlock, watches_memory: bool) -> LiveBlock {
        let after = end(&code);
        let first = code.instructions.first().map_or(0, |first| first.pc);
        let last = code.instructions.last().map_or(0, |last| last.pc);
        let ending = ending(&code);
        let touches = if watches_memory { touches(&code) } else { Box::default() };
        let end_of = |which: fn(&Touch) -> bool| {
            touches.iter().rposition(which).map_or(0, |index| index as u16 + 1)
        };
        LiveBlock {
            id,
            start: first,
            end: after,
            target: match ending {
                Ending::Jumps(target) | Ending::Branches(target) => target,
                Ending::Repeats => last,
                Ending::Falls | Ending::Elsewhere => after,
            },
            last,
            len: code.instructions.len() as u16,
            sure_accesses_end: end_of(|touch| touch.is_sure),
            accesses_end_max: end_of(|touch| touch.most_bytes > 0),
            goes_anywhere: ending == Ending::Elsewhere,
            is_repeat: ending == Ending::Repeats && code.instructions.len() == 1,
            touches,
            code,
        }
    }

    /// How many instructions completed when the block went to `next`, where it cannot go by itself,
    /// and whether a signal took it there.
    ///
    /// `accesses_end` is one more than the index of the last instruction that touched memory. An
    /// instruction that faults touches nothing, so the first that should have and did not is the one
    /// that faulted. A fault without memory (a division) is not seen, and counts the whole block.
    pub fn cut_short(&self, next: u64, accesses_end: u16) -> (u16, bool) {
        // The engine steps over some instructions (locked ones, stores to its own code) by leaving
        // the block and starting a new one at that instruction.
        let restart = self.code.instructions.iter().position(|code| code.pc == next);
        if let Some(index) = restart {
            return (index as u16, false);
        }
        let mut rest = self.touches.iter().skip(usize::from(accesses_end));
        let faulted = rest.position(|touch| touch.is_sure);
        (faulted.map_or(self.len, |after| accesses_end + after as u16), true)
    }

    /// Whether the block goes to an address by itself, if its bytes tell. Without a decision in
    /// between: which way it goes is as hard to guess for the host as for the program's own machine.
    #[inline]
    pub fn leads_to(&self, next: u64) -> bool {
        next == select_unpredictable(next == self.end, self.end, self.target)
    }

    /// Whether the block may have run to its end if the last instruction that touched memory is the
    /// one before this index.
    #[inline]
    pub fn could_touch_until(&self, end: u16) -> bool {
        self.sure_accesses_end <= end && end <= self.accesses_end_max
    }

    /// How many bytes an instruction touches at most.
    pub fn most_bytes(&self, instruction: u16) -> u16 {
        self.touches.get(usize::from(instruction)).map_or(0, |touch| touch.most_bytes)
    }
}

/// Every block of a process. Two are the same if address and bytes are, so that translating again
/// makes no new block and code that is overwritten does.
#[derive(Debug, Default)]
pub struct BlockTable {
    blocks: Vec<&'static LiveBlock>,
    by_hash: HashMap<u64, Vec<&'static LiveBlock>>,
    watches_memory: bool,
}

impl BlockTable {
    /// A table for a process whose memory accesses are reported, or not.
    pub fn new(watches_memory: bool) -> BlockTable {
        BlockTable { watches_memory, ..BlockTable::default() }
    }

    /// The block with this code, and whether it is new. Blocks live as long as the process: the
    /// engine keeps pointers to them.
    pub fn intern(&mut self, instructions: Vec<Code>) -> (&'static LiveBlock, bool) {
        let code = StaticBlock { instructions: instructions.into() };
        let hash = hash(&code);
        let same = self.by_hash.entry(hash).or_default();
        if let Some(known) = same.iter().find(|block| block.code == code) {
            return (known, false);
        }
        let id = BlockId(self.blocks.len() as u32);
        let block: &'static LiveBlock =
            Box::leak(Box::new(LiveBlock::new(id, code, self.watches_memory)));
        same.push(block);
        self.blocks.push(block);
        (block, true)
    }

    /// The blocks from number `known` on.
    pub fn since(&self, known: u32) -> &[&'static LiveBlock] {
        self.blocks.get(known as usize..).unwrap_or_default()
    }

    /// Forgets which blocks lie in a range, so that what is mapped there next gets new ones: the
    /// same bytes at the same address may then be another image.
    pub fn forget(&mut self, start: u64, end: u64) {
        self.by_hash.retain(|_, same| {
            same.retain(|block| block.end <= start || end <= block.start);
            !same.is_empty()
        });
    }
}

fn hash(code: &StaticBlock) -> u64 {
    let mut hasher = DefaultHasher::new();
    for code in &code.instructions {
        (code.pc, code.bytes, code.len).hash(&mut hasher);
    }
    hasher.finish()
}

/// Drops a last instruction that the engine saw but put off: it lies over a page boundary, so it is
/// translated again as the first of the next block.
pub fn drop_phantom(instructions: &mut Vec<Code>) {
    let [_, .., last] = instructions.as_slice() else { return };
    // Only at the end of a page can an instruction lack bytes.
    let room = 4096 - last.pc % 4096;
    if room < 15 && whole_len(last) != Some(last.len) {
        instructions.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(start: u64, instructions: &[&[u8]]) -> Vec<Code> {
        let mut pc = start;
        let code = |found: &&[u8]| {
            let mut bytes = [0; 15];
            bytes[..found.len()].copy_from_slice(found);
            pc += found.len() as u64;
            Code { pc: pc - found.len() as u64, bytes, len: found.len() as u8 }
        };
        instructions.iter().map(code).collect()
    }

    #[test]
    fn the_same_code_is_the_same_block_until_its_image_goes() {
        let mut table = BlockTable::new(true);
        let (first, is_new) = table.intern(codes(0x1000, &[&[0x90], &[0xc3]]));
        assert!(is_new);
        let (again, is_new) = table.intern(codes(0x1000, &[&[0x90], &[0xc3]]));
        assert_eq!((again.id, is_new), (first.id, false));
        let (elsewhere, _) = table.intern(codes(0x2000, &[&[0x90], &[0xc3]]));
        let (rewritten, _) = table.intern(codes(0x1000, &[&[0x91], &[0xc3]]));
        assert_eq!((elsewhere.id, rewritten.id), (BlockId(1), BlockId(2)));
        table.forget(0x1000, 0x1001);
        let (mapped_anew, is_new) = table.intern(codes(0x1000, &[&[0x90], &[0xc3]]));
        assert_eq!((mapped_anew.id, is_new), (BlockId(3), true));
        assert_eq!(table.intern(codes(0x2000, &[&[0x90], &[0xc3]])).0.id, BlockId(1));
        assert_eq!(table.since(2).len(), 2);
    }

    #[test]
    fn a_phantom_is_dropped_only_as_a_last_truncated_instruction_at_a_page_end() {
        let kept = |start, instructions: &[&[u8]]| {
            let mut codes = codes(start, instructions);
            drop_phantom(&mut codes);
            codes.len()
        };
        let cut: &[u8] = &[0xe8, 0, 0];
        assert_eq!(kept(0x1ffc, &[&[0x90], cut]), 1);
        assert_eq!(kept(0x1ffd, &[cut]), 1, "a block is never empty");
        assert_eq!(kept(0x1ffc, &[&[0x90], &[0x90], &[0xeb, 0]]), 3);
        assert_eq!(kept(0x1000, &[&[0x90], &[0x06]]), 2, "undefined, but not cut");
    }

    #[test]
    fn a_block_that_goes_where_it_cannot_was_cut_at_the_access_that_failed() {
        let mut table = BlockTable::new(true);
        // push rbp; add eax,ebx; mov rax,[rdi]; jne
        let bytes: [&[u8]; 4] = [&[0x55], &[0x01, 0xd8], &[0x48, 0x8b, 0x07], &[0x75, 0x10]];
        let (block, _) = table.intern(codes(0x1000, &bytes));
        assert_eq!((block.end, block.target, block.sure_accesses_end), (0x1008, 0x1018, 3));
        assert_eq!(block.cut_short(0x9000, 0), (0, true));
        assert_eq!(block.cut_short(0x9000, 1), (2, true));
        assert_eq!(block.cut_short(0x9000, 3), (4, true), "a signal after all of it");
        assert_eq!(block.cut_short(0x1003, 1), (2, false), "stepped over");
    }
}
