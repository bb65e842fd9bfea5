//! Edge counts straight from branch stacks.
//!
//! A stack lists the latest taken branches, newest first. Between two of them control ran straight
//! on, from where the older one went to where the newer one stood:
//!
//! ```text
//! stack    (from 40 to 70)  (from 25 to 30)  (from 90 to 10)
//! runs     30 … 40          10 … 25          before the oldest and after the newest: not known
//! ```
//!
//! Cut at every target and behind every branch, the stretches become blocks, and every block's
//! count is what comes in by branches and from the block before it: flow conserves by itself.

use std::collections::{BTreeMap, BTreeSet};

/// The longest stretch without a taken branch that is believed; a longer one bridges a gap in the
/// stack, such as an interrupt.
const STRETCH_BYTES_MAX: u64 = 1 << 16;

/// What stacks say about how control flowed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StackFlow {
    /// Taken branches between two stretches: from, to and how often.
    pub taken: BTreeMap<(u64, u64), u64>,
    /// Stretches: first address, address of the branch that ends it, and how often.
    pub stretches: BTreeMap<(u64, u64), u64>,
    /// Neighbours in a stack that no stretch can join.
    pub torn: u64,
}

/// Code that runs as a whole, as far as stacks tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackBlock {
    /// Its first address.
    pub start: u64,
    /// The address of the last branch in it, or the address before the next block.
    pub last: u64,
    /// How often it ran.
    pub count: u64,
    /// How often it was come by from the block right before it, without a branch.
    pub fell_in: u64,
}

impl StackFlow {
    /// Adds a stack: from and to of each branch, newest first.
    pub fn add(&mut self, stack: &[(u64, u64)]) {
        for pair in stack.windows(2) {
            let [(end, _), (_, start)] = *pair else { continue };
            if end.checked_sub(start).is_some_and(|bytes| bytes <= STRETCH_BYTES_MAX) {
                *self.stretches.entry((start, end)).or_default() += 1;
            } else {
                self.torn += 1;
            }
        }
        // The newest branch leads to a stretch that is not known, the oldest from one.
        for &(from, to) in stack.iter().skip(1).take(stack.len().saturating_sub(2)) {
            *self.taken.entry((from, to)).or_default() += 1;
        }
    }

    /// The stretches as blocks, by address.
    pub fn blocks(&self) -> Vec<StackBlock> {
        let mut starts: BTreeSet<u64> = self.stretches.keys().map(|(start, _)| *start).collect();
        starts.extend(self.stretches.keys().map(|(_, end)| end + 1));
        let mut blocks: BTreeMap<u64, StackBlock> = BTreeMap::new();
        for (&(first, end), &count) in &self.stretches {
            let inside: Vec<u64> = starts.range(first..=end).copied().collect();
            for (k, &start) in inside.iter().enumerate() {
                let last = inside.get(k + 1).map_or(end, |next| next - 1);
                let held =
                    blocks.entry(start).or_insert(StackBlock { start, last, count: 0, fell_in: 0 });
                held.count += count;
                held.fell_in += if k > 0 { count } else { 0 };
            }
        }
        blocks.into_values().collect()
    }

    /// How often stretches begin at an address.
    pub fn begun(&self, start: u64) -> u64 {
        self.stretches.range((start, 0)..=(start, u64::MAX)).map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_become_blocks_whose_flow_conserves() {
        let mut flow = StackFlow::default();
        flow.add(&[(40, 70), (25, 30), (90, 10)]);
        flow.add(&[(25, 30), (25, 20), (90, 10)]);
        assert_eq!(flow.torn, 0);
        assert_eq!(flow.taken[&(25, 30)], 1);
        let blocks = flow.blocks();
        let found: Vec<(u64, u64, u64)> =
            blocks.iter().map(|block| (block.start, block.count, block.fell_in)).collect();
        // 10 to 25 ran twice, the second half of it once more from 20.
        assert_eq!(found, [(10, 2, 0), (20, 3, 2), (30, 1, 0)]);
        for block in blocks {
            assert_eq!(block.count, block.fell_in + flow.begun(block.start));
        }
    }

    #[test]
    fn a_stretch_that_runs_backwards_is_torn() {
        let mut flow = StackFlow::default();
        flow.add(&[(5, 70), (25, 30)]);
        assert_eq!((flow.torn, flow.stretches.len()), (1, 0));
    }
}
