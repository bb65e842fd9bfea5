//! A hash of the stream, so that two ways of getting it can be compared.

use model::stream::{Access, BlockId, CoreListener, StaticBlock};

use crate::results::Publisher;
use crate::tally::{CurrentResults, current};

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// Folds everything that a listener is told, in order, into one number.
///
/// A block counts by its code, when it is executed: how many blocks a listener knows that never ran
/// depends on the other threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamHash {
    state: u64,
    /// The hash of each block's code.
    codes: Vec<u64>,
    /// How many blocks were executed.
    pub executed: u64,
}

impl Default for StreamHash {
    fn default() -> StreamHash {
        StreamHash { state: SEED, codes: Vec::new(), executed: 0 }
    }
}

/// A multiplication by an odd number and a rotation lose nothing and mix every bit.
fn mix(state: u64, word: u64) -> u64 {
    (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// The hash of a block's code.
fn code_hash(block: &StaticBlock) -> u64 {
    block.instructions.iter().fold(SEED, |state, code| {
        let half = |half: &[u8]| half.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        let state = code.bytes.chunks(8).map(half).fold(mix(state, code.pc), mix);
        mix(state, u64::from(code.len))
    })
}

impl StreamHash {
    fn fold(&mut self, word: u64) {
        self.state = mix(self.state, word);
    }

    fn fold_accesses(&mut self, accesses: &[Access]) {
        self.fold(accesses.len() as u64);
        for access in accesses {
            self.fold(access.address);
            let rest = u64::from(access.instruction) << 16 | u64::from(access.size) << 1;
            self.fold(rest | u64::from(access.is_store));
        }
    }

    /// The hash so far, and how many blocks it covers.
    pub fn to_bytes(&self) -> [u8; 16] {
        (u128::from(self.state) | u128::from(self.executed) << 64).to_le_bytes()
    }
}

impl CoreListener for StreamHash {
    fn translated(&mut self, _: BlockId, block: &StaticBlock) {
        self.codes.push(code_hash(block));
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.executed += 1;
        self.fold(self.codes.get(id.0 as usize).copied().unwrap_or(0));
        self.fold(u64::from(id.0) << 24 | u64::from(ran) << 8 | 2);
        self.fold_accesses(accesses);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.fold(u64::from(id.0) << 8 | 3);
        self.fold_accesses(accesses);
    }

    fn interrupted(&mut self) {
        self.fold(4);
    }

    fn system_call(&mut self, number: u64) {
        self.fold(number << 8 | 5);
    }
}

/// A hash that is published whenever the thread enters the kernel.
#[derive(Debug)]
pub struct PublishedHash {
    hash: StreamHash,
    current: CurrentResults,
    publisher: Publisher,
}

impl PublishedHash {
    /// The hash of thread number `thread`.
    pub fn new(current: CurrentResults, thread: u32) -> PublishedHash {
        let publisher = Publisher::new(self::current(&current), thread);
        PublishedHash { hash: StreamHash::default(), current, publisher }
    }
}

impl CoreListener for PublishedHash {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.hash.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.hash.executed(id, ran, accesses);
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.hash.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.hash.interrupted();
    }

    fn system_call(&mut self, number: u64) {
        self.hash.system_call(number);
        self.publisher.publish(&self.hash.to_bytes());
    }

    fn forked(&mut self) {
        let codes = std::mem::take(&mut self.hash.codes);
        *self = PublishedHash::new(self.current.clone(), 0);
        self.hash.codes = codes;
    }
}
