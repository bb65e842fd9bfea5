//! Ports, given out anew in every lane.
//!
//! Observed waits for ports answer to nothing: where a long chain is idealised away, its waits stay
//! behind. Here every lane keeps a calendar of its own. Micro-ops come in program order but may
//! take any free cycle, as on the one-pass core.

use crate::chunk::Chunk;

/// Cycles that a calendar holds. Who comes to a place that another cycle has takes it over: cycles
/// so far apart are hardly ever needed side by side.
pub(crate) const CYCLES_SHIFT: u32 = 9;
const CYCLES: usize = 1 << CYCLES_SHIFT;
pub(crate) const MASK: u32 = CYCLES as u32 - 1;
/// Ports that fit in an entry beside the round of its cycle. No machine has as many.
pub(crate) const PORTS: u32 = 24;
const PORTS_MASK: u32 = (1 << PORTS) - 1;

/// The ports that are taken in a cycle, below the round of the calendar in which that cycle comes.
type Entry = u32;
pub(crate) type Calendar = [Entry; CYCLES];

/// A calendar a lane.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    lanes: Vec<Calendar>,
}

impl Ports {
    pub(crate) fn new(lanes: usize) -> Ports {
        Ports { lanes: vec![[0; CYCLES]; lanes] }
    }

    /// Sends a micro-op to one of some ports in every lane, for so many cycles, not before it is
    /// ready there. Lanes beyond the calendars have no ports to wait for.
    #[inline(always)]
    pub(crate) fn take<C: Chunk>(&mut self, at: &mut [u32], (ports, cycles): (u32, u32)) {
        let ports = ports & PORTS_MASK;
        if cycles > 1 {
            for (calendar, at) in self.lanes.iter_mut().zip(at) {
                *at = take_long(calendar, *at, ports, cycles);
            }
            return;
        }
        if C::BOOKS {
            let lanes = self.lanes.chunks_mut(C::LANES).zip(at.chunks_mut(C::LANES));
            for (calendars, at) in lanes {
                let mut full = C::book(calendars, at, ports);
                while full != 0 {
                    let lane = full.trailing_zeros() as usize;
                    full &= full - 1;
                    at[lane] = take_later(&mut calendars[lane], at[lane] + 1, ports);
                }
            }
            return;
        }
        for (calendar, at) in self.lanes.iter_mut().zip(at) {
            // No branch on whether a cycle is full: that cannot be foretold. Two full ones in a
            // row are rarer.
            let (now, next) = (held(calendar, *at), held(calendar, *at + 1));
            let is_full = u32::from(ports & !now == 0);
            let taken = now ^ (now ^ next) & is_full.wrapping_neg();
            let free = ports & !taken;
            *at += is_full;
            calendar[(*at & MASK) as usize] = taken | (free & free.wrapping_neg());
            if free == 0 {
                *at = take_later(calendar, *at + 1, ports);
            }
        }
    }

    /// Forgets what a lane has taken: its times change.
    pub(crate) fn clear(&mut self, lane: usize) {
        if let Some(calendar) = self.lanes.get_mut(lane) {
            calendar.fill(0);
        }
    }
}

/// The round of the calendar that a cycle is in, as far as an entry holds it.
#[inline(always)]
fn round(at: u32) -> u32 {
    (at >> CYCLES_SHIFT) << PORTS
}

/// What is taken in a cycle, with its round.
#[inline(always)]
fn held(calendar: &Calendar, at: u32) -> Entry {
    let (entry, round) = (calendar[(at & MASK) as usize], round(at));
    if entry & !PORTS_MASK == round { entry } else { round }
}

/// Takes a port in the first cycle from one on in which there is one.
#[inline(never)]
fn take_later(calendar: &mut Calendar, from: u32, ports: u32) -> u32 {
    let mut at = from;
    loop {
        let taken = held(calendar, at);
        let free = ports & !taken;
        if free != 0 {
            calendar[(at & MASK) as usize] = taken | (free & free.wrapping_neg());
            return at;
        }
        at += 1;
    }
}

/// The same for work that keeps its port for several cycles.
#[inline(never)]
fn take_long(calendar: &mut Calendar, ready: u32, ports: u32, cycles: u32) -> u32 {
    let mut at = ready;
    loop {
        let stretch = at..at + cycles;
        let free = stretch.clone().fold(ports, |free, cycle| free & !held(calendar, cycle));
        if free != 0 {
            let port = free & free.wrapping_neg();
            for cycle in stretch {
                calendar[(cycle & MASK) as usize] = held(calendar, cycle) | port;
            }
            return at;
        }
        at += 1;
    }
}
