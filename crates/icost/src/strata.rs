//! Where windows fall in a program whose length shows only in the end.
//!
//! ```text
//! strata      | w    |    w | w    |   w  |      one window in each, anywhere in it
//! too many    | w           |          w  | …    one of every two is kept, strata are twice as long
//! ```

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use metrology::Draws;

/// What the threads of a program share without waiting for each other: how far it has come.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    position: AtomicU64,
    next: AtomicU64,
}

/// A window is under way: no other begins.
const UNDER_WAY: u64 = u64::MAX;

impl Turns {
    /// Whether a window begins here; if so it is under way.
    #[inline]
    pub(crate) fn begins(&self) -> bool {
        let next = self.next.load(Relaxed);
        let is_due = next != UNDER_WAY && self.position.load(Relaxed) >= next;
        is_due && self.next.compare_exchange(next, UNDER_WAY, Relaxed, Relaxed).is_ok()
    }

    /// So many instructions have run.
    #[inline]
    pub(crate) fn ran(&self, instructions: u64) {
        self.position.fetch_add(instructions, Relaxed);
    }

    /// The next window begins there: none is under way any more.
    pub(crate) fn next_at(&self, position: u64) {
        self.next.store(position, Relaxed);
    }

    /// Instructions that have run.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Relaxed)
    }
}

/// The windows that are kept, one a stratum.
#[derive(Debug)]
pub(crate) struct Strata<T> {
    window_instructions: u64,
    /// As many are kept at least, and fewer than twice as many.
    least: usize,
    draws: Draws,
    stratum: u64,
    /// Where the next stratum begins.
    next: u64,
    kept: Vec<T>,
}

impl<T> Strata<T> {
    pub(crate) fn new(window_instructions: u64, least: usize, seed: u64) -> Strata<T> {
        let stratum = window_instructions.max(1);
        let (least, draws) = (least.max(1), Draws::new(seed));
        Strata { window_instructions, least, draws, stratum, next: stratum, kept: Vec::new() }
    }

    /// Keeps a window; says where the next one begins. What has to go is told.
    pub(crate) fn keep(&mut self, window: T, gone: impl FnMut(T)) -> u64 {
        self.kept.push(window);
        if self.kept.len() >= 2 * self.least {
            self.thin(gone);
        }
        let room = self.stratum.saturating_sub(self.window_instructions);
        let within = if room == 0 { 0 } else { self.draws.below(room as usize + 1) as u64 };
        let next = self.next + within;
        self.next += self.stratum;
        next
    }

    /// Keeps one of every two neighbours, whichever the draw says: strata are twice as long now.
    fn thin(&mut self, mut gone: impl FnMut(T)) {
        self.stratum *= 2;
        let mut windows = std::mem::take(&mut self.kept).into_iter();
        while let Some(first) = windows.next() {
            let takes_second = self.draws.below(2) == 1;
            let (kept, dropped) = match windows.next() {
                Some(second) if takes_second => (second, Some(first)),
                second => (first, second),
            };
            self.kept.push(kept);
            dropped.into_iter().for_each(&mut gone);
        }
    }

    /// The windows, in the order in which they ran.
    pub(crate) fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.kept)
    }
}
