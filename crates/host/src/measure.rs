//! What can be measured, and how.

use std::io;

use crate::arena::{Arena, line_a_page, lines};
use crate::clock::thread_seconds;
use crate::{Kept, Pinned, bracketed, loops, repeat};

/// What the machine is said to have; it decides how far a loop walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The first-level data cache.
    pub l1_bytes: usize,
    /// The second level.
    pub l2_bytes: usize,
    /// The third level; none where there is none.
    pub l3_bytes: Option<usize>,
    /// Translations in the first level.
    pub tlb_entries: usize,
    /// Translations in the last level.
    pub last_tlb_entries: usize,
}

/// Something that a loop measures, in cycles unless it says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// The clock, in megahertz.
    Clock,
    /// From address to data: a chase through part of the first level.
    L1,
    /// A chase through part of the second level, in as few pages as the first level translates.
    L2,
    /// A chase through part of the third level; the second level translates.
    L3,
    /// A chase through six times the last level, every page of it walked for.
    Memory,
    /// A chase through more pages than the first level translates; its lines are in the first level.
    SecondTlb,
    /// A chase through more pages than any level translates; its lines are in the second level.
    Walk,
    /// Reading memory in order, in bytes a cycle.
    Bandwidth,
    /// A random branch beside one that never changes: what a misprediction costs.
    Mispredict,
    /// Half of a value through memory.
    Forward,
    /// Independent additions a cycle.
    Adds,
    /// Independent loads a cycle.
    Loads,
    /// Stores a cycle.
    Stores,
}

impl Quantity {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Quantity; 13] = [
        Quantity::Clock,
        Quantity::L1,
        Quantity::L2,
        Quantity::L3,
        Quantity::Memory,
        Quantity::SecondTlb,
        Quantity::Walk,
        Quantity::Bandwidth,
        Quantity::Mispredict,
        Quantity::Forward,
        Quantity::Adds,
        Quantity::Loads,
        Quantity::Stores,
    ];
}

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// What.
    pub quantity: Quantity,
    /// The kept runs, and how many were dropped.
    pub kept: Kept,
}

/// Steps of a chase that is timed; fewer through memory, where each takes long.
const STEPS: u64 = 1 << 18;
const STEPS_MEMORY: u64 = 1 << 16;
/// Parts of a chase that are timed apart.
const PARTS: u64 = 8;
/// Rounds of the other loops.
const ROUNDS: u64 = 1 << 20;

/// Measures one quantity until `wanted` runs are kept. None where the machine has no such thing.
///
/// # Errors
///
/// There is no memory for it.
pub fn measure(
    quantity: Quantity,
    shape: &Shape,
    pinned: &Pinned,
    wanted: usize,
) -> io::Result<Option<Measured>> {
    let of = |kept: io::Result<Kept>| Ok(Some(Measured { quantity, kept: kept? }));
    let last = shape.l3_bytes.unwrap_or(shape.l2_bytes);
    let loop_of = |rounds: u64, work: fn(u64)| {
        repeat(pinned, wanted, || Ok(timed(|| work(rounds))), |told| told.run * told.clock_hz)
    };
    let a_cycle = |operations: f64, kept: io::Result<Kept>| {
        kept.map(|kept| mapped(kept, |cycles| operations * ROUNDS as f64 / cycles))
    };
    match quantity {
        Quantity::Clock => of(clock(pinned, wanted)),
        Quantity::L1 => of(chase(pinned, wanted, &lines(shape.l1_bytes / 8 * 3), STEPS)),
        Quantity::L2 => of(chase(pinned, wanted, &lines(shape.l2_bytes / 16 * 3), STEPS)),
        Quantity::L3 => match shape.l3_bytes {
            None => Ok(None),
            Some(bytes) => of(chase(pinned, wanted, &lines(bytes / 32 * 3), STEPS)),
        },
        Quantity::Memory => of(chase(pinned, wanted, &lines(6 * last), STEPS_MEMORY)),
        Quantity::SecondTlb => {
            let pages = (4 * shape.tlb_entries).min(shape.l1_bytes / 128);
            of(chase(pinned, wanted, &line_a_page(pages), STEPS))
        }
        Quantity::Walk => {
            let pages = 2 * shape.last_tlb_entries;
            of(chase(pinned, wanted, &line_a_page(pages), STEPS))
        }
        Quantity::Bandwidth => of(bandwidth(pinned, wanted, 3 * last)),
        Quantity::Mispredict => of(mispredict(pinned, wanted)),
        Quantity::Forward => {
            let kept = loop_of(ROUNDS / 8, loops::forwards);
            of(kept.map(|kept| mapped(kept, |cycles| cycles / (ROUNDS / 8) as f64 / 12.0)))
        }
        Quantity::Adds => of(a_cycle(24.0, loop_of(ROUNDS, loops::adds))),
        Quantity::Loads => of(a_cycle(24.0, loop_of(ROUNDS, loops::loads))),
        Quantity::Stores => of(a_cycle(24.0, loop_of(ROUNDS, loops::stores))),
    }
}

fn timed(work: impl FnOnce()) -> f64 {
    let began = thread_seconds();
    work();
    thread_seconds() - began
}

fn mapped(kept: Kept, each: impl Fn(f64) -> f64) -> Kept {
    Kept { values: kept.values.iter().map(|value| each(*value)).collect(), ..kept }
}

fn clock(pinned: &Pinned, wanted: usize) -> io::Result<Kept> {
    let mut kept = Kept::default();
    while kept.values.len() < wanted && kept.dropped < 4 * wanted {
        match bracketed(pinned, || Ok::<_, io::Error>(()))? {
            Some(told) => kept.values.push(told.clock_hz / 1e6),
            None => kept.dropped += 1,
        }
    }
    Ok(kept)
}

/// Cycles a step of a chase through the lines at `places`, in small pages. A run is the quickest of
/// its parts: whoever takes the CPU meanwhile leaves lines of its own behind, and only slows it.
fn chase(pinned: &Pinned, wanted: usize, places: &[usize], steps: u64) -> io::Result<Kept> {
    let bytes = places.iter().max().map_or(0, |last| last + 64);
    let mut arena = Arena::new(bytes, false)?;
    let first = arena.weave(places, 0x5eed);
    // Each walk goes on where the one before it ended: the same lines again would be near by.
    let mut at = first;
    // SAFETY: the arena is woven, and lives to the end of this procedure.
    let mut walk = |steps: u64| at = unsafe { loops::chase(at, steps) };
    let run = || {
        walk(places.len() as u64);
        let parts = (0..PARTS).map(|_| timed(|| walk(steps / PARTS)));
        Ok(parts.fold(f64::INFINITY, f64::min))
    };
    let each = (steps / PARTS) as f64;
    repeat(pinned, wanted, run, |told| told.run * told.clock_hz / each)
}

/// Bytes a cycle that are read in order, round an arena.
fn bandwidth(pinned: &Pinned, wanted: usize, bytes: usize) -> io::Result<Kept> {
    let arena = Arena::new(bytes, true)?;
    let all = arena.bytes() / 256 * 256;
    // SAFETY: the arena has so many bytes and lives on.
    let read = || unsafe { loops::read(arena.start(), all) };
    read();
    let run = || Ok(timed(read));
    repeat(pinned, wanted, run, |told| all as f64 / (told.run * told.clock_hz))
}

/// What a branch costs more when it is a coin than when it never changes; half of the coins are
/// guessed.
fn mispredict(pinned: &Pinned, wanted: usize) -> io::Result<Kept> {
    let run = || {
        let same = timed(|| loops::branches(ROUNDS, false));
        Ok(timed(|| loops::branches(ROUNDS, true)) - same)
    };
    repeat(pinned, wanted, run, |told| 2.0 * told.run * told.clock_hz / ROUNDS as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_a_number_or_was_dropped() {
        let pinned = Pinned::to_one().unwrap();
        let shape = Shape {
            l1_bytes: 32 << 10,
            l2_bytes: 256 << 10,
            l3_bytes: None,
            tlb_entries: 64,
            last_tlb_entries: 512,
        };
        assert_eq!(measure(Quantity::L3, &shape, &pinned, 1).unwrap(), None);
        for quantity in [Quantity::L1, Quantity::Walk, Quantity::Adds] {
            let measured = measure(quantity, &shape, &pinned, 1).unwrap().unwrap();
            assert_eq!(measured.quantity, quantity);
            let kept = measured.kept;
            assert!(kept.values.len() + kept.dropped > 0);
            assert!(kept.values.iter().all(|value| value.is_finite()));
        }
    }
}
