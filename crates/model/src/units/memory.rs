//! The caches of both sides and what lies behind them.
//!
//! Latencies are from issue to data, everything nearer included. A line that is still on its way
//! keeps when it arrives, and whoever asks for it meanwhile waits for that moment. Lines enter
//! every level that they pass. Warming uses the same memory with `TIMED` off: lines arrive at once.

mod code;
mod far;
mod line;
mod told;

pub use line::Line;
pub use told::{MemoryCounts, Outcome};

use super::Level;
use super::cache::Cache;
use super::misses::{Channel, MissFile};
use super::newest::Newest;
use super::prefetch::{Reach, StreamPrefetcher, StridePrefetcher};
use super::tlb::{Tlb, Translation};
use crate::machine::{CacheFacts, Machine};

/// Where page tables lie, as a line: beyond every line of a program.
const TABLES: u64 = 1 << 63;
/// The power of two of a table entry's bytes.
const ENTRY_SHIFT: u32 = 3;

/// Both sides and all levels.
#[derive(Clone, Debug)]
pub struct Memory {
    l1d: Cache<Line>,
    /// The newest line of each set that is no guess, as `key` has it.
    l1d_newest: Newest<u64>,
    l1i: Cache<Line>,
    /// The newest line of each set that is no guess.
    l1i_newest: Newest<u64>,
    l2: Cache<Line>,
    l3: Option<Cache<Line>>,
    dtlb: Tlb,
    itlb: Tlb,
    l1d_misses: MissFile,
    /// Until when misses are known to have waited for one of its registers.
    waited_until: u64,
    l1i_misses: MissFile,
    l2_misses: MissFile,
    l3_misses: Option<MissFile>,
    walks: MissFile,
    l3_channel: Option<Channel>,
    channel: Channel,
    strides: Option<StridePrefetcher>,
    streams: Option<StreamPrefetcher>,
    next_line: bool,
    /// Lines that were guessed for something that nobody follows, and not asked for yet.
    guessed: Box<[u64; GUESSED]>,
    /// How far ahead of a line that was told far from anything timed its stream asked for another, last;
    /// 0 if it did not.
    far_ahead: u64,
    code_next_line: bool,
    line_shift: u32,
    page_lines: u64,
    page_shift: u32,
    l1d_cycles: u32,
    l1i_cycles: u32,
    l2_cycles: u64,
    l3_cycles: u64,
    memory_cycles: u64,
    /// Things that happened beside instructions.
    pub counts: MemoryCounts,
}

/// Lines that the host brings together.
const TOGETHER: usize = 16;
/// Guesses that are remembered while nobody follows what is touched; a power of two, and less than first
/// levels hold.
const GUESSED: usize = 256;
/// No line: lines are shifted addresses.
const NO_LINE: u64 = u64::MAX;
/// What lines and pages are on most machines, as powers of two: the host shifts by what it knows in
/// fewer steps.
const USUAL_LINE: u32 = 6;
const USUAL_PAGE: u32 = 12;

/// A line, and whether it is dirty, in a word: both are compared at once. Lines that a program touches
/// have a bit to spare.
#[inline]
fn key(line: u64, is_dirty: bool) -> u64 {
    line << 1 | u64::from(is_dirty)
}

fn cache(facts: &CacheFacts) -> Cache<Line> {
    let entries = u64::from(facts.size_kib) * 1024 / u64::from(facts.line_bytes);
    Cache::new(entries as usize, facts.ways as usize)
}

impl Memory {
    /// An empty memory of a machine.
    pub fn new(machine: &Machine) -> Memory {
        let caches = &machine.caches;
        let tlbs = &machine.tlbs;
        let line_bytes = caches.l1d.line_bytes;
        let page_lines = u64::from((tlbs.page_bytes / line_bytes).max(1));
        let prefetch = &machine.prefetch;
        let reach = Reach {
            lines: u64::from(prefetch.l2_stream_lines),
            lines_max: u64::from(prefetch.l2_stream_lines_max),
            crosses_pages: prefetch.l2_stream_crosses_pages,
        };
        let cycles_each = |bytes: u32| u64::from(line_bytes.div_ceil(bytes.max(1)));
        let l3_bytes = caches.l3.as_ref().and_then(|l3| l3.bytes_per_cycle);
        let (l1d, l1i) = (cache(&caches.l1d), cache(&caches.l1i));
        let is_scattered = machine.memory.scattered_pages;
        let far = |facts| {
            if is_scattered { cache(facts).scattered(page_lines) } else { cache(facts) }
        };
        Memory {
            l1d_newest: Newest::new(l1d.sets(), NO_LINE),
            l1d,
            l1i_newest: Newest::new(l1i.sets(), NO_LINE),
            l1i,
            l2: far(&caches.l2),
            l3: caches.l3.as_ref().map(far),
            dtlb: Tlb::new(tlbs, &tlbs.l1d, tlbs.l2d.as_ref()),
            itlb: Tlb::new(tlbs, &tlbs.l1i, tlbs.l2i.as_ref()),
            l1d_misses: MissFile::new(caches.l1d.misses as usize),
            waited_until: 0,
            l1i_misses: MissFile::new(caches.l1i.misses as usize),
            l2_misses: MissFile::new(caches.l2.misses as usize),
            l3_misses: caches.l3.as_ref().map(|l3| MissFile::new(l3.misses as usize)),
            walks: MissFile::new(tlbs.walkers as usize),
            l3_channel: l3_bytes.map(|bytes| Channel::new(cycles_each(bytes))),
            channel: Channel::new(cycles_each(machine.memory.bytes_per_cycle)),
            strides: prefetch.l1_stride.then(StridePrefetcher::default),
            streams: prefetch.l2_stream.then(|| StreamPrefetcher::new(reach, page_lines)),
            next_line: prefetch.l1_next_line,
            guessed: Box::new([NO_LINE; GUESSED]),
            far_ahead: 0,
            code_next_line: prefetch.code_next_line,
            line_shift: line_bytes.trailing_zeros(),
            page_lines,
            page_shift: tlbs.page_bytes.trailing_zeros(),
            l1d_cycles: caches.l1d.latency_cycles,
            l1i_cycles: caches.l1i.latency_cycles,
            l2_cycles: u64::from(caches.l2.latency_cycles),
            l3_cycles: caches.l3.as_ref().map_or(0, |l3| u64::from(l3.latency_cycles)),
            memory_cycles: u64::from(machine.memory.latency_cycles),
            counts: MemoryCounts::default(),
        }
    }

    /// The power of two of a line's bytes.
    pub fn line_shift(&self) -> u32 {
        self.line_shift
    }

    /// Translations of either side that missed the first level.
    pub fn translation_misses(&self) -> u64 {
        self.dtlb.misses + self.itlb.misses
    }

    /// Loads or stores `size` bytes at a time. A store's outcome is when its line may be written.
    #[inline]
    pub fn data<const TIMED: bool>(
        &mut self,
        pc: u64,
        address: u64,
        size: u64,
        is_store: bool,
        at: u64,
    ) -> Outcome {
        let mut translation = self.dtlb.translate(address);
        if translation.walked {
            translation.cycles += self.walk::<TIMED>(address, at, translation.cycles);
        }
        let line = address >> self.line_shift;
        let start = at + u64::from(translation.cycles);
        let mut outcome = self.data_line::<TIMED>(line, is_store, start);
        let last = address.wrapping_add(size.max(1) - 1) >> self.line_shift;
        if last != line {
            let other = self.data_line::<TIMED>(last, is_store, start);
            outcome.cycles = outcome.cycles.max(other.cycles) + 1;
            outcome.level = outcome.level.max(other.level);
            outcome.split = true;
        }
        outcome.cycles += translation.cycles;
        outcome.translation = translation;
        if !is_store {
            self.follow_stride::<TIMED>(pc, address, line, at);
        }
        outcome
    }

    /// Whether lines and pages are as usual, which `USUAL` says below.
    #[inline]
    pub(crate) fn is_usual(&self) -> bool {
        self.line_shift == USUAL_LINE && self.page_shift == USUAL_PAGE
    }

    /// The power of two of a line's bytes, known to the host where it is as usual.
    #[inline]
    pub(crate) fn line_shift_if<const USUAL: bool>(&self) -> u32 {
        self.shifts::<USUAL>().0
    }

    /// The powers of two of a line's and a page's bytes.
    #[inline]
    fn shifts<const USUAL: bool>(&self) -> (u32, u32) {
        if USUAL { (USUAL_LINE, USUAL_PAGE) } else { (self.line_shift, self.page_shift) }
    }

    /// A load within one line that hits TLB and first level with nothing on its way: true, and all
    /// is done that `data` would do. False leaves everything to `data`.
    #[inline]
    pub fn plain_load<const TIMED: bool>(
        &mut self,
        pc: u64,
        address: u64,
        size: u64,
        at: u64,
    ) -> bool {
        let line = address >> self.line_shift;
        let last = address.wrapping_add(size.max(1) - 1) >> self.line_shift;
        if last != line || !self.dtlb.hits(address) {
            return false;
        }
        let there = at + u64::from(self.l1d_cycles);
        let is_plain = |state: &Line| (!TIMED || state.ready() <= there) && !state.is_guess();
        let Some(state) = self.l1d.touch_if(line, is_plain) else { return false };
        self.l1d_newest.note(line, key(line, state.is_dirty()));
        self.follow_stride::<TIMED>(pc, address, line, at);
        true
    }

    /// A store within one line that hits TLB and first level, when nobody asks for the time: true,
    /// and all is done that `data` would do. False leaves everything to `data`.
    #[inline]
    pub fn plain_store(&mut self, address: u64, size: u64) -> bool {
        let line = address >> self.line_shift;
        let last = address.wrapping_add(size.max(1) - 1) >> self.line_shift;
        if last != line || !self.dtlb.hits(address) {
            return false;
        }
        let Some(state) = self.l1d.touch_if(line, |state| !state.is_guess()) else { return false };
        state.write(true);
        self.l1d_newest.note(line, key(line, true));
        true
    }

    /// Does what `data` does when nobody asks for the time, and takes the shortest way to it.
    #[inline]
    pub(crate) fn warm_data<const USUAL: bool>(
        &mut self,
        pc: u64,
        address: u64,
        size: u64,
        is_store: bool,
    ) {
        let (line_shift, page_shift) = self.shifts::<USUAL>();
        let line = address >> line_shift;
        if (address & ((1 << line_shift) - 1)) + size > 1 << line_shift {
            return self.warm_split(pc, address, size, is_store);
        }
        if !self.dtlb.has(address >> page_shift) {
            self.warm_page(address);
        }
        // Of a load, either will do.
        let newest = self.l1d_newest.of(line) | u64::from(!is_store);
        if newest != key(line, true) {
            self.warm_older(line, is_store);
        }
        if !is_store {
            self.follow_stride::<false>(pc, address, line, 0);
        }
    }

    #[cold]
    #[inline(never)]
    fn warm_split(&mut self, pc: u64, address: u64, size: u64, is_store: bool) {
        self.data::<false>(pc, address, size, is_store, 0);
    }

    /// Brings the translation that the first level lacks.
    #[cold]
    #[inline(never)]
    fn warm_page(&mut self, address: u64) {
        if self.dtlb.miss(address >> self.page_shift).walked {
            self.walk::<false>(address, 0, 0);
        }
    }

    /// Uses a line that is not known to be the newest of its set.
    #[inline(never)]
    fn warm_older(&mut self, line: u64, is_store: bool) {
        let Some(state) = self.l1d.touch(line) else {
            self.data_miss::<false>(line, is_store, 0);
            return;
        };
        state.write(is_store);
        self.counts.prefetches_useful += u64::from(state.ask());
        self.l1d_newest.note(line, key(line, state.is_dirty()));
    }

    /// Reads the entry of the last table of a walk that has taken so many cycles besides. Returns
    /// the cycles that the reading, and the wait for a free walker, add.
    #[cold]
    fn walk<const TIMED: bool>(&mut self, address: u64, at: u64, cycles: u32) -> u32 {
        let line = self.table_line(address);
        let start = if TIMED { self.walks.admit(at) } else { 0 };
        let read = start + u64::from(cycles);
        let there = match self.l2.touch(line) {
            Some(state) => state.ready().max(read + self.l2_cycles),
            None => self.beyond_l2::<TIMED>(line, read, false).0,
        };
        if !TIMED {
            return 0;
        }
        self.walks.hold(start, there);
        there.saturating_sub(at + u64::from(cycles)) as u32
    }

    #[inline]
    fn data_line<const TIMED: bool>(&mut self, line: u64, is_store: bool, at: u64) -> Outcome {
        let l1_cycles = self.l1d_cycles;
        let Some(state) = self.l1d.touch(line) else {
            return self.data_miss::<TIMED>(line, is_store, at);
        };
        state.write(is_store);
        let guessed = state.ask();
        self.l1d_newest.note(line, key(line, state.is_dirty()));
        let wait = state.ready().saturating_sub(at);
        self.counts.prefetches_useful += u64::from(guessed);
        Outcome {
            cycles: l1_cycles.max(wait as u32),
            level: Level::L1,
            translation: Translation::default(),
            joined: wait > u64::from(l1_cycles),
            guessed,
            split: false,
        }
    }

    #[inline(never)]
    fn data_miss<const TIMED: bool>(&mut self, line: u64, is_store: bool, at: u64) -> Outcome {
        self.counts.l2_data += 1;
        let (ready, level) = if TIMED {
            let start = self.l1d_misses.admit(at);
            self.counts.wait_cycles += start.saturating_sub(at.max(self.waited_until));
            self.waited_until = self.waited_until.max(start);
            let (ready, level) = self.beyond::<true>(line, start);
            self.l1d_misses.hold(start, ready);
            (ready, level)
        } else {
            self.beyond::<false>(line, 0)
        };
        self.fill_l1d(line, Line::new(ready, is_store, false));
        if let Some(next) = self.guess_of(line) {
            self.guess_l1d::<TIMED>(next, at);
        }
        Outcome {
            cycles: ready.saturating_sub(at) as u32,
            level,
            translation: Translation::default(),
            joined: false,
            guessed: false,
            split: false,
        }
    }

    /// A line is touched by something that nobody follows: it reaches the levels beyond the first as
    /// a miss would.
    ///
    /// So does the next one, where the first level would have guessed it; who then asks for that finds
    /// it in the first level, and the others do not hear of it again. A walk down columns never asks:
    /// outer levels that had not heard of its guesses kept twice as much of what it comes back to.
    pub fn refresh(&mut self, address: u64) {
        let line = address >> self.line_shift;
        let slot = &mut self.guessed[line as usize % GUESSED];
        if *slot == line {
            *slot = NO_LINE;
            return;
        }
        self.beyond::<false>(line, 0);
        if let Some(next) = self.guess_of(line) {
            self.guessed[next as usize % GUESSED] = next;
            self.beyond::<false>(next, 0);
        }
    }

    /// The page of code that an address lies in is used by something that nobody follows.
    #[inline]
    pub fn refresh_code_page(&mut self, address: u64) {
        if self.itlb.refresh(address) {
            self.walk::<false>(address, 0, 0);
        }
    }

    /// The page of data that an address lies in is used by something that nobody follows.
    ///
    /// What translation lacks is read from the page table, no more and no less: a table's lines that
    /// are not there when a window comes would be waited for there alone, and those of pages that
    /// translation holds leave the caches in truth, however often the pages are used.
    #[inline]
    pub fn refresh_data_page(&mut self, address: u64) {
        if self.dtlb.refresh(address) {
            self.walk::<false>(address, 0, 0);
        }
    }

    /// The line that holds the last table's entry for an address.
    #[inline]
    fn table_line(&self, address: u64) -> u64 {
        TABLES + (address >> self.page_shift >> (self.line_shift - ENTRY_SHIFT))
    }

    /// The line that the first level guesses beside one that it lacks, if it does.
    #[inline]
    fn guess_of(&self, line: u64) -> Option<u64> {
        (self.next_line && (line + 1) & (self.page_lines - 1) != 0).then_some(line + 1)
    }

    /// The host brings what the outer caches know of an address, and of what is guessed beside it.
    #[inline]
    fn bring_outer(&self, address: u64) {
        let line = address >> self.line_shift;
        for line in std::iter::once(line).chain(self.guess_of(line)) {
            self.l2.bring_all(line);
            self.l3.iter().for_each(|l3| l3.bring_all(line));
        }
    }

    /// The same of many, in order. The outer caches are more than the host's near ones hold: what they
    /// know of the next few lines is on its way meanwhile.
    pub fn refresh_all(&mut self, addresses: &[u64]) {
        few_ahead(
            addresses,
            self,
            |memory, &address| memory.bring_outer(address),
            |memory, &address| {
                memory.refresh(address);
            },
        );
    }

    fn fill_l1d(&mut self, line: u64, state: Line) {
        let newest = if state.is_guess() { NO_LINE } else { key(line, state.is_dirty()) };
        self.l1d_newest.note(line, newest);
        let Some((left, was)) = self.l1d.insert(line, state) else { return };
        self.counts.evictions_l1 += 1;
        self.counts.prefetches_useless += u64::from(was.is_guess());
        if was.is_dirty() {
            self.counts.writebacks_l1 += 1;
            match self.l2.peek_mut(left) {
                Some(below) => below.write(true),
                None => self.leave_l2(left, was),
            }
        }
    }

    #[inline]
    fn follow_stride<const TIMED: bool>(&mut self, pc: u64, address: u64, line: u64, at: u64) {
        let Some(strides) = &mut self.strides else { return };
        let Some(next) = strides.observe(pc, address) else { return };
        let next_line = next >> self.line_shift;
        // A guess stops at the page's end: where the next page lies, nobody has translated.
        let is_in_page = next >> self.page_shift == address >> self.page_shift;
        if next_line != line && is_in_page {
            self.guess_l1d::<TIMED>(next_line, at);
        }
    }

    fn guess_l1d<const TIMED: bool>(&mut self, line: u64, at: u64) {
        if self.l1d_newest.of(line) >> 1 == line || self.l1d.peek(line).is_some() {
            return;
        }
        self.counts.prefetches_l1 += 1;
        let (ready, _) = self.beyond::<TIMED>(line, at);
        self.fill_l1d(line, Line::new(ready, false, true));
    }

    /// Brings a line from behind the first level: when it is there, and whence.
    fn beyond<const TIMED: bool>(&mut self, line: u64, at: u64) -> (u64, Level) {
        let run = self.streams.as_mut().and_then(|streams| streams.observe(line));
        let found = match self.l2.touch(line) {
            Some(state) => {
                let guessed = state.ask();
                self.counts.prefetches_useful += u64::from(guessed);
                let ready = if TIMED { state.ready().max(at + self.l2_cycles) } else { 0 };
                (ready, Level::L2)
            }
            None => self.beyond_l2::<TIMED>(line, at, false),
        };
        if let Some(run) = run {
            for line in run.lines() {
                let level = self.guess_l2::<TIMED>(line, at);
                if let (Some(level), Some(streams)) = (level, &mut self.streams) {
                    streams.answered(level == Level::Memory);
                }
            }
        }
        found
    }

    /// Brings a line from behind the second level.
    fn beyond_l2<const TIMED: bool>(&mut self, line: u64, at: u64, is_guess: bool) -> (u64, Level) {
        self.counts.l2_misses += u64::from(!is_guess);
        let start = if TIMED { self.l2_misses.admit(at) } else { 0 };
        let found = self.l3.as_mut().and_then(|l3| l3.touch(line)).map(|state| state.ready());
        let has_l3 = self.l3.is_some();
        self.counts.l3 += u64::from(has_l3 && !is_guess);
        let (ready, level) = match found {
            Some(there) if TIMED => (there.max(self.l3_answers(start)), Level::L3),
            Some(_) => (0, Level::L3),
            None => {
                self.counts.l3_misses += u64::from(has_l3 && !is_guess);
                self.counts.memory_reads += 1;
                let ready = if TIMED { self.memory_answers(start) } else { 0 };
                (ready, Level::Memory)
            }
        };
        let ready = if TIMED { ready } else { 0 };
        if TIMED {
            self.l2_misses.hold(start, ready);
        }
        if found.is_none() {
            self.fill_l3(line, ready);
        }
        let state = Line::new(ready, false, is_guess);
        if let Some((left, was)) = self.l2.insert(line, state) {
            self.counts.prefetches_useless += u64::from(was.is_guess());
            self.leave_l2(left, was);
        }
        (ready, level)
    }

    /// When a line that the third level has is there.
    fn l3_answers(&mut self, at: u64) -> u64 {
        let start = self.l3_channel.as_mut().map_or(at, |channel| channel.book(at));
        start + self.l3_cycles
    }

    /// When a line asked of memory at a time is there.
    fn memory_answers(&mut self, at: u64) -> u64 {
        let start = self.l3_misses.as_mut().map_or(at, |misses| misses.admit(at));
        let ready = self.channel.book(start) + self.memory_cycles;
        if let Some(misses) = &mut self.l3_misses {
            misses.hold(start, ready);
        }
        ready
    }

    fn fill_l3(&mut self, line: u64, ready: u64) {
        let state = Line::new(ready, false, false);
        let left = self.l3.as_mut().and_then(|l3| l3.insert(line, state));
        self.counts.writebacks_memory += u64::from(left.is_some_and(|(_, was)| was.is_dirty()));
    }

    /// A line leaves the second level: what was written goes to the third, or to memory if that
    /// has let go of the line already.
    fn leave_l2(&mut self, line: u64, was: Line) {
        if !was.is_dirty() {
            return;
        }
        match self.l3.as_mut().and_then(|l3| l3.peek_mut(line)) {
            Some(below) => below.write(true),
            None => self.counts.writebacks_memory += 1,
        }
    }

    /// Fetches a line that the second level lacks: whence it comes.
    fn guess_l2<const TIMED: bool>(&mut self, line: u64, at: u64) -> Option<Level> {
        if self.l2.peek(line).is_some() {
            return None;
        }
        self.counts.prefetches_l2 += 1;
        Some(self.beyond_l2::<TIMED>(line, at, true).1)
    }
}

/// Does something with each of many, in order, and before that something with each of the next few.
#[inline]
fn few_ahead<A, T>(
    all: &[T],
    with: &mut A,
    bring: impl Fn(&A, &T),
    mut do_it: impl FnMut(&mut A, &T),
) {
    let mut chunks = all.chunks(TOGETHER);
    let first = chunks.next().unwrap_or_default();
    first.iter().for_each(|one| bring(with, one));
    let nexts = chunks.map(Some).chain([None]);
    for (few, next) in all.chunks(TOGETHER).zip(nexts) {
        next.into_iter().flatten().for_each(|one| bring(with, one));
        few.iter().for_each(|one| do_it(with, one));
    }
}

#[cfg(test)]
mod tests;
