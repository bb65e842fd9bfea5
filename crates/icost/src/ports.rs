//! Ports, given out anew in every lane.
//!
//! Observed waits for ports answer to nothing: where a long chain is idealised away, its waits stay
//! behind. Here every lane keeps a calendar of its own. Micro-ops come in program order but may
//! take any free cycle, as on the one-pass core.

/// Cycles that a calendar holds. Who comes to a place that another cycle has takes it over: cycles
/// so far apart are hardly ever needed side by side.
const CYCLES: usize = 1 << 10;
const MASK: u32 = CYCLES as u32 - 1;

/// A cycle, and the ports that are taken in it.
type Entry = (u32, u32);

/// A calendar a lane.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    taken: Vec<[Entry; CYCLES]>,
}

impl Ports {
    pub(crate) fn new(lanes: usize) -> Ports {
        Ports { taken: vec![[(0, 0); CYCLES]; lanes] }
    }

    /// Sends a micro-op to one of some ports, for so many cycles, not before it is ready.
    #[inline(always)]
    pub(crate) fn take(&mut self, lane: usize, ready: u32, (ports, cycles): (u32, u32)) -> u32 {
        let calendar = &mut self.taken[lane];
        if cycles > 1 {
            return take_long(calendar, ready, ports, cycles);
        }
        let mut at = ready;
        loop {
            // No branch on whether the place is another cycle's: that cannot be foretold.
            let taken = taken(calendar, at);
            let free = ports & !taken;
            if free != 0 {
                calendar[(at & MASK) as usize] = (at, taken | (free & free.wrapping_neg()));
                return at;
            }
            at += 1;
        }
    }

    /// Forgets what a lane has taken: its times change.
    pub(crate) fn clear(&mut self, lane: usize) {
        self.taken[lane].fill((0, 0));
    }
}

#[inline(always)]
fn taken(calendar: &[Entry; CYCLES], at: u32) -> u32 {
    let (cycle, ports) = calendar[(at & MASK) as usize];
    if cycle == at { ports } else { 0 }
}

/// The same for work that keeps its port for several cycles.
#[inline(never)]
fn take_long(calendar: &mut [Entry; CYCLES], ready: u32, ports: u32, cycles: u32) -> u32 {
    let mut at = ready;
    loop {
        let stretch = at..at + cycles;
        let free = stretch.clone().fold(ports, |free, cycle| free & !taken(calendar, cycle));
        if free != 0 {
            let port = free & free.wrapping_neg();
            for cycle in stretch {
                calendar[(cycle & MASK) as usize] = (cycle, taken(calendar, cycle) | port);
            }
            return at;
        }
        at += 1;
    }
}
