//! Where windows lie, and what they left. Shared by the threads of a program.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Window;
use crate::strata::{Strata, Turns};

/// Which core times a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Timing {
    /// In one pass.
    Fast,
    /// Cycle by cycle: slower and closer.
    #[default]
    Reference,
}

/// How to draw windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// Instructions in a window.
    pub window_instructions: u64,
    /// Windows that are kept at least; up to twice as many are.
    pub windows: usize,
    /// Where they fall.
    pub seed: u64,
    /// What times them.
    pub timing: Timing,
}

impl Default for Plan {
    fn default() -> Plan {
        Plan { window_instructions: 10_000, windows: 32, seed: 1, timing: Timing::default() }
    }
}

/// An instruction of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The process, as whoever listens numbers it.
    pub process: u64,
    /// The address.
    pub pc: u64,
}

/// What was drawn of a program.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// The windows, in the order in which they ran.
    pub windows: Vec<Window>,
    /// The instructions that their steps speak of.
    pub places: Vec<Place>,
    /// Instructions that the program ran.
    pub instructions: u64,
}

#[derive(Debug)]
struct Drawn {
    windows: Strata<Window>,
    places: Vec<Place>,
    numbers: HashMap<Place, u32>,
}

/// Says when a window begins and keeps what it left.
#[derive(Debug)]
pub struct Schedule {
    plan: Plan,
    pub(super) turns: Turns,
    drawn: Mutex<Drawn>,
}

impl Schedule {
    /// Nothing has run.
    pub fn new(plan: Plan) -> Schedule {
        let windows = Strata::new(plan.window_instructions, plan.windows, plan.seed);
        let drawn = Drawn { windows, places: Vec::new(), numbers: HashMap::new() };
        Schedule { plan, turns: Turns::default(), drawn: Mutex::new(drawn) }
    }

    /// How windows are drawn.
    pub fn plan(&self) -> Plan {
        self.plan
    }

    /// What was drawn, when everything has run.
    pub fn finish(&self) -> Sampled {
        let mut drawn = self.drawn();
        Sampled {
            windows: drawn.windows.take(),
            places: std::mem::take(&mut drawn.places),
            instructions: self.turns.position(),
        }
    }

    /// Keeps a window of a process whose steps speak of these addresses, and draws the next.
    pub(super) fn keep(&self, mut window: Window, process: u64, pcs: &[u64]) {
        let mut drawn = self.drawn();
        let numbers: Vec<u32> = pcs.iter().map(|&pc| drawn.number(Place { process, pc })).collect();
        for step in &mut window.steps {
            step.instruction = numbers.get(step.instruction as usize).copied().unwrap_or(u32::MAX);
        }
        self.turns.next_at(drawn.windows.keep(window, drop));
    }

    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drawn {
    fn number(&mut self, place: Place) -> u32 {
        let next = self.places.len() as u32;
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.places.push(place);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows of one instruction each, at the place that its number of cycles says.
    fn run(plan: Plan, instructions: u64) -> Sampled {
        let schedule = Schedule::new(plan);
        let mut open: Option<u64> = None;
        for at in 0..instructions {
            if open.is_none() && schedule.turns.begins() {
                open = Some(at);
            }
            schedule.turns.ran(1);
            if let Some(start) = open.filter(|start| at + 1 - start == plan.window_instructions) {
                open = None;
                let window = Window { cycles: start, ..Window::default() };
                schedule.keep(window, 0, &[start % 7]);
            }
        }
        schedule.finish()
    }

    #[test]
    fn a_short_program_is_kept_whole() {
        let plan = Plan { window_instructions: 10, ..Plan::default() };
        let sampled = run(plan, 300);
        let starts: Vec<u64> = sampled.windows.iter().map(|window| window.cycles).collect();
        assert_eq!(starts, (0..30).map(|k| 10 * k).collect::<Vec<u64>>());
        assert_eq!((sampled.instructions, sampled.places.len()), (300, 7));
    }

    #[test]
    fn windows_of_a_long_program_lie_one_a_stratum_and_follow_the_seed() {
        let plan = |seed| Plan { window_instructions: 10, seed, ..Plan::default() };
        let sampled = run(plan(3), 100_000);
        let starts: Vec<u64> = sampled.windows.iter().map(|window| window.cycles).collect();
        // Strata double from 10 until fewer than 64 windows cover it all: 10 × 2^8.
        let strata: Vec<u64> = starts.iter().map(|start| start / 2560).collect();
        assert!((32..64).contains(&starts.len()), "{starts:?}");
        assert!(strata.windows(2).all(|pair| pair[0] < pair[1]), "{starts:?}");
        assert_eq!(run(plan(3), 100_000).windows, sampled.windows);
        assert_ne!(run(plan(4), 100_000).windows, sampled.windows);
    }
}
