//! Ports, given out anew in every lane.
//!
//! Observed waits for ports answer to nothing: where a long chain is idealised away, its waits stay
//! behind. Here every lane keeps a calendar of its own. Micro-ops come in program order but may
//! take any free cycle, as on the one-pass core.

/// Cycles kept ahead of dispatch. Who issues later meets nobody.
const AHEAD: usize = 1 << 10;
const MASK: u32 = AHEAD as u32 - 1;

/// A calendar a lane.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// Ports taken, by lane and cycle.
    taken: Vec<[u32; AHEAD]>,
    /// The cycle that each lane's calendar begins with.
    from: Vec<u32>,
}

impl Ports {
    pub(crate) fn new(lanes: usize) -> Ports {
        Ports { taken: vec![[0; AHEAD]; lanes], from: vec![0; lanes] }
    }

    /// Sends a micro-op to one of some ports, for so many cycles, not before it is ready.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        lane: usize,
        dispatched: u32,
        ready: u32,
        (ports, cycles): (u32, u32),
    ) -> u32 {
        let (calendar, from) = (&mut self.taken[lane], &mut self.from[lane]);
        if dispatched != *from {
            forget(calendar, *from, dispatched);
            *from = dispatched;
        }
        let end = dispatched + AHEAD as u32;
        if cycles > 1 {
            return take_long(calendar, ready, end, ports, cycles);
        }
        let mut at = ready;
        while at < end {
            let place = &mut calendar[(at & MASK) as usize];
            let free = ports & !*place;
            if free != 0 {
                *place |= free & free.wrapping_neg();
                return at;
            }
            at += 1;
        }
        at
    }

    /// Takes some cycles off a lane's times.
    pub(crate) fn rebase(&mut self, lane: usize, cycles: u32) {
        self.taken[lane].rotate_left((cycles & MASK) as usize);
        self.from[lane] = self.from[lane].saturating_sub(cycles);
    }
}

/// Frees the cycles that are over.
#[inline(always)]
fn forget(calendar: &mut [u32; AHEAD], from: u32, to: u32) {
    if to.wrapping_sub(from) >= AHEAD as u32 {
        calendar.fill(0);
        return;
    }
    for cycle in from..to {
        calendar[(cycle & MASK) as usize] = 0;
    }
}

/// The same for work that keeps its port for several cycles.
#[inline(never)]
fn take_long(calendar: &mut [u32; AHEAD], ready: u32, end: u32, ports: u32, cycles: u32) -> u32 {
    let mut at = ready;
    while at + cycles < end {
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
