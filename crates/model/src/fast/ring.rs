//! The latest times of something of which only so many can be in flight.

/// A ring of times; its oldest is when the place that comes next was left.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    times: Vec<u64>,
    at: usize,
}

impl Ring {
    pub(super) fn new(places: usize) -> Ring {
        Ring { times: vec![0; places.max(1)], at: 0 }
    }

    /// Becomes another of the same size.
    pub(super) fn restore(&mut self, other: &Ring) {
        self.times.copy_from_slice(&other.times);
        self.at = other.at;
    }

    /// When the next place becomes free.
    #[inline]
    pub(super) fn oldest(&self) -> u64 {
        self.times[self.at]
    }

    /// Takes the next place until a time.
    #[inline]
    pub(super) fn push(&mut self, time: u64) {
        let at = self.at;
        let next = at + 1;
        self.at = if next == self.times.len() { 0 } else { next };
        self.times[at] = time;
    }

    /// Keeps the place taken last until a later time.
    #[inline]
    pub(super) fn extend(&mut self, time: u64) {
        let last = if self.at == 0 { self.times.len() - 1 } else { self.at - 1 };
        self.times[last] = time;
    }
}
