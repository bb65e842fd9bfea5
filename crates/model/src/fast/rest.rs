//! A core put back to an earlier moment, for less than a new one costs.
//!
//! Schedules start over and over from the same state. What they change is little beside what a core
//! is: the cycles ahead that were taken, rings of a few hundred times, registers.

use super::FastCore;
use super::engine::OpenBranch;
use super::front::Front;
use super::group::Group;
use super::retire::Retire;
use super::window::{Ahead, Window};
use crate::core::{Life, Watcher};
use crate::uop::Reg;

/// A moment of a core that has asked nothing of memory: all that times depend on, but for what its
/// predictors have learned.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    front: Front,
    window: Window,
    ahead: Vec<Ahead>,
    retire: Retire,
    group: Group,
    registers: [u64; Reg::COUNT],
    writers: [u64; Reg::COUNT],
    sequence: u64,
    branch: Option<OpenBranch>,
    lives: Vec<Life>,
}

impl<W: Watcher> FastCore<W> {
    /// From now on code is always there, and nobody asks where it came from. No load waits for a
    /// store that it may not need.
    pub(crate) fn ask_nobody(&mut self) {
        self.engine.front.ask_nobody();
        self.engine.ordering = None;
    }

    /// This moment.
    pub(crate) fn moment(&self) -> Moment {
        let engine = &self.engine;
        Moment {
            front: engine.front.clone(),
            window: engine.window.clone(),
            ahead: engine.window.ahead(),
            retire: engine.retire.clone(),
            group: engine.group.clone(),
            registers: engine.registers,
            writers: engine.writers,
            sequence: engine.sequence,
            branch: engine.branch,
            lives: engine.lives.clone(),
        }
    }

    /// Goes back to a moment, once everything since has retired. Then the core had come to a jump,
    /// which now is at `pc`. No port is taken for longer than `busy_cycles`.
    pub(crate) fn restore(&mut self, moment: &Moment, pc: u64, busy_cycles: u64) {
        let engine = &mut self.engine;
        let end = engine.retire.cycle() + busy_cycles + 1;
        engine.window.restore(&moment.window, &moment.ahead, end);
        engine.front.restore(&moment.front, pc);
        engine.retire.restore(&moment.retire);
        engine.group.clone_from(&moment.group);
        (engine.registers, engine.writers) = (moment.registers, moment.writers);
        (engine.sequence, engine.branch) = (moment.sequence, moment.branch);
        engine.lives.clone_from(&moment.lives);
    }
}
