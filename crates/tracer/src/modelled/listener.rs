//! A modelled core that publishes its account.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use model::core::{Account, Accounting, Sampling};
use model::event::{Counts, Event, HAPPENING_FIRST, HAPPENINGS};
use model::fast::FastCore;
use model::machine::Machine;
use model::reference::ReferenceCore;
use model::sampled::{Plan, SampledCore};
use model::stream::{Access, BlockId, CoreListener, StaticBlock};
use model::warm::Warmer;

use super::due::Due;
use super::interrupts::Interrupted;
use super::listened::Listened;
use super::{CHUNK_ROWS, CoreAsk, ModelAsk, ROW_WORDS, SAMPLING_WORDS};
use crate::results::Publisher;
use crate::tally::{CurrentResults, current};

/// Instructions between two publications of the totals, once a program has run for long.
pub const TOTALS_EVERY: u64 = 1 << 18;
/// Instructions between two publications of the rows, whose cost grows with the program's size.
pub const ROWS_EVERY: u64 = 1 << 26;

/// System calls after which a thread does not come back: execve, exit, exit_group, execveat.
pub(super) const LAST_CALLS: [u64; 4] = [59, 60, 231, 322];
/// System calls after which it may not, if it has sent the signal to itself: kill, rt_sigqueueinfo,
/// tkill, tgkill, rt_tgsigqueueinfo.
pub(super) const KILLING_CALLS: [u64; 5] = [62, 129, 200, 234, 297];

/// The listener that is asked for; none if the machine file cannot be read, which the launcher
/// has made sure of.
pub fn make(ask: &ModelAsk, current: CurrentResults, thread: u32) -> Option<Box<dyn CoreListener>> {
    let machine = Machine::load(&ask.name, &ask.machine, &[]).ok()?;
    match ask.core {
        CoreAsk::Fast => {
            let core = FastCore::new(&machine, ask.settings);
            Some(Box::new(Modelled::new(core, current, thread)))
        }
        CoreAsk::Sampled { error_ppm, seed } => {
            let error = f64::from(error_ppm) / 1e6;
            // Threads are sampled at places of their own.
            let seed = seed.wrapping_add(u64::from(thread) << 32);
            let core =
                SampledCore::new(&machine, ask.settings, Plan { error, seed, ..Plan::default() });
            Some(Box::new(Modelled::new(core, current, thread)))
        }
        CoreAsk::Reference => {
            let core = ReferenceCore::new(&machine, ask.settings);
            Some(Box::new(Modelled::new(core, current, thread)))
        }
        CoreAsk::Interrupts(interrupts) => {
            let listened = Listened::new(&machine, &interrupts, thread).ok()?;
            Some(Box::new(Interrupted::new(&machine, ask.settings, listened, current, thread)))
        }
        CoreAsk::Warm => Some(Box::new(Warmer::new(&machine))),
    }
}

/// What was counted before a fork, and is the parent's.
#[derive(Debug)]
struct Before {
    counts: Counts,
    account: Account,
    runs: Vec<u64>,
    timed: Vec<u64>,
}

/// One thread's core.
#[derive(Debug)]
pub struct Modelled<C> {
    core: C,
    current: CurrentResults,
    thread: u32,
    totals: Publisher,
    slabs: Vec<Option<&'static [AtomicU64]>>,
    totals_due: Due,
    rows_due: Due,
    before: Option<Box<Before>>,
}

impl<C: Accounting> Modelled<C> {
    /// A core for thread number `thread`.
    pub fn new(core: C, current: CurrentResults, thread: u32) -> Modelled<C> {
        let totals = Publisher::new(self::current(&current), thread);
        Modelled {
            core,
            current,
            thread,
            totals,
            slabs: Vec::new(),
            totals_due: Due::new(TOTALS_EVERY),
            rows_due: Due::new(ROWS_EVERY),
            before: None,
        }
    }

    /// The core.
    pub fn core(&self) -> &C {
        &self.core
    }

    /// So many instructions more have run.
    #[inline]
    fn publish_if_due(&mut self, instructions: u64) {
        if let Some(spell) = self.totals_due.passed(instructions) {
            self.publish_totals();
            if self.rows_due.passed(spell).is_some() {
                self.publish_rows();
            }
        }
    }

    #[cold]
    fn publish_totals(&mut self) {
        let counts = self.core.counts();
        let counts = self.before.as_ref().map_or(counts.clone(), |b| counts.since(&b.counts));
        let mut bytes: Vec<u8> = counts.0.iter().flat_map(|count| count.to_le_bytes()).collect();
        for &event in Event::ALL {
            let (u, dof) = uncertainty(&self.core, event);
            bytes.extend(u.to_le_bytes());
            bytes.extend(dof.to_le_bytes());
        }
        for word in sampling_words(self.core.sampling()) {
            bytes.extend(word.to_le_bytes());
        }
        self.totals.publish(&bytes);
    }

    #[cold]
    fn publish_rows(&mut self) {
        let (runs, timed) = (self.core.runs(), self.core.account().runs());
        for (instruction, (runs, timed)) in runs.into_iter().zip(timed).enumerate() {
            if runs > 0 {
                self.publish_row(instruction, runs, timed);
            }
        }
    }

    fn publish_row(&mut self, instruction: usize, runs: u64, timed: u64) {
        let number = instruction / CHUNK_ROWS;
        if self.slabs.len() <= number {
            self.slabs.resize(number + 1, None);
        }
        if self.slabs[number].is_none() {
            let first = (number * CHUNK_ROWS) as u32;
            self.slabs[number] = current(&self.current).rows(self.thread, first);
        }
        let Some(slab) = self.slabs[number] else { return };
        let start = instruction % CHUNK_ROWS * ROW_WORDS;
        let mut row = row_of(self.core.account(), instruction, runs, timed);
        if let Some(before) = &self.before {
            let earlier = before.row(instruction);
            row.iter_mut().zip(earlier).for_each(|(now, then)| *now = now.wrapping_sub(then));
        }
        if let Some(cells) = slab.get(start..start + ROW_WORDS) {
            cells.iter().zip(row).for_each(|(cell, word)| cell.store(word, Relaxed));
        }
    }

    fn publish_all(&mut self) {
        self.core.settle_all();
        self.publish_totals();
        self.publish_rows();
    }
}

impl Before {
    fn row(&self, instruction: usize) -> [u64; ROW_WORDS] {
        let of = |list: &[u64]| list.get(instruction).copied().unwrap_or(0);
        row_of(&self.account, instruction, of(&self.runs), of(&self.timed))
    }
}

/// How an estimate came about, as words: windows, instructions timed, what warming for longer changed
/// with its uncertainty and degrees of freedom, and cycles taken off. What there is not is no number.
pub(super) fn sampling_words(sampling: Option<Sampling>) -> [f64; SAMPLING_WORDS] {
    let Some(sampling) = sampling else { return [f64::NAN; SAMPLING_WORDS] };
    let longer = sampling.longer_warming.map_or([f64::NAN; 3], |longer| {
        [longer.value, longer.standard_uncertainty, longer.degrees_of_freedom]
    });
    let (windows, timed) = (sampling.windows as f64, sampling.timed as f64);
    [windows, timed, longer[0], longer[1], longer[2], sampling.taken_off]
}

/// Standard uncertainty and degrees of freedom of a total. Where too little was timed to tell,
/// anything may be true.
pub(super) fn uncertainty(core: &dyn Accounting, event: Event) -> (f64, f64) {
    core.estimate(event)
        .map_or((f64::INFINITY, 1.0), |e| (e.standard_uncertainty, e.degrees_of_freedom))
}

pub(super) fn row_of(
    account: &Account,
    instruction: usize,
    runs: u64,
    timed: u64,
) -> [u64; ROW_WORDS] {
    let mut row = [0; ROW_WORDS];
    row[0] = account.ticks(instruction);
    row[1] = runs;
    row[2] = timed;
    for (place, word) in row[3..].iter_mut().enumerate().take(HAPPENINGS) {
        let event = Event::ALL[HAPPENING_FIRST + place];
        *word = account.happenings(instruction, event).unwrap_or(0);
    }
    row
}

impl<C: Accounting> CoreListener for Modelled<C> {
    fn translated(&mut self, id: BlockId, block: &StaticBlock) {
        self.core.translated(id, block);
    }

    #[inline]
    fn executed(&mut self, id: BlockId, ran: u16, accesses: &[Access]) {
        self.core.executed(id, ran, accesses);
        self.publish_if_due(u64::from(ran));
    }

    fn continued(&mut self, id: BlockId, accesses: &[Access]) {
        self.core.continued(id, accesses);
    }

    fn far_looks(&self) -> u64 {
        self.core.far_looks()
    }

    fn approach(&self, addresses: &[u64]) {
        self.core.approach(addresses);
    }

    fn idles_for(&self) -> u64 {
        self.core.idles_for()
    }

    fn hears_lines(&self) -> bool {
        self.core.hears_lines()
    }

    fn touched(&mut self, addresses: &[u64]) {
        self.core.touched(addresses);
    }

    fn hears_order(&self) -> bool {
        self.core.hears_order()
    }

    fn passed(&mut self, blocks: &[BlockId]) {
        self.core.passed(blocks);
    }

    fn ran(&mut self, runs: &[(BlockId, u32)], instructions: u64) {
        self.core.ran(runs, instructions);
        self.publish_if_due(instructions);
    }

    fn interrupted(&mut self) {
        self.core.interrupted();
    }

    fn system_call(&mut self, number: u64) {
        self.core.system_call(number);
        if LAST_CALLS.contains(&number) {
            self.publish_all();
        } else if KILLING_CALLS.contains(&number) && self.totals_due.is_worth_it() {
            // Unsettled: what is in flight must not leave early if the thread does come back.
            self.publish_totals();
            self.publish_rows();
        }
    }

    fn forked(&mut self) {
        self.core.forked();
        self.core.settle_all();
        let account = self.core.account().clone();
        let (runs, timed) = (self.core.runs(), account.runs());
        let before = Before { counts: self.core.counts(), runs, timed, account };
        self.before = Some(Box::new(before));
        self.thread = 0;
        self.slabs.clear();
        self.totals = Publisher::new(current(&self.current), 0);
        (self.totals_due, self.rows_due) = (Due::new(TOTALS_EVERY), Due::new(ROWS_EVERY));
    }

    fn ended(&mut self) {
        self.publish_all();
    }
}
