//! A modelled core whose counters take turns, and its log.

use std::convert::Infallible;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::PoisonError;

use model::event::{Counts, Event};
use model::fast::FastCore;
use model::machine::Machine;
use model::pmu::CounterBank;
use model::slices;
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use pmu::log::{self, Header, Record, Slice};
use pmu::schedule::Order;
use pmu::{Grouping, Multiplexer, Pmu, Reading};

use super::{CountAsk, MODE, SOURCE};
use crate::inside::images;
use crate::limits::Limit;
use crate::modelled::Modelled;
use crate::results::ProcessKey;
use crate::tally::{CurrentResults, current};

/// How many cycles of slices may wait to be written.
pub const FLUSH_CYCLES: u64 = 200_000;

/// System calls after which a thread may not come back: execve, exit, exit_group, execveat.
const LAST_CALLS: [u64; 4] = [59, 60, 231, 322];

/// The counters, as the groups' events see them.
#[derive(Debug)]
struct Registers {
    machine: Machine,
    events: Vec<Event>,
    bank: Option<CounterBank>,
    /// Everything that has been counted; only what a counter is programmed with may be read.
    now: Counts,
}

impl Pmu for Registers {
    type Error = Infallible;

    fn program(&mut self, grouping: &Grouping, group: usize) -> Result<(), Infallible> {
        let events: Vec<Event> = grouping
            .groups
            .get(group)
            .into_iter()
            .flat_map(|group| &group.events)
            .filter_map(|&event| self.events.get(event).copied())
            .collect();
        // The launcher has found places for every group; without them nothing is counted.
        self.bank = CounterBank::program(&self.machine, &events, &self.now).ok();
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<u64>, Infallible> {
        let read = self.bank.as_ref().map(|bank| bank.read(&self.now)).unwrap_or_default();
        Ok(read.into_iter().map(|(_, count)| count).collect())
    }
}

/// One thread's core and counters.
#[derive(Debug)]
pub struct Counting {
    core: Modelled<FastCore>,
    ask: CountAsk,
    turns: Multiplexer,
    registers: Registers,
    boundary: Event,
    /// The core's own reading of the boundary's event at which the turn is over.
    until: u64,
    current: CurrentResults,
    thread: u32,
    pending: Vec<u8>,
    pending_cycles: u64,
}

impl Counting {
    /// A core for thread number `thread`; `None` if the machine file cannot be read or an event is
    /// not known, which the launcher has made sure of.
    pub fn new(ask: &CountAsk, results: CurrentResults, thread: u32) -> Option<Counting> {
        let machine = Machine::load(&ask.model.name, &ask.model.machine, &[]).ok()?;
        let named = |name: &String| Event::named(name);
        let events: Vec<Event> = ask.grouping.events.iter().map(named).collect::<Option<_>>()?;
        let core = FastCore::new(&machine, ask.model.settings);
        let boundary = *events.get(ask.boundary)?;
        let registers = Registers { machine, events, bank: None, now: core.counts() };
        let mut counting = Counting {
            turns: turns(ask, current(&results).key(), thread),
            core: Modelled::new(core, results.clone(), thread),
            ask: ask.clone(),
            registers,
            boundary,
            until: 0,
            current: results,
            thread,
            pending: Vec::new(),
            pending_cycles: 0,
        };
        counting.start();
        Some(counting)
    }

    fn start(&mut self) {
        self.registers.now = self.core.core().counts();
        let Ok(_) = self.turns.start(&mut self.registers);
        self.until = slices::reading(self.core.core(), self.boundary) + self.turns.left();
    }

    #[cold]
    fn switch(&mut self) {
        self.registers.now = self.core.core().counts();
        let Ok(reading) = self.turns.switch(&mut self.registers);
        self.until = slices::reading(self.core.core(), self.boundary) + self.turns.left();
        self.keep(reading);
    }

    /// Credits the slice under way and writes everything; counting goes on.
    fn settle(&mut self) {
        self.registers.now = self.core.core().counts();
        let Ok(reading) = self.turns.stop(&mut self.registers);
        self.keep(reading.filter(|reading| reading.counts.iter().any(|count| *count > 0)));
        self.flush();
        self.start();
    }

    fn keep(&mut self, reading: Option<Reading>) {
        let Some(reading) = reading else { return };
        self.pending_cycles += reading.counts.first().copied().unwrap_or(0);
        let pid = current(&self.current).key().pid;
        let slice = Slice { pid, tid: self.thread, at: self.turns.now(), reading };
        log::append(&mut self.pending, &Record::Slice(slice));
        if self.pending_cycles >= FLUSH_CYCLES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        self.pending_cycles = 0;
        if !pending.is_empty() && self.write(&pending).is_err() {
            current(&self.current).note_trace_lost();
        }
    }

    /// Appends whole records. The file is opened anew each time, so that the program never finds a
    /// descriptor that it did not open; the lock lets one thread alone begin it.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let held = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let path = log_path(&self.ask, held.key());
        let mut options = OpenOptions::new();
        let mut all = Vec::new();
        let mut file = match options.append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                all = self.beginning(held.key());
                OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?
            }
            Err(error) => return Err(error),
        };
        all.extend_from_slice(bytes);
        if file.metadata()?.len().saturating_add(all.len() as u64) > Limit::FileSize.now() {
            return Err(io::Error::other("the file size limit leaves no room for the log"));
        }
        file.write_all(&all)
    }

    fn beginning(&self, key: ProcessKey) -> Vec<u8> {
        let header = Header {
            source: SOURCE.to_owned(),
            machine: self.ask.model.name.clone(),
            mode: MODE.to_owned(),
            boundary: self.boundary.name().to_owned(),
            slice: self.ask.plan.slice,
            events: self.ask.grouping.events.clone(),
            anchors: self.ask.grouping.anchors,
            groups: self.ask.grouping.groups.iter().map(|group| group.events.clone()).collect(),
        };
        let mut bytes = log::begin(header);
        // The process itself goes by the engine's name.
        let name = images::program().unwrap_or_default().to_owned();
        log::append(&mut bytes, &Record::Process { pid: key.pid, parent: 0, name });
        bytes
    }
}

/// Every thread of every process draws orders of its own.
fn turns(ask: &CountAsk, key: ProcessKey, thread: u32) -> Multiplexer {
    let mut plan = ask.plan.clone();
    if let Order::Permuted { seed } = &mut plan.order {
        let own = u64::from(key.sequence) << 32 | u64::from(thread);
        *seed = seed.wrapping_add(own.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    Multiplexer::new(ask.grouping.clone(), plan, ask.boundary)
}

fn log_path(ask: &CountAsk, key: ProcessKey) -> PathBuf {
    ask.logs.join(format!("{}-{}.counters", key.pid, key.sequence))
}

impl CoreListener for Counting {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
    }

    #[inline]
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.core.executed(id, ran, accesses);
        if slices::reading(self.core.core(), self.boundary) >= self.until {
            self.switch();
        }
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.core.continued(id, accesses);
    }

    fn interrupted(&mut self) {
        self.core.interrupted();
    }

    fn system_call(&mut self, number: u64) {
        self.core.system_call(number);
        if LAST_CALLS.contains(&number) {
            self.settle();
        }
    }

    fn forked(&mut self) {
        self.core.forked();
        // What waits to be written is the parent's, and the parent writes it.
        self.pending.clear();
        self.pending_cycles = 0;
        self.thread = 0;
        self.turns = turns(&self.ask, current(&self.current).key(), 0);
        self.start();
    }

    fn ended(&mut self) {
        self.core.ended();
        self.settle();
        let pid = current(&self.current).key().pid;
        let end = Record::End { pid, tid: self.thread };
        log::append(&mut self.pending, &end);
        self.flush();
    }
}
