//! What limits misses: registers that hold them, and the channel that brings lines.

/// Cycles that are booked as one, as a power of two.
const SPELL_SHIFT: u32 = 3;
/// The same in cycles: registers are given out and taken back by whole spells.
pub const SPELL_CYCLES: u64 = 1 << SPELL_SHIFT;
/// Spells remembered; a booking further ahead forgets the oldest.
const SPELLS: usize = 4096;

/// A fixed number of misses at a time.
///
/// Requests may come out of order in time, so the file keeps how many registers are taken in every
/// short spell of the near future, and a request may fill a gap between later ones.
#[derive(Clone, Debug)]
pub struct MissFile {
    /// Which spell a place stands for, and how many registers are taken in it.
    spells: Vec<(u64, u32)>,
    registers: u32,
}

impl MissFile {
    /// So many registers, at least one.
    pub fn new(registers: usize) -> MissFile {
        MissFile { spells: vec![(0, 0); SPELLS], registers: registers.max(1) as u32 }
    }

    fn spell(&mut self, spell: u64) -> &mut u32 {
        let place = &mut self.spells[spell as usize & (SPELLS - 1)];
        if place.0 != spell {
            *place = (spell, 0);
        }
        &mut place.1
    }

    /// When a miss that wants to start at `at` may start.
    pub fn admit(&mut self, at: u64) -> u64 {
        let mut spell = at >> SPELL_SHIFT;
        while *self.spell(spell) >= self.registers {
            spell += 1;
        }
        at.max(spell << SPELL_SHIFT)
    }

    /// Takes a register from `start` to `end`.
    pub fn hold(&mut self, start: u64, end: u64) {
        let last = (end >> SPELL_SHIFT).min((start >> SPELL_SHIFT) + SPELLS as u64);
        for spell in start >> SPELL_SHIFT..last {
            *self.spell(spell) += 1;
        }
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
        for (at, end) in [(0, 96), (8, 112)] {
            assert_eq!(file.admit(at), at);
            file.hold(at, end);
        }
        assert_eq!(file.admit(20), 96);
        file.hold(96, 200);
        assert_eq!(file.admit(105), 112);
    }

    #[test]
    fn a_miss_in_the_far_future_does_not_hold_up_one_now() {
        let mut file = MissFile::new(1);
        assert_eq!(file.admit(1000), 1000);
        file.hold(1000, 1100);
        assert_eq!(file.admit(5), 5);
    }

    #[test]
    fn throughput_is_registers_over_duration() {
        let mut file = MissFile::new(24);
        let mut last = 0;
        for _ in 0..24_000 {
            let start = file.admit(u64::saturating_sub(last, 2000));
            file.hold(start, start + 400);
            last = start + 400;
        }
        assert_eq!(last, 24_000 / 24 * 400);
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
