//! What the lives of a block's micro-ops say.

use super::{Schedule, StaticWait};
use crate::core::{Life, NOBODY};
use crate::machine::Machine;

/// Reads the last rounds of the block off the lives.
pub(super) fn read(lives: &[Life], length: usize, rounds: usize, machine: &Machine) -> Schedule {
    // The last micro-op of each instruction, in order; those of the rounds are at the end.
    let retired: Vec<usize> = (0..lives.len()).filter(|&k| lives[k].is_last).collect();
    let start = retired.len().saturating_sub(length * rounds);
    let mut head_cycles = vec![0.0; length];
    for (k, &place) in retired.iter().enumerate().skip(start) {
        let before = k.checked_sub(1).map_or(0, |k| lives[retired[k]].committed);
        let head = lives[place].committed.saturating_sub(before);
        head_cycles[(k - start) % length] += head as f64 / rounds as f64;
    }
    let last = retired.len().saturating_sub(length);
    let begin = last.checked_sub(1).map_or(0, |k| retired[k] + 1);
    let mut waits = vec![StaticWait::Turn; length];
    let mut instruction = 0;
    for life in lives.iter().skip(begin) {
        if let Some(held) = waits.get_mut(instruction) {
            *held = stronger(*held, wait(lives, life, begin, machine));
        }
        instruction += usize::from(life.is_last);
    }
    Schedule { head_cycles, waits }
}

fn stronger(held: StaticWait, new: StaticWait) -> StaticWait {
    if held == StaticWait::Turn { new } else { held }
}

/// What a micro-op waited for last.
fn wait(lives: &[Life], life: &Life, begin: usize, machine: &Machine) -> StaticWait {
    if life.issued > life.ready {
        let is_unit = machine.execution(life.class).is_some_and(|execution| execution.busy > 1);
        return if is_unit { StaticWait::Unit } else { StaticWait::Port };
    }
    let known = life.producers.iter().enumerate().filter(|(_, producer)| **producer != NOBODY);
    let known = known.filter_map(|(operand, &sequence)| {
        let place = lives.partition_point(|other| other.sequence < sequence);
        let other = lives.get(place).filter(|other| other.sequence == sequence)?;
        Some((operand, place, other))
    });
    let Some((operand, place, latest)) = known.max_by_key(|(_, _, other)| other.completed) else {
        return StaticWait::Turn;
    };
    // An operand that was there when the micro-op came in made nobody wait.
    if latest.completed <= life.dispatched {
        StaticWait::Turn
    } else if place < begin {
        StaticWait::Earlier { operand }
    } else {
        let maker = lives[begin..place].iter().filter(|life| life.is_last).count();
        StaticWait::Value { maker, operand }
    }
}
