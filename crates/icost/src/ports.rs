//! Ports, given out anew in every lane.
//!
//! Observed waits for ports answer to nothing: where a long chain is idealised away, its waits stay
//! behind. Here every lane keeps a calendar of its own. Micro-ops come in program order but may
//! take any free cycle, as on the one-pass core.

/// Cycles kept ahead of dispatch. Who issues later meets nobody.
const AHEAD: usize = 1 << 11;
const MASK: u32 = AHEAD as u32 - 1;

/// A calendar a lane.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// Ports taken, by lane and cycle.
    taken: Vec<u32>,
    /// The cycle that each lane's calendar begins with.
    from: Vec<u32>,
}

impl Ports {
    pub(crate) fn new(lanes: usize) -> Ports {
        Ports { taken: vec![0; lanes * AHEAD], from: vec![0; lanes] }
    }

    /// Sends a micro-op to one of some ports, for so many cycles, not before it is ready.
    #[inline]
    pub(crate) fn take(
        &mut self,
        lane: usize,
        dispatched: u32,
        ready: u32,
        (ports, cycles): (u32, u32),
    ) -> u32 {
        let calendar = &mut self.taken[lane * AHEAD..(lane + 1) * AHEAD];
        let from = &mut self.from[lane];
        if dispatched.wrapping_sub(*from) >= AHEAD as u32 {
            calendar.fill(0);
        } else {
            for cycle in *from..dispatched {
                calendar[(cycle & MASK) as usize] = 0;
            }
        }
        *from = dispatched;
        let mut at = ready;
        while at + cycles < dispatched + AHEAD as u32 {
            let stretch = at..at + cycles;
            let free = stretch.clone().fold(ports, |free, c| free & !calendar[(c & MASK) as usize]);
            if free != 0 {
                let port = free & free.wrapping_neg();
                stretch.for_each(|c| calendar[(c & MASK) as usize] |= port);
                return at;
            }
            at += 1;
        }
        at
    }

    /// Takes some cycles off a lane's times.
    pub(crate) fn rebase(&mut self, lane: usize, cycles: u32) {
        let calendar = &mut self.taken[lane * AHEAD..(lane + 1) * AHEAD];
        calendar.rotate_left((cycles & MASK) as usize);
        self.from[lane] = self.from[lane].saturating_sub(cycles);
    }
}
