//! A log of every event, slice by slice of modelled time.

use crate::core::{Silent, Watcher};
use crate::event::Counts;
use crate::fast::FastCore;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};

/// A core whose counts are read whenever a slice of cycles is over.
///
/// A slice ends at the end of the block that completes it, so it may be a few cycles longer than
/// asked; every slice says its own cycles, and their sum is exact.
#[derive(Clone, Debug)]
pub struct Sliced<W: Watcher = Silent> {
    core: FastCore<W>,
    slice_cycles: u64,
    next: u64,
    before: Counts,
    slices: Vec<Counts>,
}

impl<W: Watcher> Sliced<W> {
    /// Cuts a core's time into slices.
    pub fn new(core: FastCore<W>, slice_cycles: u64) -> Sliced<W> {
        let slice_cycles = slice_cycles.max(1);
        let before = core.counts();
        let next = core.cycles() + slice_cycles;
        Sliced { core, slice_cycles, next, before, slices: Vec::new() }
    }

    /// The core.
    pub fn core(&self) -> &FastCore<W> {
        &self.core
    }

    /// What was counted in each slice so far.
    pub fn slices(&self) -> &[Counts] {
        &self.slices
    }

    /// Lets everything in flight retire and closes the last slice.
    pub fn finish(&mut self) {
        self.core.finish();
        self.cut();
    }

    fn cut(&mut self) {
        let now = self.core.counts();
        self.slices.push(now.since(&self.before));
        self.before = now;
        self.next = self.core.cycles() + self.slice_cycles;
    }
}

impl<W: Watcher> CoreListener for Sliced<W> {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.core.executed(id, ran, accesses);
        if self.core.cycles() >= self.next {
            self.cut();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Settings;
    use crate::event::Event;
    use crate::testing::*;

    #[test]
    fn slices_sum_to_the_whole() {
        let core = FastCore::new(&machine("zen4", &[]), Settings::default());
        let mut sliced = Sliced::new(core, 500);
        repeat(&mut sliced, IMUL_RAX_RAX, 12_800);
        sliced.finish();
        let whole = sliced.core().counts();
        for &event in Event::ALL {
            let sum: u64 = sliced.slices().iter().map(|slice| slice[event]).sum();
            assert_eq!(sum, whole[event], "{}", event.name());
        }
        let cycles: Vec<u64> = sliced.slices().iter().map(|slice| slice[Event::Cycles]).collect();
        let (last, full) = cycles.split_last().unwrap();
        // The first slice also waits for the code; a block of 64 takes 192 cycles.
        assert!(full[1..].iter().all(|&c| (500..500 + 192).contains(&c)), "{cycles:?}");
        assert!(*last < 800);
    }
}
