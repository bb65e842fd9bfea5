//! One thread's core with its counters.

use std::convert::Infallible;
use std::sync::mpsc::Sender;

use model::core::Settings;
use model::event::{Counts, Event};
use model::fast::FastCore;
use model::machine::Machine;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use pmu::log::{Record, Slice};
use pmu::{Grouping, Multiplexer, Pmu};

/// Registers programmed with one group. The kernel widens narrow registers by their overflow
/// interrupts, so that what is read here never wraps.
#[derive(Clone, Debug, Default)]
struct Registers {
    events: Vec<Option<Event>>,
    /// Every event so far.
    now: Counts,
    /// Every event when the registers were programmed.
    start: Counts,
}

impl Pmu for Registers {
    type Error = Infallible;

    fn program(&mut self, grouping: &Grouping, group: usize) -> Result<(), Infallible> {
        let name = |place: &usize| grouping.events.get(*place).and_then(|name| Event::named(name));
        self.events.clear();
        if let Some(group) = grouping.groups.get(group) {
            self.events.extend(group.events.iter().map(name));
        }
        self.start.clone_from(&self.now);
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<u64>, Infallible> {
        let since = self.now.since(&self.start);
        Ok(self.events.iter().map(|event| event.map_or(0, |event| since[event])).collect())
    }
}

/// A core whose counters take turns.
pub(super) struct CountedCore {
    core: FastCore,
    turns: Multiplexer,
    registers: Registers,
    /// Whether instructions rather than cycles end a slice.
    by_instructions: bool,
    instructions: u64,
    /// How far the boundary's event may come before the turn is over.
    until: u64,
    who: (u32, u32),
    to: Sender<Record>,
}

impl CountedCore {
    pub(super) fn new(
        machine: &Machine,
        turns: Multiplexer,
        boundary: usize,
        who: (u32, u32),
        to: Sender<Record>,
    ) -> CountedCore {
        let mut core = CountedCore {
            core: FastCore::new(machine, Settings::default()),
            turns,
            registers: Registers::default(),
            by_instructions: boundary == 1,
            instructions: 0,
            until: 0,
            who,
            to,
        };
        let Ok(_) = core.turns.start(&mut core.registers);
        core.until = core.turns.left();
        core
    }

    fn passed(&self) -> u64 {
        if self.by_instructions { self.instructions } else { self.core.cycles() }
    }

    /// The turn is over.
    fn switch(&mut self) {
        self.registers.now = self.core.counts();
        let Ok(reading) = self.turns.switch(&mut self.registers);
        self.tell(reading);
        self.until = self.passed().saturating_add(self.turns.left());
    }

    /// What was in flight retires, and the last, short slice is told.
    pub(super) fn finish(mut self) {
        self.core.finish();
        self.registers.now = self.core.counts();
        let Ok(reading) = self.turns.stop(&mut self.registers);
        self.tell(reading);
        let (pid, tid) = self.who;
        let _ = self.to.send(Record::End { pid, tid });
    }

    fn tell(&self, reading: Option<pmu::Reading>) {
        let Some(reading) = reading else { return };
        let (pid, tid) = self.who;
        // Nobody listens any more: then nobody is told.
        let _ = self.to.send(Record::Slice(Slice { pid, tid, at: self.turns.now(), reading }));
    }
}

impl CoreListener for CountedCore {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
    }

    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.core.executed(id, ran, accesses);
        self.instructions += u64::from(ran);
        if self.passed() >= self.until {
            self.switch();
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.core.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.core.interrupted();
    }
}
