//! A log of every event, slice by slice of modelled time or work.

use crate::core::{Silent, Watcher};
use crate::event::{Counts, Event};
use crate::fast::FastCore;
use crate::stream::{Access, BlockId, CoreListener, StaticBlock};

/// What a core has counted of an event, read as cheaply as the event allows.
pub fn reading<W: Watcher>(core: &FastCore<W>, event: Event) -> u64 {
    match event {
        Event::Cycles | Event::ReferenceCycles => core.cycles(),
        event if (event as usize) < Event::Cycles as usize => core.account().totals[event],
        event => core.counts()[event],
    }
}

/// A core whose counts are read whenever a slice is over: after so many cycles, or so many of
/// another event.
///
/// A slice ends at the end of the block that completes it, so it may be a little longer than
/// asked; every slice says its own length, and their sum is exact.
#[derive(Clone, Debug)]
pub struct Sliced<W: Watcher = Silent> {
    core: FastCore<W>,
    boundary: Event,
    slice: u64,
    /// Shorter slices at first: their length, and until when.
    opening: Option<(u64, u64)>,
    next: u64,
    before: Counts,
    slices: Vec<Counts>,
}

impl<W: Watcher> Sliced<W> {
    /// Cuts a core's time into slices of cycles.
    pub fn new(core: FastCore<W>, slice_cycles: u64) -> Sliced<W> {
        Sliced::by(core, Event::Cycles, slice_cycles)
    }

    /// Cuts a core's work into slices of so many of an event. Slices of instructions end at the
    /// same instruction whatever the machine, so that two machines can be compared slice by slice.
    pub fn by(core: FastCore<W>, boundary: Event, slice: u64) -> Sliced<W> {
        let slice = slice.max(1);
        let before = core.counts();
        let next = reading(&core, boundary) + slice;
        Sliced { core, boundary, slice, opening: None, next, before, slices: Vec::new() }
    }

    /// Slices of so many at first, until so many of the boundary's event have passed. To be said
    /// before anything runs, and not of instructions, whose grid would shift.
    #[must_use]
    pub fn opening(mut self, slice: u64, until: u64) -> Sliced<W> {
        self.next = self.next - self.slice + slice.max(1);
        self.opening = Some((slice.max(1), until));
        self
    }

    /// The core.
    pub fn core(&self) -> &FastCore<W> {
        &self.core
    }

    /// What was counted in each slice that has not been taken.
    pub fn slices(&self) -> &[Counts] {
        &self.slices
    }

    /// Takes the slices so far, so that a long run need not be held in memory.
    pub fn take(&mut self) -> Vec<Counts> {
        std::mem::take(&mut self.slices)
    }

    /// Lets everything in flight retire and closes the last slice.
    pub fn finish(&mut self) {
        self.core.finish();
        self.cut(self.next);
    }

    fn cut(&mut self, at: u64) {
        let now = self.core.counts();
        self.slices.push(now.since(&self.before));
        self.before = now;
        // Cycles begin anew where the slice ended; instructions keep to their grid, which machines
        // share.
        self.next = match (self.boundary, self.opening) {
            (Event::Instructions, _) => at - (at - self.next) % self.slice + self.slice,
            (_, Some((slice, until))) if at < until => at + slice,
            _ => at + self.slice,
        };
    }
}

impl<W: Watcher> CoreListener for Sliced<W> {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.core.executed(id, ran, accesses);
        let now = reading(&self.core, self.boundary);
        if now >= self.next {
            self.cut(now);
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.core.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.core.interrupted();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Settings;
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

    #[test]
    fn an_opening_has_shorter_slices_and_nothing_is_lost() {
        let core = FastCore::new(&machine("zen4", &[]), Settings::default());
        let mut sliced = Sliced::new(core, 2_000).opening(400, 6_000);
        repeat(&mut sliced, IMUL_RAX_RAX, 12_800);
        sliced.finish();
        let whole = sliced.core().cycles();
        let cycles: Vec<u64> = sliced.slices().iter().map(|slice| slice[Event::Cycles]).collect();
        assert_eq!(cycles.iter().sum::<u64>(), whole);
        let mut at = 0;
        // The first slice also waits for the code, and the last one is what is left.
        for &length in &cycles[..cycles.len() - 1] {
            let asked = if at < 6_000 { 400 } else { 2_000 };
            assert!(at == 0 || (asked..asked + 192).contains(&length), "{length} at {at}");
            at += length;
        }
        assert!(cycles.len() > 20, "{cycles:?}");
    }

    #[test]
    fn slices_of_instructions_keep_to_a_grid_that_machines_share() {
        let cut = |name: &str| {
            let core = FastCore::new(&machine(name, &[]), Settings::default());
            let mut sliced = Sliced::by(core, Event::Instructions, 1000);
            repeat(&mut sliced, IMUL_RAX_RAX, 12_800);
            sliced.finish();
            let count = |slice: &Counts| slice[Event::Instructions];
            sliced.take().iter().map(count).collect::<Vec<u64>>()
        };
        let (zen4, alpha) = (cut("zen4"), cut("alpha21164"));
        assert_eq!(zen4, alpha);
        // Blocks of 64: 16, 32 and 47 of them pass a thousand each, and the grid does not drift.
        assert_eq!(zen4[..3], [1024, 1024, 960]);
        assert_eq!(zen4.len(), 13);
        assert_eq!(zen4.iter().sum::<u64>(), 12_800);
    }
}
