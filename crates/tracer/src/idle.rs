//! Blocks that ran while the listener had no use for anything but how often.

use model::stream::{BlockId, FORGET_EVERY, Reached};

/// Instructions after which a listener is asked whether it idles. What it idles for is far longer.
const ASK_EVERY: i64 = 1024;
/// Instructions after which it is told what ran: what is kept of a killed program is no older. With
/// each telling the lines reached are forgotten.
const TELL_EVERY: u64 = FORGET_EVERY;

/// How often blocks ran since the listener began to idle.
///
/// ```text
/// runs:  [0 3 0 0 1 ..]  by number     ran: [1, 4]  the numbers that are not 0
/// ```
///
/// A block that runs again and again is counted in several places in turn: the host would wait for one
/// place to be written before it adds to it again.
#[derive(Debug)]
pub struct Idle {
    /// Instructions that may still run unseen; none are left when the listener does not idle.
    left: i64,
    until_asked: i64,
    counted: u64,
    runs: Vec<[u32; PLACES]>,
    ran: Vec<u32>,
    /// Whether the order of blocks is wanted, and those since it was told.
    is_ordered: bool,
    order: Vec<BlockId>,
    reached: Reached,
    /// Room for addresses, and how many there are.
    addresses: Box<[u64; ROOM]>,
    filled: usize,
}

/// Places that a block is counted in; a power of two.
const PLACES: usize = 4;
/// Addresses after which the listener is told of them.
const ADDRESSES_MAX: usize = 1024;
/// Room for them and for those of one more block; a power of two.
const ROOM: usize = 2 * ADDRESSES_MAX;
/// Blocks after which it is told of their order.
const ORDER_MAX: usize = 512;

impl Default for Idle {
    fn default() -> Idle {
        Idle {
            left: 0,
            until_asked: 0,
            counted: 0,
            runs: Vec::new(),
            ran: Vec::new(),
            is_ordered: false,
            order: Vec::new(),
            reached: Reached::default(),
            addresses: Box::new([0; ROOM]),
            filled: 0,
        }
    }
}

impl Idle {
    /// Whether the listener idles.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.left > 0
    }

    /// So many instructions more ran; whether the listener should be asked.
    #[inline]
    pub fn is_time_to_ask(&mut self, len: u16) -> bool {
        self.until_asked -= i64::from(len);
        self.until_asked <= 0
    }

    /// The listener idles for so many instructions, perhaps none; it may want their order, and knows so
    /// many blocks.
    pub fn begin(&mut self, instructions: u64, is_ordered: bool, known: u32) {
        self.until_asked = ASK_EVERY;
        self.is_ordered = is_ordered;
        self.left = instructions.min(TELL_EVERY) as i64;
        if self.is_on() {
            self.reached.forget();
        }
        if self.runs.len() < known as usize {
            self.runs.resize(known as usize, [0; PLACES]);
        }
    }

    /// Instructions that may still run unseen.
    pub fn left(&self) -> u64 {
        self.left.max(0) as u64
    }

    /// A block ran whole so many times in a row, at least once.
    #[inline]
    pub fn count(&mut self, id: BlockId, times: u32) {
        match self.runs.get_mut(id.0 as usize) {
            Some([runs, ..]) if *runs > 0 => *runs += times,
            _ => self.count_first(id, times),
        }
        if self.is_ordered {
            self.order.push(id);
            self.order.extend(std::iter::repeat_n(id, times.saturating_sub(1) as usize));
        }
    }

    /// Blocks ran whole, in this order; `lens` says how long each is, by number. Says how many
    /// instructions they have. Their order is the caller's to tell.
    pub fn count_all(&mut self, ids: &[BlockId], lens: &[u16]) -> u64 {
        let mut instructions = 0;
        for (turn, id) in ids.iter().enumerate() {
            let place = id.0 as usize;
            instructions += u64::from(lens.get(place).copied().unwrap_or(0));
            match self.runs.get_mut(place) {
                Some(runs) if runs[0] > 0 => runs[turn % PLACES] += 1,
                _ => self.count_first(*id, 1),
            }
        }
        instructions
    }

    /// Whether the order of blocks is wanted.
    pub fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    /// Whether there are enough blocks in order to tell of.
    #[inline]
    pub fn is_order_full(&self) -> bool {
        self.order.len() >= ORDER_MAX
    }

    /// Tells of the order of blocks that ran whole.
    pub fn tell_order(&mut self, tell: impl FnOnce(&[BlockId])) {
        if !self.order.is_empty() {
            tell(&self.order);
            self.order.clear();
        }
    }

    #[cold]
    #[inline(never)]
    fn count_first(&mut self, id: BlockId, times: u32) {
        let place = id.0 as usize;
        if self.runs.len() <= place {
            self.runs.resize(place + 1, [0; PLACES]);
        }
        if self.runs[place] == [0; PLACES] {
            self.ran.push(id.0);
        }
        self.runs[place][0] += times;
    }

    /// So many instructions ran in blocks that were counted; whether those were the last to go unseen.
    #[inline]
    pub fn add(&mut self, instructions: u64) -> bool {
        self.counted += instructions;
        self.left -= instructions as i64;
        self.left <= 0
    }

    /// Memory is touched; whether there are enough addresses to tell of.
    #[inline]
    pub fn touch(&mut self, address: u64) -> bool {
        self.touch_all(std::iter::once(address))
    }

    /// The same of all that a block touches, which is no more than are told of together.
    #[inline]
    pub fn touch_all(&mut self, addresses: impl Iterator<Item = u64>) -> bool {
        // How many there are is written once: the host would wait for each sum before the next.
        let mut filled = self.filled;
        for address in addresses {
            // Written whether it counts or not: a decision here would be guessed wrong too often.
            self.addresses[filled % ROOM] = address;
            filled += usize::from(self.reached.is_new(address));
        }
        self.filled = filled;
        filled >= ADDRESSES_MAX
    }

    /// Tells of the addresses that were touched.
    pub fn tell_addresses(&mut self, tell: impl FnOnce(&[u64])) {
        let filled = std::mem::take(&mut self.filled);
        match self.addresses.get(..filled) {
            Some(addresses) if filled > 0 => tell(addresses),
            _ => {}
        }
    }

    /// The listener was told of so many instructions itself; whether those were the last.
    #[inline]
    pub fn spend(&mut self, len: u16) -> bool {
        self.left -= i64::from(len);
        self.left <= 0
    }

    /// Tells what was counted, begins anew, and has the listener asked as soon as may be.
    pub fn end(&mut self, tell: impl FnOnce(&[(BlockId, u32)], u64)) {
        self.left = 0;
        self.until_asked = 0;
        if self.ran.is_empty() {
            return;
        }
        let taken = |id: u32| {
            let runs = self.runs.get_mut(id as usize).map(std::mem::take).unwrap_or_default();
            (BlockId(id), runs.iter().sum())
        };
        let all: Vec<(BlockId, u32)> = self.ran.drain(..).map(taken).collect();
        tell(&all, std::mem::take(&mut self.counted));
    }
}
