//! Chains of callers, each kept once.

use std::collections::HashMap;

use vocab::{EventId, Pid};

/// A chain in one process, innermost address first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Chain {
    /// The process.
    pub pid: Pid,
    /// The event.
    pub event: EventId,
    /// The addresses.
    pub frames: Box<[u64]>,
}

/// Counts by chain.
#[derive(Clone, Debug, Default)]
pub struct ChainTable {
    counts: HashMap<Chain, u64>,
    /// Samples whose chain could not be read or found no room.
    pub without: u64,
}

/// More distinct chains than this between drains are counted without their frames.
const MOST: usize = 1 << 16;

impl ChainTable {
    /// Counts a chain.
    pub fn count(&mut self, pid: Pid, event: EventId, frames: Vec<u64>) {
        let chain = Chain { pid, event, frames: frames.into_boxed_slice() };
        if let Some(count) = self.counts.get_mut(&chain) {
            *count += 1;
        } else if self.counts.len() < MOST {
            self.counts.insert(chain, 1);
        } else {
            self.without += 1;
        }
    }

    /// Every chain with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&Chain, u64)> {
        self.counts.iter().map(|(chain, &count)| (chain, count))
    }

    /// Samples counted, with or without their chain.
    pub fn samples(&self) -> u64 {
        self.without + self.counts.values().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_kept_once_and_counted_often() {
        let mut table = ChainTable::default();
        for round in 0..10 {
            table.count(Pid(1), EventId(0), vec![1, 2, round % 2]);
        }
        table.without += 3;
        let counts: Vec<u64> = table.iter().map(|(_, count)| count).collect();
        assert_eq!(counts, [5, 5]);
        assert_eq!(table.samples(), 13);
    }
}
