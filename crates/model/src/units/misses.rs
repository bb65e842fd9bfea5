//! What limits misses: registers that hold them, and the channel that brings lines.

/// A fixed number of misses at a time.
///
/// Requests may come out of order in time, so the file remembers when each of the latest misses
/// began and ended, and admits a new one as soon as fewer than its registers are taken.
#[derive(Clone, Debug)]
pub struct MissFile {
    /// Twice as many intervals as registers: what is older has ended.
    taken: Vec<(u64, u64)>,
    next: usize,
    registers: usize,
}

impl MissFile {
    /// So many registers, at least one.
    pub fn new(registers: usize) -> MissFile {
        let registers = registers.max(1);
        MissFile { taken: vec![(0, 0); 2 * registers], next: 0, registers }
    }

    /// When a miss that wants to start at `at` may start.
    pub fn admit(&self, at: u64) -> u64 {
        let mut start = at;
        loop {
            let mut count = 0;
            let mut earliest = u64::MAX;
            for &(from, to) in &self.taken {
                let is_taken = from <= start && start < to;
                count += usize::from(is_taken);
                earliest = earliest.min(if is_taken { to } else { u64::MAX });
            }
            if count < self.registers {
                return start;
            }
            start = earliest;
        }
    }

    /// Takes a register from `start` to `end`.
    pub fn hold(&mut self, start: u64, end: u64) {
        self.taken[self.next] = (start, end);
        self.next = if self.next + 1 == self.taken.len() { 0 } else { self.next + 1 };
    }

    /// How many registers are taken at a time.
    pub fn taken_at(&self, at: u64) -> usize {
        self.taken.iter().filter(|&&(start, end)| start <= at && at < end).count()
    }
}

/// How wide a stretch of time is booked as one, in cycles.
const STRETCH_SHIFT: u32 = 7;
/// Stretches remembered; a booking further ahead forgets the oldest.
const STRETCHES: usize = 1024;

/// A channel of limited bandwidth, booked by stretches of time so that late news may fill gaps.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Which stretch a place stands for, and how many transfers it has.
    booked: Vec<(u64, u32)>,
    capacity: u32,
    cycles_each: u64,
}

impl Channel {
    /// A channel on which a transfer takes so many cycles.
    pub fn new(cycles_each: u64) -> Channel {
        let cycles_each = cycles_each.max(1);
        let capacity = ((1 << STRETCH_SHIFT) / cycles_each).max(1) as u32;
        Channel { booked: vec![(0, 0); STRETCHES], capacity, cycles_each }
    }

    /// Books a transfer that wants to start at `at`; returns when it starts.
    pub fn book(&mut self, at: u64) -> u64 {
        let mut stretch = at >> STRETCH_SHIFT;
        loop {
            let place = &mut self.booked[stretch as usize & (STRETCHES - 1)];
            if place.0 != stretch {
                *place = (stretch, 0);
            }
            if place.1 < self.capacity {
                let start = (stretch << STRETCH_SHIFT) + u64::from(place.1) * self.cycles_each;
                place.1 += 1;
                return start.max(at);
            }
            stretch += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_miss_file_delays_the_next_until_the_first_returns() {
        let mut file = MissFile::new(2);
        for (at, end) in [(0, 100), (10, 110)] {
            assert_eq!(file.admit(at), at);
            file.hold(at, end);
        }
        assert_eq!(file.taken_at(50), 2);
        assert_eq!(file.admit(20), 100);
        file.hold(100, 200);
        assert_eq!(file.admit(105), 110);
    }

    #[test]
    fn a_miss_in_the_far_future_does_not_hold_up_one_now() {
        let mut file = MissFile::new(1);
        assert_eq!(file.admit(1000), 1000);
        file.hold(1000, 1100);
        assert_eq!(file.admit(5), 5);
    }

    #[test]
    fn a_saturated_channel_delivers_one_line_per_its_cycles() {
        let mut channel = Channel::new(8);
        let last = (0..1600).map(|_| channel.book(0)).max().unwrap();
        assert_eq!(last, 1599 * 8);
    }

    #[test]
    fn an_idle_channel_adds_nothing() {
        let mut channel = Channel::new(8);
        for k in 0..100 {
            assert_eq!(channel.book(k * 1000 + 3), k * 1000 + 3);
        }
    }
}
