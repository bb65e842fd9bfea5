//! The same table in this process: behind a ring where the kernel takes no program, and for
//! comparing shapes on recorded samples.

use vocab::{EventId, Pc, Pid};

use super::entry::{COUNT_SHIFT, Entry};

/// Multiplies the key before the pc is added: pids differ in their low bits, pcs too.
pub(super) const KEY_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
/// Spreads the sum into its high bits, which pick the bucket.
pub(super) const PC_FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// How a bucket is picked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hash {
    /// Two multiplications, high bits: what the handler does.
    Multiply,
    /// One multiplication of pc xor key.
    XorMultiply,
    /// Low bits of pc xor pid, as the simplest hardware would.
    LowBits,
    /// Shifts and exclusive ors of pc and pid, without a multiplication.
    Fold,
}

/// What happens to the others in a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replacement {
    /// A hit swaps with the first; a new entry goes first and the last falls out: the handler's.
    SwapToFront,
    /// A hit moves to the front and the others move back; the last falls out.
    MoveToFront,
    /// Nothing moves; places are reused in turn. The paper's driver did this.
    RoundRobin,
    /// Nothing moves; the entry with the smallest count falls out.
    LeastCounted,
    /// A hit swaps with the one before it; a new entry replaces the last.
    SwapForward,
}

/// The shape of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableShape {
    /// Entries in a bucket; at least one.
    pub ways: usize,
    /// Buckets, any number of them; at least one.
    pub buckets: usize,
    /// How a bucket is picked.
    pub hash: Hash,
    /// What falls out.
    pub replacement: Replacement,
}

/// A table with a list of what fell out of it.
#[derive(Clone, Debug)]
pub struct PlainTable {
    shape: TableShape,
    /// Pc, then key and count, as in the handler's.
    places: Vec<[u64; 2]>,
    /// The next place of each bucket, for the replacements that take turns.
    turns: Vec<u8>,
    /// Samples that found no entry of theirs.
    pub inserted: u64,
    /// Samples taken.
    pub entries: u64,
}

impl PlainTable {
    /// An empty one.
    pub fn new(shape: TableShape) -> PlainTable {
        let shape = TableShape { ways: shape.ways.max(1), buckets: shape.buckets.max(1), ..shape };
        PlainTable {
            shape,
            places: vec![[0; 2]; shape.ways * shape.buckets],
            turns: vec![0; shape.buckets],
            inserted: 0,
            entries: 0,
        }
    }

    /// The place of a sample's entry in its bucket, if it has one.
    pub fn find(&self, pid: Pid, pc: Pc, event: EventId) -> Option<usize> {
        let key = u64::from(Entry::key(pid, event));
        let from = bucket(self.shape.hash, pc.0, key, self.shape.buckets) * self.shape.ways;
        let places = self.places.get(from..from + self.shape.ways)?;
        places.iter().position(|place| place[0] == pc.0 && place[1] & 0xffff_ffff == key)
    }

    /// Counts a sample; returns what had to make room.
    pub fn count(&mut self, pid: Pid, pc: Pc, event: EventId) -> Option<Entry> {
        let key = u64::from(Entry::key(pid, event));
        let bucket = bucket(self.shape.hash, pc.0, key, self.shape.buckets);
        let from = bucket * self.shape.ways;
        self.entries += 1;
        let places = self.places.get_mut(from..from + self.shape.ways)?;
        let is_it = |place: &[u64; 2]| place[0] == pc.0 && place[1] & 0xffff_ffff == key;
        if let Some(way) = places.iter().position(is_it) {
            places[way][1] += 1 << COUNT_SHIFT;
            match self.shape.replacement {
                Replacement::SwapToFront => places.swap(0, way),
                Replacement::MoveToFront => places[..=way].rotate_right(1),
                Replacement::SwapForward => places.swap(way.saturating_sub(1), way),
                Replacement::RoundRobin | Replacement::LeastCounted => {}
            }
            return None;
        }
        self.inserted += 1;
        let new = [pc.0, key | 1 << COUNT_SHIFT];
        let last = places.len() - 1;
        let out = match self.shape.replacement {
            Replacement::SwapToFront | Replacement::MoveToFront => {
                places.rotate_right(1);
                std::mem::replace(&mut places[0], new)
            }
            Replacement::SwapForward => {
                let empty = places.iter().position(|place| place[1] >> COUNT_SHIFT == 0);
                std::mem::replace(&mut places[empty.unwrap_or(last)], new)
            }
            Replacement::RoundRobin => {
                let turn = self.turns.get_mut(bucket)?;
                let way = usize::from(*turn) % self.shape.ways;
                *turn = turn.wrapping_add(1) % self.shape.ways as u8;
                std::mem::replace(&mut places[way], new)
            }
            Replacement::LeastCounted => {
                let least = (0..places.len()).min_by_key(|&way| places[way][1] >> COUNT_SHIFT);
                std::mem::replace(&mut places[least.unwrap_or(last)], new)
            }
        };
        Entry::unpack(out[0], out[1])
    }

    /// Everything that is in it; it is empty afterwards.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry> + '_ {
        self.turns.fill(0);
        self.places.iter_mut().filter_map(|place| {
            let [pc, rest] = std::mem::take(place);
            Entry::unpack(pc, rest)
        })
    }
}

/// The bucket of a sample. Powers of two take the high bits, as the handler does.
fn bucket(hash: Hash, pc: u64, key: u64, buckets: usize) -> usize {
    let spread = match hash {
        Hash::Multiply => key.wrapping_mul(KEY_FACTOR).wrapping_add(pc).wrapping_mul(PC_FACTOR),
        Hash::XorMultiply => (pc ^ key << 40).wrapping_mul(PC_FACTOR),
        Hash::LowBits => return ((pc >> 1 ^ key) % buckets as u64) as usize,
        Hash::Fold => {
            let folded = pc ^ pc >> 7 ^ pc >> 17 ^ key << 3 ^ key >> 5;
            return (folded % buckets as u64) as usize;
        }
    };
    // The high bits scaled to the number of buckets: for a power of two, a shift.
    ((u128::from(spread) * buckets as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn shapes() -> Vec<TableShape> {
        use {Hash as H, Replacement as R};
        let mut all = Vec::new();
        for hash in [H::Multiply, H::XorMultiply, H::LowBits, H::Fold] {
            for replacement in
                [R::SwapToFront, R::MoveToFront, R::RoundRobin, R::LeastCounted, R::SwapForward]
            {
                for (ways, buckets) in [(1, 64), (4, 16), (6, 11), (8, 8)] {
                    all.push(TableShape { ways, buckets, hash, replacement });
                }
            }
        }
        all
    }

    /// Whatever the shape, nothing is counted twice and nothing is lost.
    #[test]
    fn every_shape_keeps_every_sample() {
        let mut seed = 3_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        let skewed = |r: u64| r * r / 300;
        let samples: Vec<(u32, u64, u16)> = (0..5000)
            .map(|_| (next(5) as u32, 0x40_0000 + skewed(next(300)), next(2) as u16))
            .collect();
        let mut truth: HashMap<(u32, u64, u16), u64> = HashMap::new();
        for &sample in &samples {
            *truth.entry(sample).or_default() += 1;
        }
        for shape in shapes() {
            let mut table = PlainTable::new(shape);
            let mut found: HashMap<(u32, u64, u16), u64> = HashMap::new();
            let mut add = |e: Entry| {
                *found.entry((e.pid.0, e.pc.0, e.event.0)).or_default() += u64::from(e.count);
            };
            for &(pid, pc, event) in &samples {
                if let Some(out) = table.count(Pid(pid), Pc(pc), EventId(event)) {
                    add(out);
                }
            }
            table.drain().for_each(&mut add);
            assert_eq!(found, truth, "{shape:?}");
            assert_eq!(table.entries, 5000);
            assert_eq!(table.drain().count(), 0);
        }
    }

    #[test]
    fn a_bucket_of_four_keeps_the_first_four_and_gives_up_the_least_recent() {
        let shape = TableShape {
            ways: 4,
            buckets: 1,
            hash: Hash::Multiply,
            replacement: Replacement::SwapToFront,
        };
        let mut table = PlainTable::new(shape);
        let mut count = |pc| table.count(Pid(1), Pc(pc), EventId(0)).map(|out| out.pc.0);
        assert_eq!([1, 2, 3, 4].map(&mut count), [None; 4]);
        // 4 3 2 1; a hit on 1 swaps it with 4: 1 3 2 4; a new one pushes 4 out.
        assert_eq!(count(1), None);
        assert_eq!(count(5), Some(4));
    }
}
