//! The listener of one thread: warms, and times windows where the schedule says.

use std::collections::HashMap;
use std::sync::Arc;

use model::core::{Life, Settings, Watcher};
use model::fast::FastCore;
use model::machine::Machine;
use model::reference::ReferenceCore;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;

use super::schedule::{Schedule, Timing};
use crate::{Fixed, Labeller, Step};

/// A stretch of a program as it was timed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Its micro-ops.
    pub steps: Vec<Step>,
    /// Its instructions.
    pub instructions: u64,
    /// The cycles that it took.
    pub cycles: u64,
}

/// Keeps what it is told, labelled.
#[derive(Clone, Debug)]
pub struct Keeper {
    labeller: Labeller,
    first: Option<u64>,
    window: Window,
}

impl Keeper {
    /// For a machine's numbers.
    pub fn new(fixed: Fixed) -> Keeper {
        Keeper { labeller: Labeller::new(fixed), first: None, window: Window::default() }
    }

    /// What has been told since it was last taken.
    pub fn take(&mut self) -> Window {
        self.first = None;
        std::mem::take(&mut self.window)
    }
}

impl Watcher for Keeper {
    fn lived(&mut self, life: &Life) {
        let first = *self.first.get_or_insert(life.dispatched);
        self.window.cycles = life.committed - first;
        self.window.instructions += u64::from(life.is_last);
        self.window.steps.push(self.labeller.label(life));
    }
}

#[derive(Debug)]
enum Core {
    Fast(Box<FastCore<Keeper>>),
    Reference(Box<ReferenceCore<Keeper>>),
}

#[derive(Debug)]
struct Open {
    core: Core,
    /// Only what runs in the window is translated for it, and so numbered anew.
    numbers: HashMap<u32, BlockId>,
    left: u64,
}

impl Open {
    fn listener(&mut self) -> &mut dyn CoreListener {
        match &mut self.core {
            Core::Fast(core) => core.as_mut(),
            Core::Reference(core) => core.as_mut(),
        }
    }

    fn number(&mut self, id: BlockId, blocks: &[StaticBlock]) -> Option<BlockId> {
        if let Some(&number) = self.numbers.get(&id.0) {
            return Some(number);
        }
        let block = blocks.get(id.0 as usize)?;
        let number = BlockId(self.numbers.len() as u32);
        self.numbers.insert(id.0, number);
        self.listener().translated(number, block);
        Some(number)
    }

    fn finish(self) -> (Window, Vec<u64>) {
        match self.core {
            Core::Fast(mut core) => {
                core.finish();
                let pcs = core.program().instructions.iter().map(|i| i.pc).collect();
                (core.watcher_mut().take(), pcs)
            }
            Core::Reference(mut core) => {
                core.finish();
                let pcs = core.program().instructions.iter().map(|i| i.pc).collect();
                (core.watcher_mut().take(), pcs)
            }
        }
    }
}

/// The listener of one thread.
#[derive(Debug)]
pub struct Sampler {
    machine: Arc<Machine>,
    schedule: Arc<Schedule>,
    process: u64,
    blocks: Vec<StaticBlock>,
    warmer: Warmer,
    open: Option<Box<Open>>,
}

impl Sampler {
    /// Cold units, for a thread of a process.
    pub fn new(machine: Arc<Machine>, schedule: Arc<Schedule>, process: u64) -> Sampler {
        let warmer = Warmer::new(&machine);
        Sampler { machine, schedule, process, blocks: Vec::new(), warmer, open: None }
    }

    fn begin(&mut self) {
        let plan = self.schedule.plan();
        let (memory, predictor) = self.warmer.clone().into_units();
        let (machine, settings) = (&self.machine, Settings::default());
        let keeper = Keeper::new(Fixed::of(machine));
        let core = match plan.timing {
            Timing::Fast => {
                let core = FastCore::watched(machine, settings, keeper);
                Core::Fast(Box::new(core.with_units(memory, predictor)))
            }
            Timing::Reference => {
                let core = ReferenceCore::watched(machine, settings, keeper);
                Core::Reference(Box::new(core.with_units(memory, predictor)))
            }
        };
        let left = plan.window_instructions;
        self.open = Some(Box::new(Open { core, numbers: HashMap::new(), left }));
    }

    fn advance(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        let Some(open) = &mut self.open else { return };
        let Some(number) = open.number(id, &self.blocks) else { return };
        open.listener().executed(number, ran, accesses);
        open.left = open.left.saturating_sub(u64::from(ran));
        if open.left == 0
            && let Some(open) = self.open.take()
        {
            let (window, pcs) = open.finish();
            self.schedule.keep(window, self.process, &pcs);
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        // A thread that ends within a window leaves the next one to another.
        if self.open.is_some() {
            self.schedule.turns.next_at(0);
        }
    }
}

impl CoreListener for Sampler {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        // Ids arrive in order, so that a block's place is its number.
        self.blocks.push(block.clone());
        self.warmer.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        if self.open.is_none() && self.schedule.turns.begins() {
            self.begin();
        }
        self.advance(id, ran, accesses);
        self.warmer.executed(id, ran, accesses);
        self.schedule.turns.ran(u64::from(ran));
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        if let Some(open) = &mut self.open
            && let Some(&number) = open.numbers.get(&id.0)
        {
            open.listener().continued(number, accesses);
        }
        self.warmer.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        if let Some(open) = &mut self.open {
            open.listener().interrupted();
        }
        self.warmer.interrupted();
    }
}
