//! Where branches go whose target is not in their bytes.

use crate::machine::BranchFacts;

/// Targets by address and the path that led there.
#[derive(Clone, Debug)]
pub(super) struct Indirect {
    entries: Vec<(u64, u64)>,
    path: u64,
}

impl Indirect {
    pub(super) fn new(entries: usize) -> Indirect {
        Indirect { entries: vec![(u64::MAX, 0); entries.max(1)], path: 0 }
    }

    /// The target remembered for this path, if any; then remembers the true one.
    pub(super) fn observe(&mut self, pc: u64, target: u64) -> Option<u64> {
        let key =
            pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.path.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let place = ((key >> 24) % self.entries.len() as u64) as usize;
        let (held, guess) = self.entries[place];
        self.entries[place] = (key, target);
        self.path = (self.path << 5) ^ (target ^ (target >> 7)) & 0xffff;
        (held == key).then_some(guess)
    }
}

/// Branches that fetch follows without a bubble, a few for each block of code.
///
/// A branch that is new takes the last place of its row, and the front when it comes again: where
/// there are more branches than places, most stay where they are. Now and then a new one goes to
/// the front at once, or those of a part of the program that is over would stay for ever.
#[derive(Clone, Debug)]
pub(super) struct Near {
    rows: Vec<u64>,
    ways: usize,
    mask: u64,
    block_shift: u32,
    /// Branches that were not near.
    far: u64,
}

/// Every how many new branches one goes to the front.
const TO_FRONT: u64 = 32;

impl Near {
    /// None where the machine does not tell near from far.
    pub(super) fn new(facts: &BranchFacts) -> Option<Near> {
        let ways = facts.near_ways.max(1);
        let count = (facts.near_entries / ways).next_power_of_two();
        (facts.near_entries > 0).then(|| Near {
            rows: vec![u64::MAX; (count * ways) as usize],
            ways: ways as usize,
            mask: u64::from(count) - 1,
            block_shift: facts.near_block_bytes.max(1).trailing_zeros(),
            far: 0,
        })
    }

    /// Whether the branch at `pc` is near; it is remembered.
    #[inline]
    pub(super) fn observe(&mut self, pc: u64) -> bool {
        let row = (pc >> self.block_shift & self.mask) as usize * self.ways;
        let Some(row) = self.rows.get_mut(row..row + self.ways) else { return true };
        match row.iter().position(|&held| held == pc) {
            Some(place) => {
                row[..=place].rotate_right(1);
                true
            }
            None => {
                row[self.ways - 1] = pc;
                self.far += 1;
                // An empty place is as good as the last: the row fills from the front.
                if row[0] == u64::MAX || self.far.is_multiple_of(TO_FRONT) {
                    row.rotate_right(1);
                } else if let Some(empty) = row.iter().position(|&held| held == u64::MAX) {
                    row.swap(empty, self.ways - 1);
                }
                false
            }
        }
    }
}

/// Return addresses, newest last; a full stack forgets its oldest. It does not know when it is
/// empty: what was there before comes up again, which is right when a procedure calls itself.
#[derive(Clone, Debug)]
pub(super) struct Returns {
    ring: Vec<u64>,
    top: usize,
}

impl Returns {
    pub(super) fn new(entries: usize) -> Returns {
        Returns { ring: vec![0; entries.max(1)], top: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, address: u64) {
        self.top = if self.top + 1 == self.ring.len() { 0 } else { self.top + 1 };
        self.ring[self.top] = address;
    }

    #[inline]
    pub(super) fn pop(&mut self) -> u64 {
        let address = self.ring[self.top];
        self.top = if self.top == 0 { self.ring.len() - 1 } else { self.top - 1 };
        address
    }
}
